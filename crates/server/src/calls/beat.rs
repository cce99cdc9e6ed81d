//! Keeps the leases of calls in flight, and stops those that somebody wants stopped.

use std::sync::Arc;
use std::time::Duration;

use punctual_engine::{Directive, Pulse};
use punctual_store::RunKey;

use super::InFlight;
use super::accepted::pass_cancels_on;
use crate::app::App;

/// The pause between two beats, so that a call that takes its time to stop is not asked without end.
const PAUSE: Duration = Duration::from_millis(200);

/// Runs that one beat names.
pub(super) const RUNS_MAX: usize = 1_000;

/// Beats for the calls of one namespace until the server stops.
pub(super) async fn keep(app: Arc<App>, namespace: Arc<str>) {
    let wait = app.engine.config().worker_lease.unsigned_abs() / 4;
    loop {
        let in_flight: Vec<(RunKey, u32)> = {
            let calls = app.calls.in_flight();
            let ours = calls.iter().filter(|((of, _), _)| *of == namespace);
            ours.map(|((_, run), call)| (*run, call.attempt)).collect()
        };
        for runs in in_flight.chunks(RUNS_MAX) {
            let pulses = runs.iter().map(|(run, attempt)| silent(*run, *attempt)).collect();
            // One group may wait for news; several take turns.
            let wait = if in_flight.len() > RUNS_MAX { Duration::ZERO } else { wait };
            let beat = app.engine.heartbeat(&namespace, &app.calls.worker, pulses, wait);
            let answers = tokio::select! {
                answers = beat => answers.unwrap_or_default(),
                () = app.stop() => return,
            };
            let calls = app.calls.in_flight();
            for (answer, (_, attempt)) in answers.iter().zip(runs) {
                let stops = !matches!(answer.directive, Directive::GoOn { .. });
                // The run may be in its next attempt by now, which nobody asked about.
                let same = |call: &&InFlight| stops && call.attempt == *attempt;
                if let Some(call) = calls.get(&(namespace.clone(), answer.run)).filter(same) {
                    call.stopper.stop();
                }
            }
        }
        pass_cancels_on(&app, &namespace).await;
        let pause = if in_flight.is_empty() { wait.min(Duration::from_secs(1)) } else { PAUSE };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = app.stop() => return,
        }
    }
}

pub(super) fn silent(run: RunKey, attempt: u32) -> Pulse {
    Pulse { run, attempt, progress: None, log: String::new() }
}
