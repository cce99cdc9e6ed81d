//! A store beside the reference store: random operations on both, from a seed, and every answer is compared.

mod write;
mod queue;
mod look;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::Subject;
use super::support::{Random, at};
use crate::memory::Memory;
use crate::{Lease, NodeId, QueueKey, Retention, RunKey, ShardId, Store, TreeKey};
pub(super) use queue::{Declared, KEYS, WORKERS};

/// Operations of one seed.
const STEPS: usize = 300;
/// After so many operations everything is compared.
const STEPS_BETWEEN_PICTURES: usize = 30;
const NAMES: [&str; 5] = ["a", "ab", "b", "b-\u{e9}", "c"];

struct Pair {
    random: Random,
    store: Arc<dyn Store>,
    twin: Memory,
    queues: Vec<QueueKey>,
    declared: BTreeMap<QueueKey, Declared>,
    /// Seconds, by the clock of those who claim.
    clock: i64,
    decided: i64,
    trees: Vec<TreeKey>,
    runs: Vec<RunKey>,
    leases: Vec<Lease>,
    nominal_ms: i64,
    /// Runs that this batch inserts once more, and runs that it closes: a run must not be both.
    again: BTreeSet<RunKey>,
    closed: BTreeSet<RunKey>,
}

/// Compares a store with the reference store.
pub async fn exercise(subject: &impl Subject, seed: u64) {
    let store = subject.create().await;
    let twin = Memory::new(store.shards(), store.now().await.expect("the store has a clock"));
    let mut pair = Pair {
        random: Random(seed),
        store,
        twin,
        queues: Vec::new(),
        declared: BTreeMap::new(),
        clock: 0,
        decided: 0,
        trees: Vec::new(),
        runs: Vec::new(),
        leases: Vec::new(),
        nominal_ms: 0,
        again: BTreeSet::new(),
        closed: BTreeSet::new(),
    };
    pair.create_queue().await;
    for step in 1..=STEPS {
        let place = format!("seed {seed}, step {step}");
        match pair.random.below(22) {
            0 => pair.create_queue().await,
            1 | 2 => pair.lease(&place).await,
            3..=6 => pair.claim(&place).await,
            20 | 21 => pair.update_queue(&place).await,
            7 => pair.query(&place).await,
            8 if pair.random.one_in(3) => pair.retire(&place).await,
            9 if pair.random.one_in(5) && !subject.forgets() => pair.reopen(subject).await,
            _ => pair.commit(&place).await,
        }
        if step % STEPS_BETWEEN_PICTURES == 0 {
            pair.compare(&place).await;
        }
    }
}

impl Pair {
    async fn key(&mut self) -> i64 {
        self.store.reserve(1).await.expect("a key is given")
    }

    async fn lease(&mut self, place: &str) {
        let shard = ShardId(self.random.below(4) as u32);
        let hour = SignedDuration::from_hours(1);
        let known = self.random.pick(&self.leases).cloned();
        match (self.random.below(4), known) {
            (0, Some(lease)) => {
                let answers = (self.store.release(lease.clone()).await, self.twin.release(lease).await);
                assert_eq!(answers.0, answers.1, "{place}: release");
            }
            (1, Some(lease)) => {
                let answers =
                    (self.store.renew(lease.clone(), hour).await, self.twin.renew(lease, hour).await);
                let answers = (answers.0.map(|lease| lease.epoch), answers.1.map(|lease| lease.epoch));
                assert_eq!(answers.0, answers.1, "{place}: renew");
            }
            _ => {
                let node = NodeId(["one", "two"][self.random.below(2)].into());
                let given = self.store.acquire(shard, node.clone(), hour).await.expect("the store answers");
                let twin = self.twin.acquire(shard, node, hour).await.expect("memory answers");
                let epoch = |lease: &Option<Lease>| lease.as_ref().map(|lease| lease.epoch);
                assert_eq!(epoch(&given), epoch(&twin), "{place}: acquire");
                self.leases.extend(given);
            }
        }
    }

    async fn retire(&mut self, place: &str) {
        let rows_max = 1 + self.random.below(20);
        let runs_before = at(self.random.below(600) as i64);
        let ledger_before = at(self.random.below(600) as i64);
        let retention = Retention {
            runs_before: if self.random.one_in(2) { runs_before } else { Timestamp::MIN },
            ledger_before: if self.random.one_in(2) { ledger_before } else { Timestamp::MIN },
            runs_max: self.random.one_in(2).then(|| self.random.below(40) as u64),
            ledger_max: self.random.one_in(2).then(|| self.random.below(60) as u64),
            rows_max,
        };
        let mut removed = [0, 0];
        for (store, removed) in [&*self.store, &self.twin as &dyn Store].into_iter().zip(&mut removed) {
            loop {
                let count = store.retire(retention).await.expect("the store answers");
                *removed += count;
                if count == 0 {
                    break;
                }
            }
        }
        assert_eq!(removed[0], removed[1], "{place}: retire");
        // A key that is forgotten is not used again.
        let kept = self.twin.load_runs(self.runs.clone()).await.expect("memory answers");
        self.runs = kept.into_iter().flatten().map(|run| run.run.made.run).collect();
    }

    async fn reopen(&mut self, subject: &impl Subject) {
        // Whether a lease outlives its process is the store's business, so none is held.
        for lease in self.leases.drain(..) {
            self.store.release(lease.clone()).await.expect("the store answers");
            self.twin.release(lease).await.expect("memory answers");
        }
        let store = std::mem::replace(&mut self.store, Arc::new(Memory::new(1, Timestamp::UNIX_EPOCH)));
        self.store = subject.reopen(store).await;
    }
}
