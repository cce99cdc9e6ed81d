//! Schedules as Temporal's clients see them.

use futures_util::future::try_join_all;
use punctual_core::{BufferedStart, Lifecycle, Outcome, Phase, Schedule, ScheduleKey, StartId};
use punctual_engine::Described;
use punctual_store::RunKey;
use punctual_store::record::decode_action;

use super::attributes::{self, Kind};
use super::kept::Kept;
use super::query::{Facts, Value};
use super::refusal::Refusal;
use super::wire::{common, enums, schedule as wire};
use super::{action, policies, spec};
use crate::app::App;
use crate::convert::action::WORKFLOWS_QUEUE;
use crate::convert::time::to_wire;

/// Runs, and times, that a list shows; describe shows as many as a schedule remembers.
const LISTED_MAX: usize = 5;

/// Runs that describe shows.
const RECENT_MAX: usize = 10;

/// A schedule, and what is kept with it.
pub(super) struct Shown<'a> {
    described: &'a Described,
    pub(super) kept: Kept,
    /// Runs that ended, as far as somebody looked for them.
    ended: Vec<(StartId, RunKey)>,
}

impl<'a> Shown<'a> {
    /// The schedule, unless it has ended: Temporal forgets such ones.
    pub(super) fn of(described: &'a Described) -> Option<Shown<'a>> {
        let open = described.description.lifecycle == Lifecycle::Open;
        let kept = || Kept::read(&asked(described).attachment);
        open.then(|| Shown { described, kept: kept(), ended: Vec::new() })
    }

    /// Looks for the runs of those starts that describe shows as ended. A schedule does not remember them itself.
    pub(super) async fn look_for_ended(&mut self, app: &App) -> Result<(), Refusal> {
        if self.is_theirs() {
            return Ok(());
        }
        let tree = self.described.tree;
        let starts = self.described.description.recent.iter().rev().take(RECENT_MAX).map(|run| run.id());
        let found = starts.map(async |start| {
            let run = app.engine.ended_run(tree, start).await?;
            Ok::<_, Refusal>(run.map(|run| (start, run)))
        });
        self.ended = try_join_all(found).await?.into_iter().flatten().collect();
        Ok(())
    }

    /// Whether its runs are workflows of the cluster behind this server, which has run ids of its own; the workflow's id
    /// alone means its latest run.
    fn is_theirs(&self) -> bool {
        let action = decode_action(&asked(self.described).action.payload);
        action.is_ok_and(|action| *action.queue == *WORKFLOWS_QUEUE)
    }

    fn key(&self) -> &ScheduleKey {
        &self.described.description.key
    }

    /// What the client asked for, in canonical form.
    pub(super) fn schedule(&self) -> wire::Schedule {
        let about = &self.described.description;
        wire::Schedule {
            spec: Some(self.spec()),
            action: decode_action(&asked(self.described).action.payload)
                .ok()
                .map(|run| action::shown(&run, &asked(self.described).action.run_id_base, &self.kept.action)),
            policies: Some(policies::shown(&asked(self.described).policies, &self.kept)),
            state: Some(wire::ScheduleState {
                notes: self.notes(),
                paused: about.pause.is_some(),
                limited_actions: about.remaining_actions.is_some(),
                remaining_actions: about.remaining_actions.unwrap_or_default().into(),
            }),
        }
    }

    fn spec(&self) -> wire::ScheduleSpec {
        spec::shown(&asked(self.described).spec, self.key()).unwrap_or_default()
    }

    fn notes(&self) -> String {
        let pause = self.described.description.pause.as_ref();
        pause.map_or_else(|| self.kept.notes.clone(), |pause| pause.note.to_string())
    }

    /// What became of it so far, and what is next.
    pub(super) fn info(&self) -> wire::ScheduleInfo {
        let about = &self.described.description;
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let running = about.starts.in_progress.iter();
        let running = running.filter(|start| matches!(start.phase, Phase::Running { .. }));
        wire::ScheduleInfo {
            action_count: number(about.counters.started),
            missed_catchup_window: number(about.counters.missed),
            overlap_skipped: number(about.counters.skipped),
            buffer_dropped: number(about.counters.dropped),
            buffer_size: number(about.starts.buffered.len() as u64),
            running_workflows: running.map(|start| self.execution(start.id)).collect(),
            recent_actions: self.recent(RECENT_MAX),
            future_action_times: about.upcoming.iter().map(|time| to_wire(time.due_time)).collect(),
            create_time: Some(to_wire(about.created_at)),
            update_time: self.kept.updated_at,
            ..Default::default()
        }
    }

    fn execution(&self, start: StartId) -> common::WorkflowExecution {
        let find = |runs: &[(StartId, RunKey)]| runs.iter().find(|(id, _)| *id == start).map(|(_, run)| *run);
        let going = find(&self.described.runs).filter(|_| !self.is_theirs());
        let run = going.or_else(|| find(&self.ended)).map(|run| run.to_string());
        let workflow_id = start.run_id(&asked(self.described).action.run_id_base);
        common::WorkflowExecution { workflow_id, run_id: run.unwrap_or_default() }
    }

    /// The latest runs, the oldest first, those in progress among them.
    fn recent(&self, count: usize) -> Vec<wire::ScheduleActionResult> {
        let about = &self.described.description;
        let ended = about.recent.iter().map(|run| {
            let execution = self.execution(run.id());
            (run.started_at(), run.id().nominal_time(), execution, status(run.outcome()))
        });
        let going = about.starts.in_progress.iter().filter_map(|start| match start.phase {
            Phase::Running { started_at, .. } => {
                let running = enums::WorkflowExecutionStatus::Running;
                Some((started_at, start.due_time, self.execution(start.id), running))
            }
            _ => None,
        });
        let mut all: Vec<_> = ended.chain(going).collect();
        all.sort_by_key(|(started_at, ..)| *started_at);
        let from = all.len().saturating_sub(count);
        let result = |(started_at, time, execution, status)| wire::ScheduleActionResult {
            schedule_time: Some(to_wire(time)),
            actual_time: Some(to_wire(started_at)),
            start_workflow_result: Some(execution),
            start_workflow_status: enums::WorkflowExecutionStatus::into(status),
        };
        all.drain(from..).map(result).collect()
    }

    /// What a list shows of it.
    pub(super) fn listed(&self) -> wire::ScheduleListEntry {
        let about = &self.described.description;
        let run = decode_action(&asked(self.described).action.payload).ok();
        let times = about.upcoming.iter().take(LISTED_MAX).map(|time| to_wire(time.due_time));
        wire::ScheduleListEntry {
            schedule_id: self.key().schedule.to_string(),
            memo: self.kept.memo.clone(),
            search_attributes: self.kept.search_attributes.clone(),
            info: Some(wire::ScheduleListInfo {
                spec: Some(spec::listed(self.spec())),
                workflow_type: run.map(|run| common::WorkflowType { name: run.handler.to_string() }),
                notes: self.notes(),
                paused: about.pause.is_some(),
                recent_actions: self.recent(LISTED_MAX),
                future_action_times: times.collect(),
                ..Default::default()
            }),
        }
    }
}

/// One that cannot be read is listed by its name, so that somebody sees it.
pub(super) fn broken(key: &ScheduleKey) -> wire::ScheduleListEntry {
    let info = wire::ScheduleListInfo {
        spec: Some(Default::default()),
        workflow_type: Some(Default::default()),
        notes: "its stored state is broken and kept as it is".into(),
        ..Default::default()
    };
    wire::ScheduleListEntry { schedule_id: key.schedule.to_string(), info: Some(info), ..Default::default() }
}

fn asked(described: &Described) -> &Schedule {
    described.description.definition.schedule()
}

fn status(outcome: Outcome) -> enums::WorkflowExecutionStatus {
    use enums::WorkflowExecutionStatus as Status;
    match outcome {
        Outcome::Succeeded => Status::Completed,
        Outcome::Failed => Status::Failed,
        Outcome::TimedOut => Status::TimedOut,
        Outcome::Cancelled => Status::Canceled,
        Outcome::Terminated => Status::Terminated,
    }
}

/// What a filter asks of a schedule; attributes that clients made have the types that are known now.
pub(super) struct Asked<'a> {
    pub(super) shown: &'a Shown<'a>,
    pub(super) types: &'a attributes::Types,
}

impl Facts for Asked<'_> {
    fn fact(&self, attribute: &str) -> Option<Value> {
        let about = &self.shown.described.description;
        let count = |list: &[BufferedStart]| Value::Int(i64::try_from(list.len()).unwrap_or(i64::MAX));
        match attribute {
            "ScheduleId" => Some(Value::Keyword(about.key.schedule.to_string())),
            "TemporalSchedulePaused" => Some(Value::Bool(about.pause.is_some())),
            "ScheduleNextActionTime" => about.upcoming.first().map(|time| Value::Datetime(time.due_time)),
            "ScheduleRunningWorkflowCount" => Some(count(&about.starts.in_progress)),
            "ScheduleBufferedStartsCount" => Some(count(&about.starts.buffered)),
            // It is set while a schedule has nothing left to do.
            "ScheduleIdleCloseTime" => {
                let idle = about.upcoming.is_empty() && about.pause.is_none() && about.backfills.is_empty();
                about.timer.filter(|_| idle).map(Value::Datetime)
            }
            own => {
                let kind: Kind = *self.types.get(own)?;
                let payload = self.shown.kept.search_attributes.as_ref()?.indexed_fields.get(own)?;
                attributes::value(payload, kind)
            }
        }
    }
}
