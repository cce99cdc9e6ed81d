//! The verbs that change schedules, each once for each request id.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use punctual_core::{
    Action, Backfill, Command, InitialPatch, Pause, Policies, Revision, Schedule, ScheduleKey, Target,
    Trigger, Update,
};
use punctual_engine::{EngineError, NewSchedule, Verb};
use punctual_store::record::{decode_action, encode_action};

use super::kept::Kept;
use super::refusal::{Refusal, of_schedule};
use super::wire::{common, schedule as wire, service};
use super::{action, attributes, namespaces, policies, spec};
use crate::app::{App, request_id};
use crate::convert::action::CALLS_QUEUE;
use crate::convert::time::{instant, needed, to_wire};
use crate::limits::PAYLOAD_BYTES_MAX;

/// Bytes of ids, as Temporal bounds them.
const ID_BYTES_MAX: usize = 1_000;

/// Which schedule a request means; its namespace exists.
pub(super) async fn key(app: &App, namespace: &str, schedule: &str) -> Result<ScheduleKey, Refusal> {
    namespaces::check(app, namespace).await?;
    if schedule.is_empty() || schedule.len() > ID_BYTES_MAX {
        return Err(Refusal::invalid(format!("schedule id must have 1 to {ID_BYTES_MAX} bytes")));
    }
    Ok(ScheduleKey::new(namespace, schedule))
}

fn check_request(id: &str) -> Result<(), Refusal> {
    match id.len() {
        0..=ID_BYTES_MAX => Ok(()),
        length => Err(Refusal::invalid(format!("request id has {length} bytes, at most {ID_BYTES_MAX}"))),
    }
}

/// What a client saw: the revision, and the limit of starts, which moves without it.
pub(super) fn token(revision: Revision, remaining: Option<u32>) -> Vec<u8> {
    let remaining = remaining.map_or(0, |left| u64::from(left) + 1);
    [revision.0.to_le_bytes(), remaining.to_le_bytes()].concat()
}

fn read_token(token: &[u8]) -> Result<Option<(Revision, Option<u32>)>, Refusal> {
    if token.is_empty() {
        return Ok(None);
    }
    let parts = token.as_chunks::<8>();
    let ([revision, remaining], []) = parts else { return Err(Refusal::stale_token()) };
    let left = u64::from_le_bytes(*remaining).checked_sub(1).map(u32::try_from).transpose();
    let left = left.map_err(|_| Refusal::stale_token())?;
    Ok(Some((Revision(u64::from_le_bytes(*revision)), left)))
}

fn check_memo(memo: Option<&common::Memo>) -> Result<(), Refusal> {
    let length = memo.map_or(0, prost::Message::encoded_len);
    if length > PAYLOAD_BYTES_MAX {
        return Err(Refusal::invalid(format!(
            "memo has {length} bytes, at most {PAYLOAD_BYTES_MAX} are allowed"
        )));
    }
    Ok(())
}

pub(super) async fn create(
    app: &App,
    asked: service::CreateScheduleRequest,
) -> Result<service::CreateScheduleResponse, Refusal> {
    let key = key(app, &asked.namespace, &asked.schedule_id).await?;
    if asked.request_id.is_empty() {
        return Err(Refusal::invalid("request id is not set on request"));
    }
    check_request(&asked.request_id)?;
    let schedule = asked.schedule.unwrap_or_default();
    let spec = spec::from_wire(schedule.spec.unwrap_or_default())?;
    let started = action::from_wire(schedule.action)?.at(app.upstream.is_some());
    attributes::checked(app, &key.namespace, started.search_attributes).await?;
    let given = schedule.policies.unwrap_or_default();
    let state = schedule.state.unwrap_or_default();
    check_memo(asked.memo.as_ref())?;
    let kept = Kept {
        action: started.kept,
        memo: asked.memo,
        search_attributes: attributes::checked(app, &key.namespace, asked.search_attributes).await?,
        notes: state.notes.clone(),
        updated_at: None,
        keep_original_workflow_id: given.keep_original_workflow_id,
    };
    let patch = read_patch(asked.initial_patch.unwrap_or_default(), app.engine.now())?;
    let remaining_actions = policies::remaining(&state);
    let pause = patch.pause.unwrap_or(policies::pause(&state)?);
    namespaces::declare(app, &key.namespace, &started.action.queue).await?;
    let answer = app.engine.create(NewSchedule {
        spec,
        action: started.action,
        run_id_base: started.run_id_base,
        policies: policies::from_wire(&given, Policies::default())?,
        attachment: kept.bytes(),
        remaining_actions,
        initial: InitialPatch { pause, trigger: patch.trigger, backfills: patch.backfills },
        request: request_id(&asked.request_id),
        key: key.clone(),
    });
    let answer = answer.await.map_err(|error| of_schedule(&key.schedule, error))?;
    Ok(service::CreateScheduleResponse { conflict_token: token(answer.revision, remaining_actions) })
}

/// A patch, read.
struct Patch {
    /// A pause, or (the inner nothing) its end.
    pause: Option<Option<Pause>>,
    /// New notes of a schedule that goes on.
    notes: Option<String>,
    trigger: Option<Trigger>,
    backfills: Vec<Backfill>,
}

fn read_patch(given: wire::SchedulePatch, now: Timestamp) -> Result<Patch, Refusal> {
    let (pause, unpause) = (policies::note(&given.pause)?, policies::note(&given.unpause)?);
    let trigger = given.trigger_immediately.map(|trigger| {
        Ok::<_, Refusal>(Trigger {
            overlap: policies::overlap(trigger.overlap_policy)?,
            input: None,
            nominal_time: instant("scheduled time", trigger.scheduled_time.as_ref())?,
        })
    });
    let backfills = given.backfill_request.into_iter().map(|range| {
        let through = needed("backfill end time", range.end_time.as_ref())?;
        let from = needed("backfill start time", range.start_time.as_ref())?;
        if from > now {
            return Err(Refusal::invalid(
                "a backfill begins in the future, where the schedule starts by itself",
            ));
        }
        // What is to come is left to the schedule: else it would start twice.
        let overlap = policies::overlap(range.overlap_policy)?;
        Ok(Backfill { from, through: through.min(now), overlap, pace: None, note: "".into() })
    });
    Ok(Patch {
        // Who asks for both gets a schedule that goes on.
        pause: match (pause, unpause) {
            ("", "") => None,
            (pause, "") => Some(Some(Pause { note: pause.into(), until: None })),
            (_, _) => Some(None),
        },
        notes: Some(unpause).filter(|note| !note.is_empty()).map(str::to_owned),
        trigger: trigger.transpose()?,
        backfills: backfills.collect::<Result<_, _>>()?,
    })
}

pub(super) async fn patch(
    app: &App,
    asked: service::PatchScheduleRequest,
) -> Result<service::PatchScheduleResponse, Refusal> {
    let key = key(app, &asked.namespace, &asked.schedule_id).await?;
    check_request(&asked.request_id)?;
    let patch = asked.patch.ok_or_else(|| Refusal::invalid("patch is not set on request"))?;
    let now = app.engine.now();
    let Patch { pause, notes, trigger, backfills } = read_patch(patch, now)?;
    let update = Update {
        pause: pause.map(|pause| pause.map(Box::new)),
        trigger: trigger.map(Box::new),
        backfills,
        ..Update::default()
    };
    let change = |schedule: &mut Schedule| {
        let mut kept = Kept::read(&schedule.attachment);
        kept.updated_at = Some(to_wire(now));
        kept.notes = notes.clone().unwrap_or(kept.notes);
        schedule.attachment = kept.bytes();
        Ok(())
    };
    submit(app, &key, &asked.request_id, update, change).await?;
    Ok(service::PatchScheduleResponse::default())
}

pub(super) async fn update(
    app: &App,
    asked: service::UpdateScheduleRequest,
) -> Result<service::UpdateScheduleResponse, Refusal> {
    let key = key(app, &asked.namespace, &asked.schedule_id).await?;
    check_request(&asked.request_id)?;
    let schedule = asked.schedule.unwrap_or_default();
    let given_spec = schedule.spec.unwrap_or_default();
    let new_spec = spec::from_wire(given_spec.clone())?;
    let given = schedule.policies.unwrap_or_default();
    let state = schedule.state.unwrap_or_default();
    check_memo(asked.memo.as_ref())?;
    let search_attributes = attributes::checked(app, &key.namespace, asked.search_attributes).await?;
    let seen = read_token(&asked.conflict_token)?;
    let update = Update {
        remaining_actions: Some(policies::remaining(&state)),
        expected_revision: seen.map(|(revision, _)| revision),
        expected_remaining: seen.map(|(_, remaining)| remaining),
        pause: Some(policies::pause(&state)?.map(Box::new)),
        ..Update::default()
    };
    let calls = is_call(schedule.action.as_ref());
    let started = match calls {
        // A call that the server makes itself has no other words in this contract; it stays what it is.
        true => None,
        false => Some(action::from_wire(schedule.action)?.at(app.upstream.is_some())),
    };
    if let Some(started) = &started {
        attributes::checked(app, &key.namespace, started.search_attributes.clone()).await?;
        namespaces::declare(app, &key.namespace, &started.action.queue).await?;
    }
    let now = app.engine.now();
    let change = |current: &mut Schedule| {
        // Who sends back what was described has not asked for another spec: its texts stay.
        if spec::shown(&current.spec, &key).ok().as_ref() != Some(&given_spec) {
            current.spec = new_spec.clone();
        }
        current.policies = policies::from_wire(&given, current.policies.clone())?;
        let mut kept = Kept::read(&current.attachment);
        match &started {
            Some(started) => {
                current.action = merged(started, &current.action, &key);
                kept.action = started.kept.clone();
            }
            None => still_a_call(&current.action)?,
        }
        kept.memo = asked.memo.clone().or(kept.memo).filter(|memo| !memo.fields.is_empty());
        kept.search_attributes = search_attributes.clone().or(kept.search_attributes);
        kept.search_attributes = kept.search_attributes.filter(|kept| !kept.indexed_fields.is_empty());
        kept.notes = state.notes.clone();
        kept.keep_original_workflow_id = given.keep_original_workflow_id;
        kept.updated_at = Some(to_wire(now));
        current.attachment = kept.bytes();
        Ok(())
    };
    submit(app, &key, &asked.request_id, update, change).await?;
    Ok(service::UpdateScheduleResponse::default())
}

/// Whether an action is the form in which a call is shown.
fn is_call(action: Option<&punctual_temporal_api::ScheduleAction>) -> bool {
    let info = action.and_then(|action| action.started_workflow().ok().flatten());
    info.and_then(|info| info.task_queue).is_some_and(|queue| queue.name == CALLS_QUEUE)
}

fn still_a_call(action: &Action) -> Result<(), Refusal> {
    match decode_action(&action.payload).is_ok_and(|run| run.call.is_some()) {
        true => Ok(()),
        false => Err(Refusal::invalid(format!(
            "task queue {CALLS_QUEUE} is for calls that the server makes itself"
        ))),
    }
}

/// The new action, with what only other clients can say of the old one.
fn merged(started: &action::Started, before: &Action, key: &ScheduleKey) -> Action {
    let mut run = started.action.clone();
    if let Ok(old) = decode_action(&before.payload) {
        run.timeouts.heartbeat = old.timeouts.heartbeat;
    }
    let base = if started.run_id_base.is_empty() { &key.schedule } else { &started.run_id_base };
    Action { target: Target::Queue, run_id_base: base.clone(), payload: encode_action(&run) }
}

async fn submit(
    app: &App,
    key: &ScheduleKey,
    request: &str,
    update: Update,
    change: impl Fn(&mut Schedule) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    // The engine's error cannot carry the refusal, so that it takes another way.
    let refused = Mutex::new(None);
    let change = |schedule: &mut Schedule| {
        change(schedule).map_err(|refusal| {
            *refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
            EngineError::Invalid("refused".into())
        })
    };
    let command = Command { request: request_id(request), body: update };
    let answer = app.engine.update(key, change, command).await;
    let refused = refused.into_inner().unwrap_or_else(PoisonError::into_inner);
    answer.map(drop).map_err(|error| refused.unwrap_or_else(|| of_schedule(&key.schedule, error)))
}

pub(super) async fn delete(
    app: &App,
    asked: service::DeleteScheduleRequest,
) -> Result<service::DeleteScheduleResponse, Refusal> {
    let key = key(app, &asked.namespace, &asked.schedule_id).await?;
    // The contract has no request id here: who repeats it hears that there is nothing left to delete.
    let command = Command { request: request_id(""), body: () };
    let answer = app.engine.change(&key, Verb::Delete(command)).await;
    answer.map_err(|error| of_schedule(&key.schedule, error))?;
    Ok(service::DeleteScheduleResponse::default())
}
