//! A line to the reference store that can be cut, and that may lead to a store of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Entry, Failure, RetryPolicy, RunAction, StartId, Timeouts};
use punctual_engine::{AttemptEnd, Engine, EngineConfig, OnDuplicate, RunOrder, SystemClock};
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
    /// The next write of a run like this is made when a test says so.
    pub held_write: Mutex<Option<IsSlow>>,
    /// The next change of who looks after runs is made when a test says so.
    pub slow_keep: AtomicBool,
    pub looked: Notify,
    pub told: Notify,
}

impl Line {
    pub fn new(store: Arc<Memory>, shared: bool) -> Arc<Line> {
        let (cut, mute, slow, slow_list, slow_keep) = Default::default();
        let (slow_write, held_write, looked, told) = Default::default();
        Arc::new(Line {
            store,
            shared,
            cut,
            mute,
            slow,
            slow_list,
            slow_write,
            held_write,
            slow_keep,
            looked,
            told,
        })
    }

    /// The next write of a run like this is answered when a test says so.
    pub fn slow_down(&self, is_slow: IsSlow) {
        *self.slow_write.lock().unwrap() = Some(is_slow);
    }

    /// The next write of a run like this is made when a test says so.
    pub fn hold_back(&self, is_held: IsSlow) {
        *self.held_write.lock().unwrap() = Some(is_held);
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
            let writes = batch.units.iter().flat_map(|unit| &unit.runs);
            let is_like = |place: &Mutex<Option<IsSlow>>| {
                place.lock().unwrap().take_if(|like| writes.clone().any(*like)).is_some()
            };
            let (is_held, is_slow) = (is_like(&self.held_write), is_like(&self.slow_write));
            if is_held {
                self.dawdle().await;
            }
            let answers = self.store.commit(batch).await;
            if is_slow {
                self.dawdle().await;
            }
            if self.mute.load(Ordering::SeqCst) { lost } else { answers }
        })
    }

    fn keep(&self, runs: Vec<RunKey>, keeper: Keeper) -> Reply<'_, ()> {
        Box::pin(async move {
            if self.slow_keep.swap(false, Ordering::SeqCst) {
                self.dawdle().await;
            }
            if self.is_cut() {
                return Err(StoreError::unavailable("the line is cut"));
            }
            let kept = self.store.keep(runs, keeper).await;
            let lost = Err(StoreError::unavailable("the answer is lost"));
            if self.mute.load(Ordering::SeqCst) { lost } else { kept }
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

/// A node at the end of a line.
pub async fn start(line: &Arc<Line>, name: &str) -> Engine {
    let config = EngineConfig { node: name.into(), ..EngineConfig::default() };
    let engine = Engine::start(line.clone(), Arc::new(SystemClock), config).await.unwrap();
    engine.create_queue("default", "q", QueueSettings::default()).await.unwrap();
    engine
}

/// A run without a schedule.
pub fn order(timeouts: Timeouts, not_before: Option<Timestamp>) -> RunOrder {
    let retry = RetryPolicy { backoff_first: SignedDuration::from_millis(5), ..RetryPolicy::default() };
    let action = RunAction { handler: "h".into(), timeouts, retry, ..RunAction::default() };
    let (name, dedup, on_duplicate) = ("run".into(), None, OnDuplicate::Reject);
    RunOrder { name, action, dedup, on_duplicate, not_before }
}

pub fn failed() -> AttemptEnd {
    AttemptEnd::Failed(Failure::new("Oops", "as planned"), None)
}

/// A worker may be silent for so long.
pub fn silent_for(millis: i64) -> Timeouts {
    Timeouts { heartbeat: Some(SignedDuration::from_millis(millis)), ..Timeouts::default() }
}
