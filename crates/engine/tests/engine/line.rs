//! A line to the reference store that can be cut, and that may lead to a store of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Entry, StartId};
use punctual_store::memory::Memory;
use punctual_store::{
    Batch, Beat, Bytes, Claim, Document, Keeper, Kept, Lease, Listener, LiveRun, NewQueue, News, NodeId,
    Page, Queue, QueueDepth, QueueKey, QueueSettings, Reply, Retention, Roster, RunDetails, RunKey, RunQuery,
    RunWrite, ScheduleQuery, ShardId, Store, StoreError, StoredRun, StoredTree, Taken, TreeKey, TreeRef,
};
use tokio::sync::Notify;

type IsSlow = fn(&RunWrite) -> bool;

/// One node's way to the store.
pub struct Line {
    pub store: Arc<Memory>,
    /// Whether others have one too.
    pub shared: bool,
    pub cut: AtomicBool,
    /// Claims and writes arrive, and their answers do not.
    pub mute: AtomicBool,
    /// The next look at runs takes long: what it saw is told when a test says so.
    pub slow: AtomicBool,
    /// The same of the next list of live runs: it is made when a test says so.
    pub slow_list: AtomicBool,
    /// The same of the next write of a run like this.
    pub slow_write: Mutex<Option<IsSlow>>,
    pub looked: Notify,
    pub told: Notify,
}

impl Line {
    pub fn new(store: Arc<Memory>, shared: bool) -> Arc<Line> {
        let (cut, mute, slow, slow_list, slow_write) = Default::default();
        let (looked, told) = Default::default();
        Arc::new(Line { store, shared, cut, mute, slow, slow_list, slow_write, looked, told })
    }

    /// The next write of a run like this is answered when a test says so.
    pub fn slow_down(&self, is_slow: IsSlow) {
        *self.slow_write.lock().unwrap() = Some(is_slow);
    }

    /// Tells what was seen only when the test says so.
    async fn dawdle(&self) {
        self.looked.notify_one();
        self.told.notified().await;
    }

    fn is_cut(&self) -> bool {
        self.cut.load(Ordering::SeqCst)
    }
}

macro_rules! unless_cut {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&self, $($argument: $kind),*) -> Reply<'_, $answer> {
            if self.is_cut() {
                return Box::pin(std::future::ready(Err(StoreError::unavailable("the line is cut"))));
            }
            self.store.$name($($argument),*)
        })*
    };
}

impl Store for Line {
    fn shards(&self) -> u32 {
        self.store.shards()
    }

    fn is_shared(&self) -> bool {
        self.shared
    }

    fn listen(&self) -> Option<Listener> {
        self.store.listen().filter(|_| self.shared)
    }

    fn tell(&self, news: News) {
        if !self.is_cut() {
            self.store.tell(news);
        }
    }

    fn claim(&self, claim: Claim) -> Reply<'_, Taken> {
        Box::pin(async move {
            let lost = Err(StoreError::unavailable("the answer is lost"));
            match self.is_cut() {
                true => lost,
                false => {
                    let taken = self.store.claim(claim).await;
                    if self.mute.load(Ordering::SeqCst) { lost } else { taken }
                }
            }
        })
    }

    fn load_runs(&self, runs: Vec<RunKey>) -> Reply<'_, Vec<Option<StoredRun>>> {
        Box::pin(async move {
            if self.is_cut() {
                return Err(StoreError::unavailable("the line is cut"));
            }
            let seen = self.store.load_runs(runs).await;
            if self.slow.swap(false, Ordering::SeqCst) {
                self.dawdle().await;
            }
            seen
        })
    }

    fn live_runs(&self, kept: Kept, after: Option<RunKey>, count: usize) -> Reply<'_, Vec<LiveRun>> {
        Box::pin(async move {
            if self.slow_list.swap(false, Ordering::SeqCst) {
                self.dawdle().await;
            }
            if self.is_cut() {
                return Err(StoreError::unavailable("the line is cut"));
            }
            self.store.live_runs(kept, after, count).await
        })
    }

    fn commit(&self, batch: Batch) -> Reply<'_, Vec<Result<(), StoreError>>> {
        Box::pin(async move {
            let lost = Err(StoreError::unavailable("the answer is lost"));
            if self.is_cut() {
                return lost;
            }
            let mut writes = batch.units.iter().flat_map(|unit| &unit.runs);
            let is_slow = self.slow_write.lock().unwrap().take_if(|slow| writes.any(*slow)).is_some();
            let answers = self.store.commit(batch).await;
            if is_slow {
                self.dawdle().await;
            }
            if self.mute.load(Ordering::SeqCst) { lost } else { answers }
        })
    }

    unless_cut! {
        now() -> Timestamp;
        acquire(shard: ShardId, node: NodeId, ttl: SignedDuration) -> Option<Lease>;
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
        closed_run(tree: TreeKey, start: StartId) -> Option<RunKey>;
        runs(query: RunQuery) -> Page<StoredRun>;
        run_details(run: RunKey) -> RunDetails;
        secret(fresh: [u8; 32]) -> [u8; 32];
        document(name: Arc<str>) -> Option<Document>;
        put_document(name: Arc<str>, version: u64, bytes: Bytes) -> bool;
        retire(retention: Retention) -> u64;
    }
}
