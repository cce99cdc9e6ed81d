//! Workers tell that they are alive, and are told what to do with their runs.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::StopKind;
use punctual_store::record::decode_body;
use punctual_store::{Bytes, LiveRun, LiveState, RunKey, RunWrite, Unit};

use super::Desk;
use super::keep::live;
use crate::error::EngineError;

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
    /// Takes note of a worker's runs, and answers at once if one of them should not go on, else after the wait.
    pub(crate) async fn heartbeat(
        self: &Arc<Desk>,
        namespace: &str,
        worker: &str,
        pulses: Vec<Pulse>,
        wait: Duration,
    ) -> Result<Vec<PulseAnswer>, EngineError> {
        let runs: Vec<(RunKey, u32)> = pulses.iter().map(|pulse| (pulse.run, pulse.attempt)).collect();
        let worker = (namespace, worker);
        // That it is alive counts, whatever else of what it tells cannot be written or looked up now.
        self.answer_pulses(worker, &runs);
        self.hear_of_others(worker, &runs).await?;
        // Who waits longer than its lease would lose the run that it asks about.
        let wait = wait.min(self.shortest_lease(&runs) / 2);
        let give_up = tokio::time::Instant::now() + wait;
        self.keep_details(pulses).await?;
        loop {
            let heard = self.directives.notified();
            let answers = self.answer_pulses(worker, &runs);
            let urgent = answers.iter().any(|answer| !matches!(answer.directive, Directive::GoOn { .. }));
            if urgent || wait.is_zero() {
                return self.spare_others(worker, &runs, answers).await;
            }
            tokio::select! {
                () = heard => {}
                () = tokio::time::sleep_until(give_up) => {
                    let answers = self.answer_pulses(worker, &runs);
                    return self.spare_others(worker, &runs, answers).await;
                }
            }
        }
    }

    /// A worker may turn to any node: whoever hears of a run looks after it from then on.
    async fn hear_of_others(
        self: &Arc<Desk>,
        worker: (&str, &str),
        runs: &[(RunKey, u32)],
    ) -> Result<(), EngineError> {
        if !self.node.shared {
            return Ok(());
        }
        let unknown: Vec<(RunKey, u32)> = {
            let mut watches = self.watches();
            let is_unknown = |(run, attempt): &&(RunKey, u32)| watches.lease(*run, *attempt).is_none();
            runs.iter().filter(is_unknown).copied().collect()
        };
        let found = self.find_held(worker, &unknown).await?;
        if found.is_empty() {
            return Ok(());
        }
        let desk = self.clone();
        self.to_the_end(async move { desk.take_over(&found).await }).await
    }

    /// Who turned to another node meanwhile is not told that its run is gone.
    async fn spare_others(
        &self,
        worker: (&str, &str),
        runs: &[(RunKey, u32)],
        mut answers: Vec<PulseAnswer>,
    ) -> Result<Vec<PulseAnswer>, EngineError> {
        if !self.node.shared {
            return Ok(answers);
        }
        let gone = runs.iter().zip(&answers).filter(|(_, answer)| answer.directive == Directive::Gone);
        let gone: Vec<(RunKey, u32)> = gone.map(|(run, _)| *run).collect();
        let now = self.clock.now();
        for live in self.find_held(worker, &gone).await? {
            let heartbeat = decode_body(&live.made.body).ok().and_then(|body| body.action.timeouts.heartbeat);
            let length = heartbeat.unwrap_or(self.config.worker_lease).min(self.config.worker_lease);
            let lease_until = now.checked_add(length).unwrap_or(Timestamp::MAX);
            let directive = match live.stop {
                None => Directive::GoOn { lease_until },
                Some(StopKind::Cancel) => Directive::Cancel { lease_until },
                Some(StopKind::Terminate) => Directive::Gone,
            };
            let of_run = |answer: &&mut PulseAnswer| answer.run == live.made.run;
            answers.iter_mut().filter(of_run).for_each(|answer| answer.directive = directive);
        }
        Ok(answers)
    }

    /// Those of these attempts that the worker really has.
    async fn find_held(
        &self,
        (namespace, worker): (&str, &str),
        runs: &[(RunKey, u32)],
    ) -> Result<Vec<LiveRun>, EngineError> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let stored = self.store.load_runs(runs.iter().map(|(run, _)| *run).collect()).await?;
        let held = runs.iter().zip(&stored).filter_map(|((_, attempt), stored)| {
            let live = live(stored).filter(|live| live.attempt == *attempt)?;
            let has = matches!(&live.state, LiveState::Running { worker: of, .. } if **of == *worker);
            let body = decode_body(&live.made.body).ok()?;
            (has && &*body.namespace == namespace).then(|| live.clone())
        });
        Ok(held.collect())
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
            if !log.is_empty() {
                self.recall_tail(run, attempt).await?;
            }
            let mut watches = self.watches();
            let Some(lease) = watches.lease(run, attempt) else { continue };
            let log_tail = (!log.is_empty()).then(|| {
                let tail = lease.log_tail.get_or_insert_default();
                append_tail(tail, &log, self.config.log_tail_bytes_max);
                tail.as_bytes().into()
            });
            if progress.is_some() || log_tail.is_some() {
                writes.push(RunWrite::Details { run, attempt, progress, log_tail });
            }
        }
        if !writes.is_empty() {
            let batch = self.batch(vec![Unit { runs: writes, ..Unit::default() }]);
            self.store.commit(batch).await.map_err(Desk::unavailable)?;
        }
        Ok(())
    }
}

impl Desk {
    /// What another process has written of a log goes on here.
    async fn recall_tail(&self, run: RunKey, attempt: u32) -> Result<(), EngineError> {
        let unknown = self.watches().lease(run, attempt).is_some_and(|lease| lease.log_tail.is_none());
        if unknown {
            let stored = self.store.run_details(run).await?.log_tail;
            let tail = stored.map(|tail| String::from_utf8_lossy(&tail).into_owned());
            if let Some(lease) = self.watches().lease(run, attempt) {
                lease.log_tail.get_or_insert(tail.unwrap_or_default());
            }
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
