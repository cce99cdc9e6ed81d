//! Workers on the queue: they claim runs from the store, work, fail, die, and report late or twice.

use punctual_core::{Completion, Failure, NextStep, Outcome, StopKind};
use punctual_store::record::{decode_body, encode_failure};
use punctual_store::{Batch, Claim, LiveState, RunKey, RunWrite, Store, StoredRun, Unit};

use super::World;
use super::agenda::Happening;
use super::clients::Asked;
use crate::store::at_once;

impl World {
    /// A worker takes what is there; one that is busy leaves the rest to the next.
    pub(super) fn claim(&mut self) {
        let runs_max = self.random.between(1, 3) as usize;
        let claim = Claim {
            queue: self.queue,
            worker: "worker".into(),
            runs_max,
            now: self.now,
            keeper: Default::default(),
        };
        let claimed = at_once(self.store.claim(claim)).runs;
        if claimed.len() == runs_max {
            self.at(1, Happening::Claim);
        }
        for run in claimed {
            let (run, attempt) = (run.made.run, run.attempt);
            let outcome = self.workload.outcome();
            if !self.random.chance(self.knobs.worker_dies) {
                let seconds = self.random.between(1, self.knobs.run_seconds_max);
                self.at(seconds, Happening::AttemptEnds { run, attempt, outcome });
                if self.random.chance(self.knobs.completion_twice) {
                    let later = seconds + self.random.between(0, 10);
                    self.at(later, Happening::AttemptEnds { run, attempt, outcome });
                }
                continue;
            }
            // Nothing is heard of it until its lease is over; some were only slow, and report when others have taken over.
            let lease = self.random.between(60, 120);
            self.at(lease, Happening::AttemptEnds { run, attempt, outcome: Outcome::TimedOut });
            if self.random.chance(500) {
                let late = lease + self.random.between(-5, 60);
                self.at(late, Happening::AttemptEnds { run, attempt, outcome });
            }
        }
    }

    /// Whether an attempt is the one that counts; the engine's desk hands on no report of another.
    pub(super) fn counts(&self, run: RunKey, attempt: u32) -> bool {
        let live = self.store.run(run).filter(|stored| stored.closing.is_none());
        let running = |state: &LiveState| matches!(state, LiveState::Running { .. });
        live.is_some_and(|stored| running(&stored.run.state) && stored.run.attempt == attempt)
    }

    /// Whether a run is not over.
    pub(super) fn is_live(&self, run: RunKey) -> bool {
        self.store.run(run).is_some_and(|stored| stored.closing.is_none())
    }

    /// What the engine's desk does when an attempt has ended: another one, or the end of the run.
    pub(super) fn attempt_ends(&mut self, run: RunKey, attempt: u32, outcome: Outcome) {
        let Some(stored) = self.store.run(run) else { return };
        let failure = Failure::new("simulated", "");
        let next = match (outcome.is_failure(), stored.run.stop, decode_body(&stored.run.made.body)) {
            (true, Some(_), _) => NextStep::Close { outcome: Outcome::Cancelled },
            (true, None, Ok(body)) => {
                body.action.after(self.now, stored.run.made.created_at, attempt, outcome, &failure, None)
            }
            (true, None, Err(error)) => {
                return self.found("no run breaks", format!("the body of run {run}: {error}"));
            }
            (false, ..) => NextStep::Close { outcome },
        };
        match next {
            NextStep::Close { outcome } => self.close_run(&stored, Some(attempt), outcome),
            NextStep::Retry { not_before } => {
                let failure = encode_failure(&failure);
                if self.write_run(RunWrite::Retry { run, attempt, not_before, failure }) {
                    self.at_time(not_before, Happening::Release { run });
                }
            }
        }
    }

    pub(super) fn release(&mut self, run: RunKey) {
        self.write_run(RunWrite::Release { run });
        let delay = self.random.between(0, 3);
        self.at(delay, Happening::Claim);
    }

    /// The run and its schedule hear of it together.
    fn close_run(&mut self, stored: &StoredRun, attempt: Option<u32>, outcome: Outcome) {
        let Some((tree, start)) = stored.run.made.origin else { return };
        let completion = Completion { start, outcome, payload: None, completed_at: self.now };
        self.ask(Asked::close(stored.run.made.run, attempt, tree, completion));
    }

    /// A schedule wants a run to stop. True if the wish has arrived and the run goes on for now.
    pub(super) fn stop_on_queue(&mut self, run: RunKey, kind: StopKind, heeds: bool) -> bool {
        let Some(stored) = self.store.run(run).filter(|stored| stored.closing.is_none()) else {
            return false;
        };
        let running = matches!(stored.run.state, LiveState::Running { .. });
        match kind {
            StopKind::Cancel if running => {
                self.write_run(RunWrite::Stop { run, kind });
                if heeds {
                    let (attempt, outcome) = (stored.run.attempt, Outcome::Cancelled);
                    self.at(2, Happening::AttemptEnds { run, attempt, outcome });
                }
                true
            }
            StopKind::Cancel => {
                self.close_run(&stored, None, Outcome::Cancelled);
                false
            }
            StopKind::Terminate => {
                self.close_run(&stored, None, Outcome::Terminated);
                false
            }
        }
    }

    /// Writes a change of one run that does not concern its schedule, and says whether it still applied.
    pub(super) fn write_run(&mut self, write: RunWrite) -> bool {
        let batch = Batch::of(vec![Unit { runs: vec![write], ..Unit::default() }]);
        let written = self.store.commit_now(&batch).iter().all(Result::is_ok);
        if written && let Err(violation) = self.written(&batch.units[0], None) {
            self.broken.get_or_insert(violation);
        }
        written
    }
}
