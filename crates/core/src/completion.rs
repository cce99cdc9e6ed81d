//! A run ended: record it, hand its result on, maybe pause, and let the next one go.

use std::sync::Arc;

use jiff::Timestamp;

use crate::id::StartId;
use crate::mutant::{self, Mutant};
use crate::note::Note;
use crate::schedule::Payload;
use crate::scheduler::PauseState;
use crate::start::{Outcome, Phase, RecentRun};
use crate::task::Task;
use crate::transition::Transition;
use crate::tree::ScheduleTree;

/// The report that a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Which start it was.
    pub start: StartId,
    /// How it ended.
    pub outcome: Outcome,
    /// What it returned, or its failure.
    pub payload: Option<Payload>,
    /// When it ended.
    pub completed_at: Timestamp,
}

/// What the next run is told about those before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastCompletion {
    /// What the last run that succeeded returned.
    pub result: Option<Payload>,
    /// The failure of the last run, if it failed.
    pub failure: Option<Payload>,
}

impl ScheduleTree {
    /// Records the end of a run. Hearing it twice, or of a run that is not ours, changes nothing; hearing it before the
    /// start was recorded records both.
    pub(crate) fn record_completion(&mut self, tx: &mut Transition<'_>, completion: Completion) {
        let Completion { start: id, outcome, payload, completed_at } = completion;
        let Some(start) = self.invoker.find(id) else {
            if mutant::is(Mutant::UnknownCompletionCounts) {
                self.maybe_pause(tx, id, outcome);
            }
            return;
        };
        let started_at = match start.phase {
            Phase::Running { started_at, .. } => started_at,
            Phase::Ready { .. } | Phase::Doubtful { .. } => {
                let began = completed_at.min(tx.now());
                self.invoker.mark_running(tx, &mut self.scheduler, id, began);
                began
            }
            Phase::Waiting | Phase::Deferred => return,
        };
        let run = RecentRun::new(id, started_at, completed_at.max(started_at), outcome);
        let recent = &mut self.invoker.recent;
        let place = recent.partition_point(|other| other.completed_at() <= run.completed_at());
        recent.insert(place, run);
        let surplus = recent.len().saturating_sub(tx.limits().recent_runs_max);
        recent.drain(..surplus);

        self.hand_on(tx, outcome, payload);
        self.scheduler.last_event_at = self.scheduler.last_event_at.max(tx.now());
        tx.note(Note::RunCompleted { start: id, outcome });
        self.maybe_pause(tx, id, outcome);
        self.invoker.release(tx, id);
        tx.add_task(Task::Close);
    }

    fn hand_on(&mut self, tx: &mut Transition<'_>, outcome: Outcome, payload: Option<Payload>) {
        let last = self.last_completion.as_deref().cloned().unwrap_or_default();
        let next = match outcome {
            Outcome::Succeeded => LastCompletion { result: payload, failure: None },
            Outcome::Failed | Outcome::TimedOut | Outcome::Cancelled | Outcome::Terminated => {
                // A failure always leaves a trace, even one without words.
                let failure = Some(payload.unwrap_or_else(|| Arc::from(&b""[..])));
                LastCompletion { result: last.result.clone(), failure }
            }
        };
        if last != next {
            self.last_completion = (next != LastCompletion::default()).then(|| Box::new(next));
            tx.changed().completion = true;
        }
    }

    fn maybe_pause(&mut self, tx: &mut Transition<'_>, id: StartId, outcome: Outcome) {
        let scheduler = &mut self.scheduler;
        scheduler.failures_in_a_row = match outcome {
            Outcome::Succeeded => 0,
            _ if outcome.is_failure() => scheduler.failures_in_a_row.saturating_add(1),
            _ => scheduler.failures_in_a_row,
        };
        let failures = scheduler.failures_in_a_row;
        let limit = scheduler.policies().pause_after_failures;
        if scheduler.pause.is_none()
            && outcome.is_failure()
            && limit.is_some_and(|limit| failures >= limit.max(1))
        {
            let run = id.run_id(&scheduler.definition.schedule.action.run_id_base);
            let note = format!("paused after {failures} failures in a row, the last: {run}").into();
            scheduler.pause = Some(Box::new(PauseState { paused_at: tx.now(), note, until: None }));
            scheduler.bump_revision();
            tx.note(Note::Paused { after_failures: Some(failures) });
        }
    }
}
