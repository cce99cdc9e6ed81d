//! Tells the server that the worker lives, for all runs at once, and hears whether one should stop.

use std::sync::Arc;
use std::time::Duration;

use punctual_api::v1;
use v1::directive::Word;

use super::Worker;
use super::claim::{PAUSE_MAX, PAUSE_MIN, is_final};
use super::held::Wish;

/// The longest time between two heartbeats.
const BEAT_MAX: Duration = Duration::from_secs(2);

/// How soon a worker that was told to stop a run asks again: the answer would come at once each time.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// What an answer may take at least, even where leases are short.
const ANSWER_WAIT_MIN: Duration = Duration::from_secs(1);

/// Beats while there are runs, for as long as the worker lives.
pub async fn beat(worker: Arc<Worker>) {
    // Log lines wait no longer than this either.
    let interval = (worker.settings.lease / 3).min(BEAT_MAX);
    let mut pause = PAUSE_MIN;
    loop {
        let pulses = worker.held.pulses();
        if pulses.is_empty() {
            worker.held.news.notified().await;
            continue;
        }
        let quiet: Vec<v1::RunHeartbeat> = pulses.iter().map(without_lines).collect();
        match tell(&worker, pulses, Duration::ZERO).await {
            Heard::Nothing => {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX).min(interval);
            }
            Heard::Stop => {
                pause = PAUSE_MIN;
                tokio::time::sleep(ASK_AGAIN.min(interval)).await;
            }
            Heard::GoOn => {
                pause = PAUSE_MIN;
                // The server answers at once when a run should stop; a new run is told of at once.
                tokio::select! {
                    _ = tell(&worker, quiet, interval) => {}
                    () = worker.held.news.notified() => {}
                }
            }
        }
    }
}

/// What the server said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// Nobody heard the heartbeat.
    Nothing,
    /// All runs go on.
    GoOn,
    /// Some run should stop.
    Stop,
}

/// The same beat without log lines, to wait with.
fn without_lines(pulse: &v1::RunHeartbeat) -> v1::RunHeartbeat {
    v1::RunHeartbeat { run_id: pulse.run_id.clone(), token: pulse.token, ..v1::RunHeartbeat::default() }
}

/// One heartbeat. If nobody hears it the commands run on: the lease may outlast the silence.
async fn tell(worker: &Worker, pulses: Vec<v1::RunHeartbeat>, wait: Duration) -> Heard {
    let request = v1::HeartbeatRequest {
        namespace: worker.session.namespace.clone(),
        worker_id: worker.settings.worker_id.clone(),
        runs: pulses.clone(),
        wait: prost_types::Duration::try_from(wait).ok(),
    };
    let mut workers = worker.session.client.workers.clone();
    // An answer that comes after the lease is over helps nobody.
    let limit = worker.session.timeout.min((worker.settings.lease / 3).max(ANSWER_WAIT_MIN)) + wait;
    let answer = tokio::time::timeout(limit, workers.heartbeat(request)).await;
    match answer {
        Ok(Ok(response)) => {
            worker.teller.server_is_back();
            let mut heard = Heard::GoOn;
            for directive in response.into_inner().runs {
                let wish = match directive.directive() {
                    Word::Cancel => Wish::Cancel,
                    Word::Gone => Wish::Gone,
                    Word::GoOn | Word::Unspecified => continue,
                };
                heard = Heard::Stop;
                worker.held.wish(&directive.run_id, wish);
            }
            heard
        }
        Ok(Err(status)) => {
            worker.teller.server_is_away(&status);
            // Lines that the server does not want must not cost the lease.
            if !is_final(&status) {
                worker.held.give_back(pulses);
            }
            Heard::Nothing
        }
        Err(_) => {
            worker.teller.server_is_away(&tonic::Status::deadline_exceeded("no answer in time"));
            worker.held.give_back(pulses);
            Heard::Nothing
        }
    }
}
