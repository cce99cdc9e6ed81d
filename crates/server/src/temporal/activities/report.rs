//! A worker reports how an attempt ended.

use punctual_core::{Failure as RunFailure, Payload as Kept};
use punctual_engine::{AttemptEnd, Pulse, Recorded, Report};

use super::super::payloads;
use super::super::refusal::Refusal;
use super::super::wire::common::Payloads;
use super::super::wire::failure::Failure;
use super::super::wire::service as wire;
use super::failure;
use super::token::{Attempt, Names, of_run};
use crate::app::App;
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::traces::PlainNews;

/// The names in a request that has no token.
macro_rules! names {
    ($asked:ident) => {
        Names {
            namespace: &$asked.namespace,
            workflow_id: &$asked.workflow_id,
            run_id: &$asked.run_id,
            activity_id: &$asked.activity_id,
        }
    };
}
pub(super) use names;

pub(in crate::temporal) async fn completed(
    app: &App,
    asked: wire::RespondActivityTaskCompletedRequest,
) -> Result<wire::RespondActivityTaskCompletedResponse, Refusal> {
    let attempt = Attempt::of_token(&asked.namespace, &asked.task_token)?;
    record(app, attempt, success(asked.result)).await?;
    Ok(wire::RespondActivityTaskCompletedResponse {})
}

pub(in crate::temporal) async fn completed_by_id(
    app: &App,
    asked: wire::RespondActivityTaskCompletedByIdRequest,
) -> Result<wire::RespondActivityTaskCompletedByIdResponse, Refusal> {
    let attempt = Attempt::of_names(app, names!(asked)).await?;
    record(app, attempt, success(asked.result)).await?;
    Ok(wire::RespondActivityTaskCompletedByIdResponse {})
}

pub(in crate::temporal) async fn failed(
    app: &App,
    asked: wire::RespondActivityTaskFailedRequest,
) -> Result<wire::RespondActivityTaskFailedResponse, Refusal> {
    let attempt = Attempt::of_token(&asked.namespace, &asked.task_token)?;
    record(app, attempt, trouble(app, asked.failure, asked.last_heartbeat_details)).await?;
    Ok(wire::RespondActivityTaskFailedResponse::default())
}

pub(in crate::temporal) async fn failed_by_id(
    app: &App,
    asked: wire::RespondActivityTaskFailedByIdRequest,
) -> Result<wire::RespondActivityTaskFailedByIdResponse, Refusal> {
    let attempt = Attempt::of_names(app, names!(asked)).await?;
    record(app, attempt, trouble(app, asked.failure, asked.last_heartbeat_details)).await?;
    Ok(wire::RespondActivityTaskFailedByIdResponse::default())
}

pub(in crate::temporal) async fn cancelled(
    app: &App,
    asked: wire::RespondActivityTaskCanceledRequest,
) -> Result<wire::RespondActivityTaskCanceledResponse, Refusal> {
    let attempt = Attempt::of_token(&asked.namespace, &asked.task_token)?;
    record(app, attempt, given_up(asked.details)).await?;
    Ok(wire::RespondActivityTaskCanceledResponse {})
}

pub(in crate::temporal) async fn cancelled_by_id(
    app: &App,
    asked: wire::RespondActivityTaskCanceledByIdRequest,
) -> Result<wire::RespondActivityTaskCanceledByIdResponse, Refusal> {
    let attempt = Attempt::of_names(app, names!(asked)).await?;
    record(app, attempt, given_up(asked.details)).await?;
    Ok(wire::RespondActivityTaskCanceledByIdResponse {})
}

/// The last words about an attempt.
pub(super) struct LastWords {
    end: AttemptEnd,
    progress: Option<Kept>,
    log: String,
}

fn success(result: Option<Payloads>) -> LastWords {
    let end = match keep(result) {
        Ok(result) => AttemptEnd::Succeeded(result),
        Err(large) => AttemptEnd::Failed(too_large("result", large), None),
    };
    LastWords { end, progress: None, log: String::new() }
}

fn trouble(app: &App, failure: Option<Failure>, progress: Option<Payloads>) -> LastWords {
    let failure = failure.unwrap_or_default();
    let log = failure::log(&failure, app.engine.now());
    let (failure, wish) = failure::read(failure);
    // A failure counts, even where what was told last is too large to be kept.
    LastWords { end: AttemptEnd::Failed(failure, wish), progress: keep(progress).unwrap_or_default(), log }
}

fn given_up(details: Option<Payloads>) -> LastWords {
    LastWords { end: AttemptEnd::Cancelled, progress: keep(details).unwrap_or_default(), log: String::new() }
}

/// More bytes than are kept.
pub(super) struct TooLarge(usize);

/// Payloads as they are kept; nothing if there are none.
pub(super) fn keep(given: Option<Payloads>) -> Result<Option<Kept>, TooLarge> {
    let kept = given.map(|payloads| payloads::keep(&payloads)).filter(|kept| !kept.is_empty());
    match kept {
        Some(kept) if kept.len() > PAYLOAD_BYTES_MAX => Err(TooLarge(kept.len())),
        kept => Ok(kept),
    }
}

/// What an attempt said that is too large to be kept. Refusing the report would leave the run to its timeouts, and every further
/// attempt would say as much: the run fails for good, and says why.
pub(super) fn too_large(what: &str, TooLarge(found): TooLarge) -> RunFailure {
    let message = format!("the {what} has {found} bytes, at most {PAYLOAD_BYTES_MAX} are kept");
    RunFailure { retryable: false, ..RunFailure::new("payload_too_large", &message) }
}

/// Ends an attempt because of what it told on its way.
pub(super) async fn fail(app: &App, attempt: Attempt, failure: RunFailure) -> Result<(), Refusal> {
    let end = AttemptEnd::Failed(failure, None);
    record(app, attempt, LastWords { end, progress: None, log: String::new() }).await
}

async fn record(app: &App, attempt: Attempt, words: LastWords) -> Result<(), Refusal> {
    let Attempt { namespace, worker, run, attempt } = attempt;
    let LastWords { end, progress, log } = words;
    if progress.is_some() || !log.is_empty() {
        let pulse = Pulse { run, attempt, progress, log };
        let heard = app.engine.heartbeat(&namespace, &worker, vec![pulse], Default::default()).await;
        heard.map_err(of_run)?;
    }
    let recorded = app.engine.report(Report { namespace, worker, run, attempt, end }).await;
    match recorded.map_err(of_run)? {
        Recorded::Closed => {
            app.tell_traces([PlainNews::Over(run)]);
            Ok(())
        }
        Recorded::Retried { .. } => Ok(()),
        Recorded::Stale => Err(over(run, attempt)),
    }
}

/// The attempt counts no more.
pub(super) fn over(run: punctual_store::RunKey, attempt: u32) -> Refusal {
    Refusal::not_found(format!(
        "attempt {attempt} of run {run} counts no more: it was reported, timed out, or the run has ended"
    ))
}
