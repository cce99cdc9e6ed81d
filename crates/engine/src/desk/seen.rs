//! Which workers were heard of lately, for people who wonder why nothing is taken.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};

use jiff::{SignedDuration, Timestamp};
use punctual_store::record::WorkerSeen;
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

    /// The workers of all queues, by queue and name: those that asked lately, and those that have runs.
    pub(crate) fn sightings(&self) -> Vec<WorkerSeen> {
        let now = self.clock.now();
        let mut workers: BTreeMap<(QueueKey, Arc<str>), WorkerSeen> = BTreeMap::new();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for ((queue, worker), seen_at) in &seen.0 {
            if now.duration_since(*seen_at) < REMEMBERED {
                let (queue, worker, seen_at) = (*queue, worker.clone(), *seen_at);
                workers.insert((queue, worker.clone()), WorkerSeen { queue, worker, seen_at, running: 0 });
            }
        }
        drop(seen);
        for ((queue, worker), running) in self.watches().by_worker() {
            let (queue, worker, seen_at) = (*queue, worker.clone(), now);
            let place = workers.entry((queue, worker.clone()));
            place.or_insert(WorkerSeen { queue, worker, seen_at, running: 0 }).running = *running;
        }
        workers.into_values().collect()
    }
}
