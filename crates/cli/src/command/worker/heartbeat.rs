//! Tells the server that the worker lives, for all runs at once, and hears whether one should stop.

use std::sync::Arc;
use std::time::Duration;

use punctual_api::v1;
use v1::directive::Word;

use super::Worker;
use super::claim::{PAUSE_MAX, PAUSE_MIN, is_final};
use super::held::Wish;

/// The longest time between two heartbeats: a request to stop waits for no longer than this.
const BEAT_MAX: Duration = Duration::from_millis(500);

/// What an answer may take at least, even where leases are short.
const ANSWER_WAIT_MIN: Duration = Duration::from_secs(1);

/// Beats while there are runs, for as long as the worker lives.
pub async fn beat(worker: Arc<Worker>) {
    let interval = (worker.settings.lease / 3).min(BEAT_MAX);
    let mut pause = PAUSE_MIN;
    loop {
        let pulses = worker.held.pulses();
        if pulses.is_empty() {
            worker.held.news.notified().await;
            continue;
        }
        if tell(&worker, pulses).await {
            pause = PAUSE_MIN;
            tokio::time::sleep(interval).await;
        } else {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX).min(worker.settings.lease / 3);
        }
    }
}

/// One heartbeat; false if nobody heard it. The commands run on: the lease may outlast the silence.
async fn tell(worker: &Worker, pulses: Vec<v1::RunHeartbeat>) -> bool {
    let request = v1::HeartbeatRequest {
        namespace: worker.session.namespace.clone(),
        worker_id: worker.settings.worker_id.clone(),
        runs: pulses.clone(),
    };
    let mut workers = worker.session.client.workers.clone();
    // An answer that comes after the lease is over helps nobody.
    let limit = worker.session.timeout.min((worker.settings.lease / 3).max(ANSWER_WAIT_MIN));
    let answer = tokio::time::timeout(limit, workers.heartbeat(request)).await;
    match answer {
        Ok(Ok(response)) => {
            worker.teller.server_is_back();
            for directive in response.into_inner().runs {
                match directive.directive() {
                    Word::Cancel => worker.held.wish(&directive.run_id, Wish::Cancel),
                    Word::Gone => worker.held.wish(&directive.run_id, Wish::Gone),
                    Word::GoOn | Word::Unspecified => {}
                }
            }
            true
        }
        Ok(Err(status)) => {
            worker.teller.server_is_away(&status);
            // Lines that the server does not want must not cost the lease.
            if !is_final(&status) {
                worker.held.give_back(pulses);
            }
            false
        }
        Err(_) => {
            worker.teller.server_is_away(&tonic::Status::deadline_exceeded("no answer in time"));
            worker.held.give_back(pulses);
            false
        }
    }
}
