//! Workers take runs, and tell that they are alive.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::StopKind;
use punctual_store::record::{RunBody, decode_body};
use punctual_store::{Batch, Bytes, Claim, LiveRun, QueueKey, RunKey, RunWrite, Unit};

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

/// What a worker tells of one of its runs.
#[derive(Clone, Debug)]
pub struct Pulse {
    /// Which run.
    pub run: RunKey,
    /// Which attempt.
    pub attempt: u32,
    /// How far it is.
    pub progress: Option<Bytes>,
    /// New lines of its log.
    pub log: String,
}

/// What a worker is told about one of its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PulseAnswer {
    /// Which run.
    pub run: RunKey,
    /// What to do.
    pub directive: Directive,
}

/// What a worker should do with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directive {
    /// Go on; it must be heard of before this.
    GoOn {
        /// The end of the lease.
        lease_until: Timestamp,
    },
    /// Somebody asks it to stop: end it soon, and report how.
    Cancel {
        /// The end of the lease.
        lease_until: Timestamp,
    },
    /// The run is over or somebody else's: stop at once, nothing it does counts any more.
    Gone,
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
        let bell = self.bell(queue);
        self.saw(queue, &worker);
        loop {
            // Who listens before looking misses nothing.
            let rung = bell.notified();
            let claim = Claim {
                queue,
                worker: worker.clone(),
                runs_max,
                now: self.clock.now(),
                keeper: Default::default(),
            };
            // Whoever asked may go away at any moment, but not between a claim and its lease: a run without a lease would
            // never be taken over.
            let desk = self.clone();
            let taking = tokio::spawn(async move {
                let taken = desk.store.claim(claim).await.map_err(Desk::unavailable)?;
                Ok((desk.hand_out(taken.runs, lease), taken.next_time))
            });
            let (taken, next_time) = taking.await.unwrap_or(Err(EngineError::Stopping))?;
            if !taken.is_empty() {
                if taken.len() == runs_max {
                    // There may be more, for somebody else.
                    self.ring(queue);
                }
                return Ok(taken);
            }
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
            let (lease_until, deadline) = (held.until, held.deadline);
            claimed.push(Claimed { live, body, lease_until, deadline });
        }
        self.metrics.running.set(watches.running() as u64);
        drop(watches);
        self.alarm.notify_one();
        claimed
    }

    /// Takes note of a worker's runs, and answers at once if one of them should not go on, else after the wait.
    pub(crate) async fn heartbeat(
        &self,
        namespace: &str,
        worker: &str,
        pulses: Vec<Pulse>,
        wait: Duration,
    ) -> Result<Vec<PulseAnswer>, EngineError> {
        let runs: Vec<(RunKey, u32)> = pulses.iter().map(|pulse| (pulse.run, pulse.attempt)).collect();
        // Who waits longer than its lease would lose the run that it asks about.
        let wait = wait.min(self.shortest_lease(&runs) / 2);
        let give_up = tokio::time::Instant::now() + wait;
        let worker = (namespace, worker);
        self.keep_details(pulses).await?;
        loop {
            let heard = self.directives.notified();
            let answers = self.answer_pulses(worker, &runs);
            let urgent = answers.iter().any(|answer| !matches!(answer.directive, Directive::GoOn { .. }));
            if urgent || wait.is_zero() {
                return Ok(answers);
            }
            tokio::select! {
                () = heard => {}
                () = tokio::time::sleep_until(give_up) => return Ok(self.answer_pulses(worker, &runs)),
            }
        }
    }

    fn shortest_lease(&self, runs: &[(RunKey, u32)]) -> Duration {
        let mut watches = self.watches();
        let lengths =
            runs.iter().filter_map(|(run, attempt)| watches.lease(*run, *attempt).map(|lease| lease.length));
        lengths.min().unwrap_or(SignedDuration::MAX).unsigned_abs()
    }

    fn answer_pulses(&self, (namespace, worker): (&str, &str), runs: &[(RunKey, u32)]) -> Vec<PulseAnswer> {
        let now = self.clock.now();
        let mut watches = self.watches();
        let answers = runs.iter().map(|(run, attempt)| {
            let held = watches
                .lease(*run, *attempt)
                .filter(|lease| &*lease.worker == worker && &*lease.key.namespace == namespace)
                .map(|lease| lease.stop);
            let lease_until = held.and_then(|_| watches.extend(*run, *attempt, now));
            let directive = match (held, lease_until) {
                (Some(None), Some(lease_until)) => Directive::GoOn { lease_until },
                (Some(Some(StopKind::Cancel)), Some(lease_until)) => Directive::Cancel { lease_until },
                _ => Directive::Gone,
            };
            PulseAnswer { run: *run, directive }
        });
        answers.collect()
    }

    /// Writes down progress and log lines, if there are any.
    async fn keep_details(&self, pulses: Vec<Pulse>) -> Result<(), EngineError> {
        let mut writes = Vec::new();
        for Pulse { run, attempt, progress, log } in pulses {
            let mut watches = self.watches();
            let Some(lease) = watches.lease(run, attempt) else { continue };
            let log_tail = (!log.is_empty()).then(|| {
                append_tail(&mut lease.log_tail, &log, self.config.log_tail_bytes_max);
                lease.log_tail.as_bytes().into()
            });
            if progress.is_some() || log_tail.is_some() {
                writes.push(RunWrite::Details { run, attempt, progress, log_tail });
            }
        }
        if !writes.is_empty() {
            let batch = Batch::of(vec![Unit { runs: writes, ..Unit::default() }]);
            self.store.commit(batch).await.map_err(Desk::unavailable)?;
        }
        Ok(())
    }
}

/// Adds lines to a log, and drops whole lines from its front when it grows too long.
fn append_tail(tail: &mut String, lines: &str, bytes_max: usize) {
    tail.push_str(lines);
    if !tail.ends_with('\n') {
        tail.push('\n');
    }
    if tail.len() > bytes_max {
        let cut = tail.len() - bytes_max;
        let line = tail.as_bytes()[cut..]
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(tail.len(), |at| cut + at + 1);
        tail.drain(..line);
    }
}

#[cfg(test)]
mod tests {
    use super::append_tail;

    #[test]
    fn a_log_tail_keeps_whole_lines_from_its_end() {
        let mut tail = String::new();
        append_tail(&mut tail, "one", 12);
        append_tail(&mut tail, "two\nthree", 12);
        assert_eq!(tail, "two\nthree\n");
        append_tail(&mut tail, "äöü-äöü-äöü", 12);
        assert_eq!(tail, "");
    }
}
