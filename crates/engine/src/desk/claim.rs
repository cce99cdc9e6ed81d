//! Workers take runs, or wait for some.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_store::record::{RunBody, decode_body};
use punctual_store::{Claim, LiveRun, QueueKey};

use super::Desk;
use crate::error::EngineError;

/// A run that a worker has just got.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The run.
    pub live: LiveRun,
    /// What it is to do.
    pub body: RunBody,
    /// The worker must be heard of before this.
    pub lease_until: Timestamp,
    /// The attempt must be over by this time.
    pub deadline: Option<Timestamp>,
}

impl Desk {
    /// Takes ready runs, or waits for some.
    pub(crate) async fn claim(
        self: &Arc<Desk>,
        queue: QueueKey,
        worker: Arc<str>,
        runs_max: usize,
        wait: Duration,
        lease: Option<SignedDuration>,
    ) -> Result<Vec<Claimed>, EngineError> {
        let give_up = tokio::time::Instant::now() + wait;
        let mut waiting = self.wait_at(queue);
        let bell = waiting.bell.clone();
        self.saw(queue, &worker);
        loop {
            // Who listens before looking misses nothing.
            let rung = bell.notified();
            waiting.look();
            let claim = Claim {
                queue,
                worker: worker.clone(),
                runs_max,
                now: self.clock.now(),
                keeper: self.node.keeper,
            };
            // Whoever asked may go away at any moment, but not between a claim and its lease: a run without a lease would
            // never be taken over.
            let desk = self.clone();
            let taking = tokio::spawn(async move {
                let taken = desk.store.claim(claim).await.map_err(|error| {
                    desk.doubt();
                    Desk::unavailable(error)
                })?;
                Ok((desk.hand_out(taken.runs, lease), taken.next_time))
            });
            let (taken, next_time) = taking.await.unwrap_or(Err(EngineError::Stopping))?;
            if !taken.is_empty() {
                drop(waiting);
                if taken.len() == runs_max {
                    // There may be more, for somebody else.
                    self.ring(queue);
                }
                return Ok(taken);
            }
            self.announce(queue);
            let opens = next_time.map(|time| self.clock.real(time.duration_since(self.clock.now())));
            let opens = opens.unwrap_or_default();
            tokio::select! {
                () = rung => {}
                () = tokio::time::sleep(opens), if next_time.is_some() => {}
                () = tokio::time::sleep_until(give_up) => return Ok(Vec::new()),
            }
        }
    }

    fn hand_out(&self, taken: Vec<LiveRun>, lease: Option<SignedDuration>) -> Vec<Claimed> {
        let now = self.clock.now();
        let mut watches = self.watches();
        let mut claimed = Vec::with_capacity(taken.len());
        for live in taken {
            self.metrics.claim_delay.observe_duration(now.duration_since(live.made.due_time));
            let body = match decode_body(&live.made.body) {
                Ok(body) => body,
                Err(error) => {
                    tracing::error!(run = %live.made.run, %error, "a run's body makes no sense; it is left alone");
                    continue;
                }
            };
            let Some(watch) = self.watch_of(&live, &body, now, lease) else { continue };
            watches.set(live.made.run, watch);
            let Some(held) = watches.any_lease(live.made.run) else { continue };
            held.log_tail = Some(String::new());
            let (lease_until, deadline) = (held.until, held.deadline);
            claimed.push(Claimed { live, body, lease_until, deadline });
        }
        self.metrics.running.set(watches.running() as u64);
        drop(watches);
        self.alarm.notify_one();
        claimed
    }
}
