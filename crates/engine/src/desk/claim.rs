//! Workers take runs, or wait for some.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Failure, Outcome};
use punctual_store::record::{RunBody, decode_body, encode_failure};
use punctual_store::{Claim, LiveRun, QueueKey, RunKey};

use super::Desk;
use super::watch::Watch;
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
            // never be taken over. What was taken for somebody who has gone goes back.
            let desk = self.clone();
            let taking = async move {
                let taken = desk.store.claim(claim).await.inspect_err(|_| desk.doubt())?;
                let runs = desk.hand_out(taken.runs, lease);
                Ok::<_, EngineError>((Unheard { desk, runs }, taken.next_time))
            };
            let (taken, next_time) = self.to_the_end(taking).await?;
            let taken = taken.heard();
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

/// Runs that were taken for somebody who has not heard of them yet.
struct Unheard {
    desk: Arc<Desk>,
    runs: Vec<Claimed>,
}

impl Unheard {
    fn heard(mut self) -> Vec<Claimed> {
        std::mem::take(&mut self.runs)
    }
}

impl Drop for Unheard {
    fn drop(&mut self) {
        if !self.runs.is_empty() {
            self.desk.give_back(std::mem::take(&mut self.runs));
        }
    }
}

impl Desk {
    /// Nobody has heard of these runs: others may have them at once, whatever attempts are left, since none was made. The
    /// number of the attempt stays spent, so that nobody can report it later.
    pub(crate) fn give_back(self: &Arc<Desk>, runs: Vec<Claimed>) {
        // Without a runtime the process ends, and the leases end the attempts.
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let desk = self.clone();
        self.works.spawn(async move {
            for claimed in runs {
                let (run, attempt) = (claimed.live.made.run, claimed.live.attempt);
                if let Err(error) = desk.give_back_one(run, attempt).await {
                    tracing::warn!(%run, %error, "a run that nobody heard of could not be given back; its lease ends");
                    desk.end_lease(run, attempt);
                }
            }
        });
    }

    async fn give_back_one(&self, run: RunKey, attempt: u32) -> Result<(), EngineError> {
        let Some(lease) = self.watches().lease(run, attempt).cloned() else { return Ok(()) };
        let failure = Failure::new("claim_unheard", "whoever asked for the run had gone before it came");
        if lease.stop.is_some() {
            self.attempt_failed(run, &lease, Outcome::Failed, &failure, None).await?;
        } else {
            self.retry_attempt(run, &lease, self.clock.now(), encode_failure(&failure)).await?;
        }
        Ok(())
    }

    /// Has the watch deal with an attempt, which asks again until the database answers.
    fn end_lease(&self, run: RunKey, attempt: u32) {
        let mut watches = self.watches();
        if let Some(mut lease) = watches.lease(run, attempt).cloned() {
            lease.until = self.clock.now();
            watches.set(run, Watch::Running(Box::new(lease)));
        }
        drop(watches);
        self.alarm.notify_one();
    }
}
