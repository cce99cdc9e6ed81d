//! `complete`, `record` and `reconcile`: what the outside world reports back.

use super::Change;
use crate::completion::Completion;
use crate::id::StartId;
use crate::invoker::Dispatched;
use crate::rejection::Rejection;
use crate::start::{Outcome, Phase};
use crate::transition::Transition;
use crate::tree::ScheduleTree;

/// What was seen of a run that had been silent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Which one.
    pub start: StartId,
    /// What was seen.
    pub seen: Seen,
}

/// The state of a run, as its keeper tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It still runs.
    Running,
    /// It ended, and the report was lost.
    Ended(Completion),
    /// Nobody knows it any more.
    Gone,
}

impl ScheduleTree {
    /// Records the end of a run; idempotent by the start.
    pub fn complete(&mut self, tx: &mut Transition<'_>, completion: Completion) -> Result<(), Rejection> {
        self.record_completion(tx, completion);
        Ok(())
    }

    /// Records what came of dispatches.
    pub fn record_execute(
        &mut self,
        tx: &mut Transition<'_>,
        results: Vec<(StartId, Dispatched)>,
    ) -> Result<(), Rejection> {
        for (start, result) in &results {
            self.invoker.record_execute(tx, &mut self.scheduler, *start, result);
        }
        Ok(())
    }

    /// Records that requests to stop were delivered.
    pub fn record_stops(
        &mut self,
        tx: &mut Transition<'_>,
        delivered: Vec<StartId>,
    ) -> Result<(), Rejection> {
        for start in delivered {
            self.invoker.stop_delivered(tx, start);
        }
        Ok(())
    }

    /// Records what was seen of silent runs; one that is gone has failed.
    pub fn reconcile(&mut self, tx: &mut Transition<'_>, sightings: Vec<Sighting>) -> Result<(), Rejection> {
        for Sighting { start: id, seen } in sightings {
            let now = tx.now();
            let Some(start) = self.invoker.find(id) else { continue };
            match (&mut start.phase, seen) {
                (Phase::Running { seen_at, .. }, Seen::Running) => {
                    *seen_at = now;
                    tx.changed().state = true;
                }
                (Phase::Doubtful { .. }, Seen::Running) => {
                    self.invoker.mark_running(tx, &mut self.scheduler, id, now);
                }
                (Phase::Doubtful { verdict, .. }, Seen::Gone) => {
                    let verdict = *verdict;
                    self.invoker.reject(tx, &mut self.scheduler, id, verdict);
                }
                (Phase::Running { .. }, Seen::Gone) => {
                    let lost =
                        Completion { start: id, outcome: Outcome::Failed, payload: None, completed_at: now };
                    self.record_completion(tx, lost);
                }
                (_, Seen::Ended(completion)) => self.record_completion(tx, completion),
                // A start that is on its way, or waits, was not asked for.
                (Phase::Waiting | Phase::Deferred | Phase::Ready { .. }, Seen::Running | Seen::Gone) => {}
            }
        }
        Ok(())
    }
}

// The verbs above have the shape that the engine calls.
const _: Change<Completion, ()> = ScheduleTree::complete;
