//! Makes one call and records how it ended.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_actions::{Call, Claim, Context, End, Form, HttpCall, NexusCall, Stopper};
use punctual_core::{Failure, Wish};
use punctual_engine::{AttemptEnd, Claimed, EngineError, Pulse, Report};
use punctual_store::record::RunBody;
use punctual_store::{LiveRun, RunKey};

use super::{CALLBACK, InFlight, accepted};
use crate::app::App;
use crate::convert::payload;
use crate::convert::run::log_text;
use crate::traces::{RunParts, start_uuid, traceparent};

/// How long a callback is still heard after its attempt should have ended: clocks differ, and so do networks.
const CALLBACK_GRACE: SignedDuration = SignedDuration::from_hours(1);

/// How long a callback is heard where nothing bounds the attempt.
const CALLBACK_TIME: SignedDuration = SignedDuration::from_hours(7 * 24);

/// How often a report is tried when the database does not answer; after that the lease decides.
const REPORTS_MAX: u32 = 6;

pub(super) async fn perform(app: &Arc<App>, claimed: Claimed) {
    let (run, attempt) = (claimed.live.made.run, claimed.live.attempt);
    let namespace = claimed.body.namespace.clone();
    let call = match call_of(app, &claimed.live, &claimed.body) {
        Ok(call) => call,
        Err(message) => {
            let failure = Failure { retryable: false, ..Failure::new("invalid_call", &message) };
            return report(app, &namespace, run, attempt, AttemptEnd::Failed(failure, None)).await;
        }
    };
    // What was allowed when the schedule was made may not be any more.
    if let Err(error) = call.check(&app.calls.rules) {
        let failure = Failure { retryable: false, ..Failure::new("not_allowed", &error.to_string()) };
        return report(app, &namespace, run, attempt, AttemptEnd::Failed(failure, None)).await;
    }
    let stopper = Stopper::new();
    let signal = stopper.signal();
    let place = (namespace.clone(), run);
    app.calls.in_flight().insert(place.clone(), InFlight { attempt, stopper });
    let context = context(app, &claimed.live, &claimed.body, claimed.deadline);
    let end = app.calls.caller.call(&call, &context, signal).await;
    {
        let mut in_flight = app.calls.in_flight();
        // The next attempt may be here already, if this one was given up.
        if in_flight.get(&place).is_some_and(|call| call.attempt == attempt) {
            in_flight.remove(&place);
        }
    }
    let is_operation = matches!((&end, call), (End::Accepted { .. }, Call::Nexus(_)));
    record(app, &namespace, run, attempt, end).await;
    if is_operation {
        accepted::remember(app, &namespace, run, attempt);
    }
}

/// The call of a run, with the trace that it is part of; or why there is none.
pub(super) fn call_of(app: &App, live: &LiveRun, body: &RunBody) -> Result<Call, String> {
    let bytes = body.action.call.as_deref().ok_or("the run has no call in it")?;
    let mut call = Call::from_json(bytes).map_err(|error| error.to_string())?;
    if app.has_traces()
        && let Call::Http(HttpCall { headers, .. }) | Call::Nexus(NexusCall { headers, .. }) = &mut call
    {
        headers.entry("traceparent".into()).or_insert_with(|| traceparent(start_uuid(&parts(live, body))));
    }
    Ok(call)
}

async fn record(app: &Arc<App>, namespace: &Arc<str>, run: RunKey, attempt: u32, end: End) {
    let log = match &end {
        End::Done { log, .. } | End::Accepted { log, .. } | End::Failed { log, .. } => log.clone(),
        End::Cancelled => String::new(),
    };
    let _ = keep(app, namespace, log_pulse(app, run, attempt, &log)).await;
    let end = match end {
        End::Done { result, form, .. } => AttemptEnd::Succeeded(payload::of_call(result, form)),
        End::Cancelled => AttemptEnd::Cancelled,
        End::Failed { fault, .. } => {
            let mut failure = Failure::new(&fault.kind, &fault.message);
            failure.details = fault.details.and_then(|details| payload::of_call(details, Form::Json));
            failure.retryable = fault.retryable;
            let wait = fault.retry_after.and_then(|wait| SignedDuration::try_from(wait).ok());
            AttemptEnd::Failed(failure, wait.map(Wish::AtLeast))
        }
        End::Accepted { token, .. } => {
            let progress = token.and_then(|token| accepted::progress(&token, attempt));
            for again in 0..REPORTS_MAX {
                // The token first: who comes after a crash in between makes the attempt again, and is told it again.
                let pulse = Pulse { run, attempt, progress: progress.clone(), log: String::new() };
                let handed_over = match keep(app, namespace, pulse).await {
                    Ok(()) => app.engine.await_callback(run, attempt).await,
                    Err(error) => Err(error),
                };
                match handed_over {
                    Ok(_) => return,
                    Err(error) => pause(again, run, &error).await,
                }
            }
            return;
        }
    };
    report(app, namespace, run, attempt, end).await;
}

async fn report(app: &Arc<App>, namespace: &Arc<str>, run: RunKey, attempt: u32, end: AttemptEnd) {
    for again in 0..REPORTS_MAX {
        let (namespace, worker) = (namespace.clone(), app.calls.worker.clone());
        match app.engine.report(Report { namespace, worker, run, attempt, end: end.clone() }).await {
            Ok(_) => return,
            Err(error) => pause(again, run, &error).await,
        }
    }
}

async fn pause(again: u32, run: RunKey, error: &EngineError) {
    tracing::warn!(%run, %error, "the end of a call was not recorded; trying again");
    tokio::time::sleep(Duration::from_millis(100 << again)).await;
}

fn log_pulse(app: &App, run: RunKey, attempt: u32, log: &str) -> Pulse {
    let line = |text: &str| punctual_api::v1::LogLine { logged_at: None, attempt, text: text.to_owned() };
    let lines: Vec<_> = log.lines().map(line).collect();
    let log = log_text(&lines, attempt, app.engine.now()).unwrap_or_default();
    Pulse { run, attempt, progress: None, log }
}

/// Keeps what there is to keep.
async fn keep(app: &App, namespace: &str, pulse: Pulse) -> Result<(), EngineError> {
    if pulse.progress.is_none() && pulse.log.is_empty() {
        return Ok(());
    }
    app.engine.heartbeat(namespace, &app.calls.worker, vec![pulse], Duration::ZERO).await.map(drop)
}

/// What the call is told about its run.
pub(super) fn context(app: &App, live: &LiveRun, body: &RunBody, deadline: Option<Timestamp>) -> Context {
    let made = &live.made;
    let expires = deadline.and_then(|deadline| deadline.checked_add(CALLBACK_GRACE).ok());
    let expires = expires.or_else(|| app.engine.now().checked_add(CALLBACK_TIME).ok());
    let token = app.calls.sign(&Claim {
        purpose: CALLBACK.into(),
        namespace: body.namespace.to_string(),
        run: made.run.0,
        expires: expires.map_or(i64::MAX, Timestamp::as_second),
    });
    Context {
        namespace: body.namespace.to_string(),
        schedule_id: body.schedule.to_string(),
        run_id: made.run.to_string(),
        // The same for every attempt of one start: its schedule's incarnation, its nominal time, who asked.
        idempotency_key: start_uuid(&parts(live, body)).to_string(),
        nominal_time: made.origin.map(|(_, start)| start.nominal_time().to_string()),
        due_time: made.due_time.to_string(),
        attempt: live.attempt,
        input: payload::plain(&body.action.input),
        last_result: body.last.result.as_deref().and_then(payload::plain),
        callback_url: Some(format!("{}/v1/callbacks/{token}", app.calls.base)),
        callback_token: Some(token),
    }
}

fn parts<'a>(live: &'a LiveRun, body: &'a RunBody) -> RunParts<'a> {
    RunParts { made: &live.made, namespace: &body.namespace, schedule: &body.schedule }
}
