//! Which workers were heard of lately, for people who wonder why nothing is taken.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use jiff::{SignedDuration, Timestamp};
use punctual_store::{QueueKey, RunKey};

use super::Desk;

/// How long a worker is remembered.
const REMEMBERED: SignedDuration = SignedDuration::from_mins(5);

/// Workers that are remembered, of all queues together; beyond it new ones are not.
const WORKERS_MAX: usize = 10_000;

/// When each worker last asked for runs of a queue.
#[derive(Default)]
pub(crate) struct Seen(HashMap<(QueueKey, Arc<str>), Timestamp>);

/// A worker, as a queue knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The name that it gave itself.
    pub worker: Arc<str>,
    /// When it last asked for runs.
    pub seen_at: Timestamp,
    /// Runs of the queue that it has.
    pub running: u32,
}

impl Desk {
    /// The runs that have been in progress for longest.
    pub(crate) fn longest_runs(&self, count: usize) -> Vec<RunKey> {
        self.watches().longest(count)
    }

    /// A worker asks for runs.
    pub(super) fn saw(&self, queue: QueueKey, worker: &Arc<str>) {
        let now = self.clock.now();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.0.len() >= WORKERS_MAX {
            seen.0.retain(|_, seen_at| now.duration_since(*seen_at) < REMEMBERED);
        }
        if seen.0.len() < WORKERS_MAX {
            seen.0.insert((queue, worker.clone()), now);
        }
    }

    /// The workers of a queue: those that asked lately, and those that have runs.
    pub(crate) fn workers_of(&self, queue: QueueKey) -> Vec<Sighting> {
        let now = self.clock.now();
        let mut workers: HashMap<Arc<str>, Sighting> = HashMap::new();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for ((of, worker), seen_at) in &seen.0 {
            if *of == queue && now.duration_since(*seen_at) < REMEMBERED {
                let sighting = Sighting { worker: worker.clone(), seen_at: *seen_at, running: 0 };
                workers.insert(worker.clone(), sighting);
            }
        }
        drop(seen);
        for lease in self.watches().leases().filter(|lease| lease.queue == queue) {
            let (worker, seen_at) = (lease.worker.clone(), now);
            let known = workers.entry(worker.clone()).or_insert(Sighting { worker, seen_at, running: 0 });
            known.running += 1;
        }
        let mut workers: Vec<Sighting> = workers.into_values().collect();
        workers.sort_by(|left, right| left.worker.cmp(&right.worker));
        workers
    }
}
