//! How many runs are where. Counting a million rows for each question would be slow, so they are counted when the file is
//! opened, and then kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use punctual_store::{QueueDepth, QueueKey, QueueSettings};
use rusqlite::Connection;

use crate::value;

type OfWorkers = HashMap<Arc<str>, i64>;

/// How many runs are in each state, and how many each worker has where that is limited. As changes of the current
/// transaction they are differences.
#[derive(Clone, Default)]
pub(crate) struct Counts {
    /// Ready, backing off, running.
    depths: HashMap<i64, [i64; 3]>,
    workers: HashMap<i64, OfWorkers>,
}

impl Counts {
    /// So many runs more, or fewer, in a state.
    pub(crate) fn add(&mut self, queue: i64, state: i64, change: i64) {
        let place = match state {
            value::READY => 0,
            value::BACKING_OFF => 1,
            _ => 2,
        };
        self.depths.entry(queue).or_default()[place] += change;
    }

    /// So many runs more, or fewer, that a worker has.
    pub(crate) fn add_worker(&mut self, queue: i64, worker: &Arc<str>, change: i64) {
        *self.workers.entry(queue).or_default().entry(worker.clone()).or_default() += change;
    }

    /// Ready, backing off, running.
    pub(crate) fn depth(&self, queue: i64) -> [i64; 3] {
        self.depths.get(&queue).copied().unwrap_or_default()
    }

    fn of_worker(&self, queue: i64, worker: &str) -> i64 {
        self.workers.get(&queue).and_then(|workers| workers.get(worker)).copied().unwrap_or(0)
    }

    /// What the rows say.
    pub(crate) fn read(
        connection: &Connection,
        queues: &HashMap<i64, Arc<QueueSettings>>,
    ) -> rusqlite::Result<Counts> {
        let mut counts = Counts::default();
        let mut rows =
            connection.prepare("SELECT queue, state, CASE state WHEN 2 THEN worker END FROM run_live")?;
        let mut rows = rows.query(())?;
        while let Some(row) = rows.next()? {
            let (queue, state) = (row.get(0)?, row.get(1)?);
            counts.add(queue, state, 1);
            let limited = |queue: &Arc<QueueSettings>| queue.worker_concurrency_max.is_some();
            if state == value::RUNNING
                && queues.get(&queue).is_some_and(limited)
                && let Some(worker) = row.get(2)?
            {
                counts.add_worker(queue, &worker, 1);
            }
        }
        Ok(counts)
    }

    /// The queues of which something is counted.
    pub(crate) fn queues(&self) -> impl Iterator<Item = i64> {
        self.depths.keys().chain(self.workers.keys()).copied()
    }

    /// How many runs each worker of a queue has.
    pub(crate) fn workers(&self, queue: i64) -> Vec<(Arc<str>, i64)> {
        let workers = self.workers.get(&queue).into_iter().flatten();
        workers.map(|(worker, count)| (worker.clone(), *count)).filter(|(_, count)| *count != 0).collect()
    }
}

#[derive(Default)]
struct Shared {
    counts: Counts,
    /// Rows may be ahead of the counts just now.
    commits: bool,
}

/// The counts of what is durable, as everybody may see them.
#[derive(Clone, Default)]
pub(crate) struct SharedCounts(Arc<Mutex<Shared>>);

impl SharedCounts {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts anew.
    pub(super) fn count(
        &self,
        connection: &Connection,
        queues: &HashMap<i64, Arc<QueueSettings>>,
    ) -> rusqlite::Result<()> {
        let counts = Counts::read(connection, queues)?;
        *self.lock() = Shared { counts, commits: false };
        Ok(())
    }

    /// A transaction is about to become durable.
    pub(super) fn begin_commit(&self) {
        self.lock().commits = true;
    }

    /// The transaction is durable, or taken back: its changes are taken over, or dropped before.
    pub(super) fn end_commit(&self, changes: &mut Counts) {
        let mut shared = self.lock();
        shared.commits = false;
        for (queue, change) in changes.depths.drain() {
            let depth = shared.counts.depths.entry(queue).or_default();
            for (count, change) in depth.iter_mut().zip(change) {
                *count += change;
            }
        }
        for (queue, changes) in changes.workers.drain() {
            let workers = shared.counts.workers.entry(queue).or_default();
            for (worker, change) in changes {
                *workers.entry(worker).or_default() += change;
            }
            // Workers come and go; those that have nothing are not remembered.
            workers.retain(|_, count| *count != 0);
        }
    }

    /// How much is in a queue.
    pub(crate) fn of(&self, queue: QueueKey) -> QueueDepth {
        let [ready, backing_off, running] = self.lock().counts.depth(queue.0).map(unsigned);
        QueueDepth { ready, backing_off, running, first_made_at: None }
    }

    /// How many runs of a queue wait and run, and how many a worker has, as the current transaction sees it.
    pub(super) fn within(&self, changes: &Counts, queue: i64, worker: &str) -> Load {
        let shared = self.lock();
        let (stored, change) = (shared.counts.depth(queue), changes.depth(queue));
        Load {
            ready: unsigned(stored[0] + change[0]),
            running: unsigned(stored[2] + change[2]),
            of_worker: unsigned(shared.counts.of_worker(queue, worker) + changes.of_worker(queue, worker)),
        }
    }

    /// Makes what the current transaction sees of a queue's workers this.
    pub(super) fn set_workers(&self, changes: &mut Counts, queue: i64, counted: &[(Arc<str>, i64)]) {
        let mut differences: OfWorkers = counted.iter().cloned().collect();
        for (worker, count) in self.lock().counts.workers(queue) {
            *differences.entry(worker).or_default() -= count;
        }
        changes.workers.insert(queue, differences);
    }

    /// All counts, and what somebody does at a moment at which the rows say the same. Nothing while a transaction is just
    /// becoming durable.
    pub(crate) fn at_one_moment<T>(&self, look: impl FnOnce() -> T) -> Option<(Counts, T)> {
        let shared = self.lock();
        if shared.commits {
            return None;
        }
        let seen = look();
        Some((shared.counts.clone(), seen))
    }
}

/// How busy a queue is.
pub(super) struct Load {
    pub(super) ready: u64,
    pub(super) running: u64,
    pub(super) of_worker: u64,
}

fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
