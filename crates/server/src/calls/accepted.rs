//! Nexus operations that were taken on and go on elsewhere: a cancel of their run is passed on to them, whoever started them.
//!
//! What is needed for it is kept with the run: its call, and the operation's token as its progress. Here is only which runs
//! to ask about, so a restart forgets nothing and many operations take little memory.

use std::sync::Arc;
use std::time::Duration;

use punctual_actions::{Call, Form};
use punctual_engine::{CALLBACK_WORKER, CallbackEnd, Directive, EngineError, RunSearch, RunView};
use punctual_store::{Bytes, LiveState, RunFilter, RunKey};
use serde_json::{Value, json};

use super::beat::{RUNS_MAX, silent};
use super::perform::{call_of, context};
use crate::app::App;
use crate::convert::action::CALLS_QUEUE;
use crate::convert::payload;

/// Operations that are asked about; beyond it a cancel ends the run alone, after a while.
const ACCEPTED_MAX: usize = 100_000;

/// The pause after a page that could not be read.
const PAUSE: Duration = Duration::from_secs(1);

/// The token of an operation as the progress of the attempt that started it.
pub(super) fn progress(token: &str, attempt: u32) -> Option<Bytes> {
    let progress = json!({ "operation_token": token, "attempt": attempt });
    payload::of_call(progress.to_string().into_bytes(), Form::Json)
}

/// The token in a progress, if this attempt left it there.
fn token_in(progress: &[u8], attempt: u32) -> Option<String> {
    let said: Value = serde_json::from_slice(&payload::plain(progress)?).ok()?;
    let token = said["operation_token"].as_str()?;
    (said["attempt"].as_u64() == Some(attempt.into())).then(|| token.to_owned())
}

/// From now on a cancel of this run is passed on.
pub(super) fn remember(app: &App, namespace: &Arc<str>, run: RunKey, attempt: u32) {
    let mut accepted = app.calls.accepted();
    if accepted.len() < ACCEPTED_MAX {
        accepted.insert((namespace.clone(), run), attempt);
    }
}

/// Remembers the operations that were taken on before this process began.
pub(super) async fn recall(app: Arc<App>, namespace: Arc<str>) {
    let mut before = None;
    while !app.is_stopping() {
        let search = RunSearch {
            queue: Some(CALLS_QUEUE.into()),
            filter: Some(RunFilter::Running),
            before,
            count: RUNS_MAX,
            ..RunSearch::default()
        };
        match app.engine.list_runs(&namespace, search).await {
            Ok(page) => {
                for RunView { stored, .. } in page.runs.iter().filter(|view| is_operation(view)) {
                    remember(&app, &namespace, stored.run.made.run, stored.run.attempt);
                }
                before = page.next.and_then(|next| next.parse().ok()).map(RunKey);
                if before.is_none() {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(%namespace, %error, "operations that go on elsewhere could not be listed; trying again");
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => {}
                    () = app.stop() => return,
                }
            }
        }
    }
}

/// Whether a run is an operation that waits for its callback.
fn is_operation(view: &RunView) -> bool {
    let waits =
        matches!(&view.stored.run.state, LiveState::Running { worker, .. } if &**worker == CALLBACK_WORKER);
    waits && matches!(view.body.action.call.as_deref().map(Call::from_json), Some(Ok(Call::Nexus(_))))
}

/// Operations that somebody wants stopped are told so, and their runs end; those that are over are forgotten.
pub(super) async fn pass_cancels_on(app: &Arc<App>, namespace: &Arc<str>) {
    let accepted: Vec<(RunKey, u32)> = {
        let accepted = app.calls.accepted();
        let ours = accepted.iter().filter(|((of, _), _)| of == namespace);
        ours.map(|((_, run), attempt)| (*run, *attempt)).collect()
    };
    for runs in accepted.chunks(RUNS_MAX) {
        let pulses = runs.iter().map(|(run, attempt)| silent(*run, *attempt)).collect();
        let beat = app.engine.heartbeat(namespace, CALLBACK_WORKER, pulses, Duration::ZERO).await;
        for (answer, (_, attempt)) in beat.unwrap_or_default().into_iter().zip(runs) {
            if matches!(answer.directive, Directive::GoOn { .. }) {
                continue;
            }
            let place = (namespace.clone(), answer.run);
            let mut accepted = app.calls.accepted();
            // The run may be in its next attempt by now, which nobody asked about.
            let same = accepted.get(&place) == Some(attempt);
            if same {
                accepted.remove(&place);
            }
            drop(accepted);
            if same && matches!(answer.directive, Directive::Cancel { .. }) {
                tokio::spawn(cancel(app.clone(), namespace.clone(), answer.run, *attempt));
            }
        }
    }
}

async fn cancel(app: Arc<App>, namespace: Arc<str>, run: RunKey, attempt: u32) {
    let told = tell(&app, &namespace, run, attempt).await;
    let ended = match told {
        Ok(()) => app.engine.callback(&namespace, run, Err(CallbackEnd::Cancelled)).await.map(drop),
        Err(error) => Err(error),
    };
    if let Err(error) = ended {
        tracing::warn!(%run, %error, "a cancel could not be passed on; trying again");
        remember(&app, &namespace, run, attempt);
    }
}

/// Tells the operation. One that cannot be reached, or that never gave a token, goes on for nothing: its run ends all the same.
async fn tell(app: &App, namespace: &str, run: RunKey, attempt: u32) -> Result<(), EngineError> {
    let view = app.engine.run(namespace, run).await?;
    let progress = app.engine.run_details(namespace, run).await?.progress;
    let token = progress.and_then(|progress| token_in(&progress, attempt));
    let (live, body) = (&view.stored.run, &view.body);
    let (Some(token), Ok(Call::Nexus(call))) = (token, call_of(app, live, body)) else {
        tracing::warn!(%run, "an operation without a token could not be told that its run is cancelled");
        return Ok(());
    };
    if let Err(fault) = app.calls.caller.cancel_nexus(&call, &context(app, live, body, None), &token).await {
        tracing::warn!(%run, %fault, "an operation could not be told that its run is cancelled");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_of_the_attempt_that_left_it() {
        let kept = progress("a \"token\"", 2).unwrap();
        assert_eq!(token_in(&kept, 2).as_deref(), Some("a \"token\""));
        assert_eq!(token_in(&kept, 3), None);
        for strange in [&b""[..], b"\xff", &payload::of_call(b"{\"rows\": 3}".to_vec(), Form::Json).unwrap()]
        {
            assert_eq!(token_in(strange, 2), None);
        }
    }
}
