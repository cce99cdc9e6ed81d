//! The simulated database: the reference store, with switches that make it careless.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Entry, StartId};
use punctual_store::memory::Memory;
use punctual_store::{
    Batch, Beat, Bytes, Claim, Document, Expected, Keeper, Kept, Lease, Listener, LiveRun, NewQueue, News,
    NodeId, Page, Queue, QueueDepth, QueueKey, QueueSettings, Reply, Retention, Roster, RunDetails, RunKey,
    RunQuery, ScheduleQuery, ShardId, Store, StoreError, StoredRun, StoredTree, Taken, TreeKey, TreeRef,
    Unit,
};

/// A database that answers at once; the world around it makes it slow and unreliable.
pub struct SimulatedStore {
    memory: Memory,
    /// A deliberate fault: who believes to be the owner is not compared.
    pub trusts_owners: bool,
    /// A deliberate fault: what was read is not compared with what is there.
    pub trusts_readers: bool,
    /// A deliberate fault: whoever wants a shard gets it, whoever else has it.
    pub trusts_takers: bool,
}

/// The answer of a store that answers at once.
pub fn at_once<T>(mut reply: Reply<'_, T>) -> T {
    match pin!(&mut reply).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer.unwrap_or_else(|error| panic!("the reference store fails: {error}")),
        Poll::Pending => panic!("the reference store answers at once"),
    }
}

impl SimulatedStore {
    /// An empty database with this many shards, at this time.
    pub fn new(shards: u32, now: Timestamp) -> SimulatedStore {
        let memory = Memory::new(shards, now);
        SimulatedStore { memory, trusts_owners: false, trusts_readers: false, trusts_takers: false }
    }

    /// Moves its clock.
    pub fn set_now(&self, now: Timestamp) {
        self.memory.set_now(now);
    }

    /// Reads schedules.
    pub fn load_now(&self, trees: &[TreeRef]) -> Vec<Option<StoredTree>> {
        self.memory.load_now(trees)
    }

    /// One run.
    pub fn run(&self, run: RunKey) -> Option<StoredRun> {
        at_once(self.memory.load_runs(vec![run])).pop().flatten()
    }

    /// Writes each unit wholly or not at all.
    pub fn commit_now(&self, batch: &Batch) -> Vec<Result<(), StoreError>> {
        let mut batch = Cow::Borrowed(batch);
        if self.trusts_owners || self.trusts_readers {
            batch.to_mut().units.iter_mut().for_each(|unit| self.overlook(unit));
        }
        self.memory.commit_now(&batch)
    }

    /// What a careless database does not compare.
    fn overlook(&self, unit: &mut Unit) {
        let Some(write) = &mut unit.tree else { return };
        if self.trusts_owners {
            write.epoch = None;
        }
        let found = self.memory.load_now(&[TreeRef::Key(write.tree)]).pop().flatten();
        if let (true, Expected::At(sequence), Some(found)) = (self.trusts_readers, &mut write.expected, found)
        {
            *sequence = found.sequence;
        }
    }
}

macro_rules! as_memory {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&self, $($argument: $kind),*) -> Reply<'_, $answer> {
            self.memory.$name($($argument),*)
        })*
    };
}

impl Store for SimulatedStore {
    fn shards(&self) -> u32 {
        self.memory.shards()
    }

    fn is_shared(&self) -> bool {
        self.memory.is_shared()
    }

    fn listen(&self) -> Option<Listener> {
        self.memory.listen()
    }

    fn tell(&self, news: News) {
        self.memory.tell(news);
    }

    fn acquire(&self, shard: ShardId, node: NodeId, ttl: SignedDuration) -> Reply<'_, Option<Lease>> {
        if self.trusts_takers {
            let held = at_once(self.memory.roster()).leases.into_iter().find(|lease| lease.shard == shard);
            held.into_iter().for_each(|lease| at_once(self.memory.release(lease)));
        }
        self.memory.acquire(shard, node, ttl)
    }

    fn commit(&self, batch: Batch) -> Reply<'_, Vec<Result<(), StoreError>>> {
        Box::pin(std::future::ready(Ok(self.commit_now(&batch))))
    }

    as_memory! {
        now() -> Timestamp;
        renew(lease: Lease, ttl: SignedDuration) -> Lease;
        release(lease: Lease) -> ();
        beat(beat: Beat) -> Roster;
        roster() -> Roster;
        reports() -> Vec<(Keeper, Bytes)>;
        strike(node: NodeId, leaves: bool) -> ();
        drain(node: NodeId, draining: bool) -> bool;
        keep(runs: Vec<RunKey>, keeper: Keeper) -> ();
        reserve(count: u32) -> i64;
        load(trees: Vec<TreeRef>) -> Vec<Option<StoredTree>>;
        timers(shard: ShardId, after: Option<TreeKey>, count: usize) -> Vec<(TreeKey, Option<Timestamp>)>;
        ledger(tree: TreeKey, after: Timestamp, through: Timestamp, count: usize) -> Vec<Entry>;
        schedules(query: ScheduleQuery) -> Page<StoredTree>;
        count_schedules(query: ScheduleQuery) -> u64;
        create_queue(queue: NewQueue) -> Queue;
        queues(namespace: Option<Arc<str>>) -> Vec<Queue>;
        queue_depth(queue: QueueKey) -> QueueDepth;
        update_queue(queue: QueueKey, settings: QueueSettings) -> Option<Queue>;
        claim(claim: Claim) -> Taken;
        live_runs(kept: Kept, after: Option<RunKey>, count: usize) -> Vec<LiveRun>;
        load_runs(runs: Vec<RunKey>) -> Vec<Option<StoredRun>>;
        closed_run(tree: TreeKey, start: StartId) -> Option<RunKey>;
        runs(query: RunQuery) -> Page<StoredRun>;
        run_details(run: RunKey) -> RunDetails;
        secret(fresh: [u8; 32]) -> [u8; 32];
        document(name: Arc<str>) -> Option<Document>;
        put_document(name: Arc<str>, version: u64, bytes: Bytes) -> bool;
        retire(retention: Retention) -> u64;
    }
}
