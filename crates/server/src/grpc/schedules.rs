//! The verbs that change schedules.

use std::sync::{Mutex, PoisonError};

use punctual_api::v1;
use punctual_core::{
    Answer, CancelBackfill, Command, InitialPatch, Pause, Payload, Resume, Revision, Schedule, ScheduleKey,
    SkipOccurrence, UnskipOccurrence, Update,
};
use punctual_engine::{EngineError, NewSchedule, Verb};

use crate::app::{App, request_id, schedule_key};
use crate::convert::schedule::trigger as to_trigger;
use crate::convert::schedule::{
    Parts, backfill as to_backfill, on_resume, overlap, request_key, to_wire_schedule,
};
use crate::convert::time::{instant, needed};
use crate::convert::{mask, payload};
use crate::status::Fault;
use crate::temporal;

pub(crate) async fn create(app: &App, asked: v1::CreateScheduleRequest) -> Result<v1::ChangeResponse, Fault> {
    let key = schedule_key(&asked.namespace, &asked.schedule_id)?;
    let schedule = asked.schedule.unwrap_or_default();
    let pause = initial_pause(schedule.state.as_ref())?;
    let remaining_actions = schedule.remaining_actions;
    let parts = Parts::from_wire(schedule).map_err(|fault| fault.within("schedule"))?;
    let initial = initial(asked.initial_patch.unwrap_or_default(), pause)
        .map_err(|fault| fault.within("initial_patch"))?;
    app.calls.check(&parts.action).map_err(|fault| fault.within("schedule"))?;
    if parts.action.call.is_some() {
        app.calls.declare(&app.engine, &key.namespace).await?;
    }
    let Parts { spec, action, run_id_base, policies } = parts;
    let (request, attachment) = (request_id(&asked.request_id), Payload::from([]));
    let new = NewSchedule {
        key,
        spec,
        action,
        run_id_base,
        policies,
        attachment,
        remaining_actions,
        initial,
        request,
    };
    Ok(changed(app.engine.create(new).await?))
}

fn initial_pause(state: Option<&v1::ScheduleState>) -> Result<Option<Pause>, Fault> {
    let Some(state) = state.filter(|state| state.paused) else { return Ok(None) };
    let until = instant("schedule.state.until", state.until.as_ref())?;
    Ok(Some(Pause { note: state.note.as_str().into(), until }))
}

fn initial(wire: v1::InitialPatch, pause: Option<Pause>) -> Result<InitialPatch, Fault> {
    let trigger = wire.trigger.map(to_trigger).transpose().map_err(|fault| fault.within("trigger"))?;
    let numbered = wire.backfills.into_iter().enumerate();
    let backfills = numbered
        .map(|(place, backfill)| {
            to_backfill(backfill).map_err(|fault| fault.within(&format!("backfills[{place}]")))
        })
        .collect::<Result<_, Fault>>()?;
    Ok(InitialPatch { pause, trigger, backfills })
}

pub(crate) async fn update(app: &App, asked: v1::UpdateScheduleRequest) -> Result<v1::ChangeResponse, Fault> {
    let key = schedule_key(&asked.namespace, &asked.schedule_id)?;
    let given = asked.schedule.unwrap_or_default();
    let paths = mask::paths(asked.update_mask.as_ref(), &given)?;
    let body = Update {
        definition: None,
        remaining_actions: mask::covers(&paths, "remaining_actions").then_some(given.remaining_actions),
        expected_revision: asked.expected_revision.map(Revision),
        ..Update::default()
    };
    let kind = given.action.as_ref().and_then(|action| action.kind.as_ref());
    if kind.is_some_and(|kind| !matches!(kind, v1::action::Kind::Queue(_))) {
        app.calls.declare(&app.engine, &key.namespace).await?;
    }
    // The engine's error cannot say which field is at fault, so the fault takes another way.
    let refused = Mutex::new(None);
    let now = app.engine.now();
    let change = |schedule: &mut Schedule| {
        let merged = merged(app, schedule, &given, &paths, &key).map(|merged| {
            *schedule = merged;
            schedule.attachment = temporal::updated(&schedule.attachment, now);
        });
        merged.map_err(|fault| {
            let error = EngineError::Invalid(fault.message.clone());
            *refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
            error
        })
    };
    let command = Command { request: request_id(&asked.request_id), body };
    let answer = app.engine.update(&key, change, command).await;
    let refused = refused.into_inner().unwrap_or_else(PoisonError::into_inner);
    answer.map(changed).map_err(|error| refused.unwrap_or_else(|| error.into()))
}

fn merged(
    app: &App,
    current: &Schedule,
    given: &v1::Schedule,
    paths: &[String],
    key: &ScheduleKey,
) -> Result<Schedule, Fault> {
    if paths.iter().all(|path| path == "remaining_actions") {
        return Ok(current.clone());
    }
    let wire = mask::merge(&to_wire_schedule(current), given, paths)?;
    let parts = Parts::from_wire(wire).map_err(|fault| fault.within("schedule"))?;
    app.calls.check(&parts.action).map_err(|fault| fault.within("schedule"))?;
    Ok(parts.into_schedule(&key.schedule, current.attachment.clone()))
}

pub(crate) async fn pause(app: &App, asked: v1::PauseScheduleRequest) -> Result<v1::ChangeResponse, Fault> {
    let key = schedule_key(&asked.namespace, &asked.schedule_id)?;
    let body = Pause { note: asked.note.into(), until: instant("until", asked.until.as_ref())? };
    change(app, &key, &asked.request_id, body, Verb::Pause).await
}

pub(crate) async fn resume(app: &App, asked: v1::ResumeScheduleRequest) -> Result<v1::ChangeResponse, Fault> {
    let key = schedule_key(&asked.namespace, &asked.schedule_id)?;
    let body = Resume { on_resume: on_resume("on_resume", asked.on_resume)? };
    change(app, &key, &asked.request_id, body, Verb::Resume).await
}

pub(crate) async fn trigger(
    app: &App,
    asked: v1::TriggerScheduleRequest,
) -> Result<v1::ChangeResponse, Fault> {
    let key = schedule_key(&asked.namespace, &asked.schedule_id)?;
    let body = punctual_core::Trigger {
        overlap: overlap("overlap", asked.overlap)?,
        input: payload::bytes("input", asked.input.as_ref())?,
        nominal_time: instant("nominal_time", asked.nominal_time.as_ref())?,
    };
    change(app, &key, &asked.request_id, body, Verb::Trigger).await
}

pub(crate) async fn backfill(
    app: &App,
    asked: v1::BackfillScheduleRequest,
) -> Result<v1::ChangeResponse, Fault> {
    let key = schedule_key(&asked.namespace, &asked.schedule_id)?;
    let body = to_backfill(asked.backfill.unwrap_or_default()).map_err(|fault| fault.within("backfill"))?;
    change(app, &key, &asked.request_id, body, Verb::Backfill).await
}

pub(crate) async fn cancel_backfill(
    app: &App,
    asked: v1::CancelBackfillRequest,
) -> Result<v1::ChangeResponse, Fault> {
    let key = schedule_key(&asked.namespace, &asked.schedule_id)?;
    let body = CancelBackfill { key: request_key("backfill_id", &asked.backfill_id)? };
    change(app, &key, &asked.request_id, body, Verb::CancelBackfill).await
}

pub(crate) async fn skip(app: &App, asked: v1::SkipOccurrenceRequest) -> Result<v1::ChangeResponse, Fault> {
    let key = schedule_key(&asked.namespace, &asked.schedule_id)?;
    let body = SkipOccurrence { nominal_time: needed("nominal_time", asked.nominal_time.as_ref())? };
    change(app, &key, &asked.request_id, body, Verb::Skip).await
}

pub(crate) async fn unskip(
    app: &App,
    asked: v1::UnskipOccurrenceRequest,
) -> Result<v1::ChangeResponse, Fault> {
    let key = schedule_key(&asked.namespace, &asked.schedule_id)?;
    let body = UnskipOccurrence { nominal_time: needed("nominal_time", asked.nominal_time.as_ref())? };
    change(app, &key, &asked.request_id, body, Verb::Unskip).await
}

pub(crate) async fn delete(app: &App, asked: v1::DeleteScheduleRequest) -> Result<v1::ChangeResponse, Fault> {
    let key = schedule_key(&asked.namespace, &asked.schedule_id)?;
    change(app, &key, &asked.request_id, (), Verb::Delete).await
}

/// What the verbs have in common.
async fn change<Body>(
    app: &App,
    key: &ScheduleKey,
    request: &str,
    body: Body,
    verb: fn(Command<Body>) -> Verb,
) -> Result<v1::ChangeResponse, Fault> {
    let command = Command { request: request_id(request), body };
    Ok(changed(app.engine.change(key, verb(command)).await?))
}

fn changed(answer: Answer) -> v1::ChangeResponse {
    let request_keys = answer.keys.iter().map(ToString::to_string).collect();
    v1::ChangeResponse { revision: answer.revision.0, request_keys }
}
