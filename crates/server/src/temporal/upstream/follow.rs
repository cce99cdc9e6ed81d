//! One start from its request to its end: asked for until the cluster has it, then waited for.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use punctual_core::{Failure, Outcome, StopKind};
use punctual_engine::{AttemptEnd, Claimed, EngineError, Recorded, Report};
use tokio::sync::watch;
use tonic::{Code, Status};

use super::super::wire::common::WorkflowExecution;
use super::begin::begin;
use super::callbacks::Way;
use super::ending::{self, Ended, Ending};
use super::stop::{Stop, WAIT_FIRST, WAIT_MAX, cancel, terminate};
use super::workflows::{Wish, worker};
use super::{Upstream, request};
use crate::app::App;

/// The longest time between two looks at a workflow whose end a callback will tell.
const LOOK_PAUSE: Duration = Duration::from_secs(60);

/// How much shorter it may be, so that workflows that began together are not looked at together.
const LOOK_SPREAD: Duration = Duration::from_secs(15);

/// How long after an end its callback should have come.
const CALLBACK_PATIENCE: SignedDuration = SignedDuration::from_secs(10);

/// Follows a start until its workflow has ended, and records how.
pub(super) async fn follow(
    app: &Arc<App>,
    upstream: &Upstream,
    claimed: &Claimed,
    mut told: watch::Receiver<Wish>,
) {
    let namespace = claimed.body.namespace.clone();
    let request = match request::start(claimed, upstream.callbacks.of(app, claimed)) {
        Ok(request) => request,
        Err(reason) => {
            let failure = Failure { retryable: false, ..Failure::new("invalid_start", &reason) };
            return finish(app, claimed, AttemptEnd::Failed(failure, None)).await;
        }
    };
    let mut execution = WorkflowExecution { workflow_id: request.workflow_id.clone(), run_id: String::new() };
    // Who takes over knows nothing of what was asked for before.
    let (mut may_run, mut has_callback) = (claimed.live.attempt > 1, false);
    let started = tokio::select! {
        biased;
        // First, since nobody begins what is to be stopped.
        _ = told.wait_for(|wish| *wish != Wish::GoOn) => None,
        started = begin(upstream, claimed, request, &mut may_run) => Some(started),
    };
    match started {
        Some(Ok(begun)) => (execution.run_id, has_callback) = (begun.run_id, begun.has_callback),
        Some(Err(status)) => return finish(app, claimed, AttemptEnd::Failed(refused(&status), None)).await,
        // The cluster may have it although it never said so. Then there is something to stop.
        None if may_run => {}
        None if *told.borrow() == Wish::Cancel => return finish(app, claimed, AttemptEnd::Cancelled).await,
        None => return,
    }
    // Whoever takes over may be answered with a workflow that was asked for before, perhaps without a callback, and whose
    // callback may have come while nobody was there: it is polled for from the first moment.
    let pause = (has_callback && claimed.live.attempt == 1).then(|| look_pause(claimed.live.made.run.0));
    let end = ending::wait(upstream, &namespace, execution.clone(), pause);
    tokio::pin!(end);
    loop {
        let wish = *told.borrow_and_update();
        let stop =
            Stop { namespace: &namespace, identity: request::identity(&claimed.body), execution: &execution };
        match wish {
            Wish::GoOn => {}
            Wish::Cancel => {
                let told = cancel(upstream, stop, cancel_id(claimed)).await;
                if told == Err(Code::NotFound) && execution.run_id.is_empty() {
                    return finish(app, claimed, AttemptEnd::Cancelled).await;
                }
            }
            Wish::Gone => {
                match outcome(app, claimed).await {
                    // The run was ended here without asking its workflow.
                    Some(Outcome::Terminated) => drop(terminate(upstream, stop).await),
                    // It was cancelled before anybody was known to have it, or its workflow has ended: then this is harmless.
                    Some(Outcome::Cancelled) => drop(cancel(upstream, stop, cancel_id(claimed)).await),
                    // It has ended, perhaps by its callback at another node, or somebody else follows it.
                    _ => {}
                }
                return;
            }
        }
        tokio::select! {
            (ended, way) = &mut end => return record(app, upstream, claimed, ended, way).await,
            changed = told.changed() => if changed.is_err() { return },
        }
    }
}

/// The same for one run each time, and spread over all runs.
fn look_pause(run: i64) -> Duration {
    let spread = LOOK_SPREAD.as_millis() as u64;
    LOOK_PAUSE - Duration::from_millis(run.unsigned_abs().wrapping_mul(7_919) % spread)
}

/// The same for every wish that this workflow may end.
fn cancel_id(claimed: &Claimed) -> String {
    format!("cancel-{}", request::id(&claimed.live, &claimed.body))
}

/// How the run ended, if it did.
async fn outcome(app: &App, claimed: &Claimed) -> Option<Outcome> {
    let view = app.engine.run(&claimed.body.namespace, claimed.live.made.run).await;
    Some(view.ok()?.stored.closing?.outcome)
}

fn refused(status: &Status) -> Failure {
    let word = match status.code() {
        Code::AlreadyExists => "workflow_already_started",
        Code::NotFound => "not_found",
        Code::PermissionDenied | Code::Unauthenticated => "not_allowed",
        _ => "start_refused",
    };
    Failure { retryable: false, ..Failure::new(word, status.message()) }
}

async fn record(app: &Arc<App>, upstream: &Upstream, claimed: &Claimed, ended: Ended, way: Way) {
    let late = ended.at.is_some_and(|at| app.engine.now().duration_since(at) > CALLBACK_PATIENCE);
    if way == Way::Look && late {
        upstream.callbacks.missed(&claimed.body.namespace);
    }
    let end = match ended.ending {
        Ending::Completed(result) => AttemptEnd::Succeeded(result),
        Ending::Failed(failure) => AttemptEnd::Failed(failure, None),
        Ending::Cancelled => AttemptEnd::Cancelled,
        Ending::Terminated => {
            // No report says so: to a worker a terminated run is simply gone.
            let (namespace, run) = (&claimed.body.namespace, claimed.live.made.run);
            if until_recorded(claimed, || app.engine.stop_run(namespace, run, StopKind::Terminate)).await {
                upstream.callbacks.count(way);
            }
            return;
        }
    };
    if report(app, claimed, end).await == Recorded::Closed {
        upstream.callbacks.count(way);
    }
}

/// Records an end that nothing follows from.
async fn finish(app: &App, claimed: &Claimed, end: AttemptEnd) {
    report(app, claimed, end).await;
}

/// Records an end: until then the lease is kept.
async fn report(app: &App, claimed: &Claimed, end: AttemptEnd) -> Recorded {
    let report = Report {
        namespace: claimed.body.namespace.clone(),
        worker: worker(app).into(),
        run: claimed.live.made.run,
        attempt: claimed.live.attempt,
        end,
    };
    until_recorded(claimed, || app.engine.report(report.clone())).await
}

/// Tries to record an end for as long as it takes.
async fn until_recorded<T, F>(claimed: &Claimed, record: impl Fn() -> F) -> T
where
    F: Future<Output = Result<T, EngineError>>,
{
    let mut wait = WAIT_FIRST;
    loop {
        match record().await {
            Ok(recorded) => return recorded,
            Err(error) => {
                tracing::warn!(run = %claimed.live.made.run, %error, "an end was not recorded; trying again");
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(WAIT_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_spread_and_none_is_later_than_a_minute() {
        let pauses: Vec<Duration> = (0..100).map(look_pause).collect();
        let (first, last) = (pauses.iter().min().unwrap(), pauses.iter().max().unwrap());
        assert!(*first >= LOOK_PAUSE - LOOK_SPREAD && *last == LOOK_PAUSE);
        assert!(*last - *first > LOOK_SPREAD / 2);
    }
}
