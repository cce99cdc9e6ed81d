//! The reference store: the contract as short, obvious code. It forgets everything when it is dropped.

mod lease;
mod roster;
mod commit;
mod query;
mod queue;
mod claim;
mod retire;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Entry, ScheduleKey, StartId};
use tokio::sync::mpsc;

use crate::{
    Batch, Beat, Bytes, Claim, Document, Epoch, Keeper, Kept, Lease, Listener, LiveRun, NewQueue, News,
    NodeId, NodeSeen, Page, Queue, QueueDepth, QueueKey, QueueSettings, Reply, Retention, Roster, RunDetails,
    RunKey, RunQuery, RunRequest, ScheduleQuery, ShardId, Store, StoreError, StoredRun, StoredTree, Taken,
    TreeKey, TreeRef, TreeView,
};

/// A store in memory, with a clock that is moved by hand.
pub struct Memory {
    shards: u32,
    inner: Mutex<Inner>,
}

struct Row {
    stored: StoredTree,
    view: TreeView,
    /// Another schedule has taken its name.
    replaced: bool,
}

#[derive(Default)]
struct Inner {
    now: Timestamp,
    keys: i64,
    leases: BTreeMap<ShardId, (Epoch, Option<Lease>)>,
    trees: BTreeMap<TreeKey, Row>,
    names: BTreeMap<ScheduleKey, TreeKey>,
    ledger: BTreeMap<TreeKey, Vec<Entry>>,
    queues: BTreeMap<QueueKey, Queue>,
    live: BTreeMap<RunKey, LiveRun>,
    closed: BTreeMap<RunKey, StoredRun>,
    details: BTreeMap<RunKey, RunDetails>,
    requests: BTreeMap<(Arc<str>, Arc<str>), RunRequest>,
    /// When attempts began, where a rate counts them.
    starts: BTreeMap<(QueueKey, Arc<str>), Vec<Timestamp>>,
    /// When a key was last served, or began to wait, as a count of what its queue has handed out.
    turns: BTreeMap<(QueueKey, Arc<str>), u64>,
    handed_out: BTreeMap<QueueKey, u64>,
    /// The place of each run among those that wait, by the settings under which it was made.
    ranks: BTreeMap<RunKey, i64>,
    secret: Option<[u8; 32]>,
    documents: BTreeMap<Arc<str>, Document>,
    nodes: BTreeMap<NodeId, NodeSeen>,
    reports: BTreeMap<NodeId, Bytes>,
    listeners: Vec<mpsc::UnboundedSender<News>>,
}

impl Memory {
    /// An empty store with this many shards, at this time.
    pub fn new(shards: u32, now: Timestamp) -> Memory {
        Memory { shards, inner: Mutex::new(Inner { now, keys: 1, ..Inner::default() }) }
    }

    /// Moves the clock.
    pub fn set_now(&self, now: Timestamp) {
        self.lock().now = now;
    }

    /// Writes a batch at once, for those who cannot wait for an answer.
    pub fn commit_now(&self, batch: &Batch) -> Vec<Result<(), StoreError>> {
        let mut inner = self.lock();
        batch.units.iter().map(|unit| inner.commit(unit, batch.keeper)).collect()
    }

    /// Reads schedules at once.
    pub fn load_now(&self, trees: &[TreeRef]) -> Vec<Option<StoredTree>> {
        let inner = self.lock();
        trees.iter().map(|tree| inner.find(tree)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Whoever panicked while holding it did not write half a unit: units are checked before they are written.
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn answer<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut Inner) -> Result<T, StoreError>,
    ) -> Reply<'_, T> {
        let answer = ask(&mut self.lock());
        Box::pin(std::future::ready(answer))
    }
}

impl Store for Memory {
    fn now(&self) -> Reply<'_, Timestamp> {
        self.answer(|inner| Ok(inner.now))
    }

    fn shards(&self) -> u32 {
        self.shards
    }

    fn acquire(&self, shard: ShardId, node: NodeId, ttl: SignedDuration) -> Reply<'_, Option<Lease>> {
        self.answer(|inner| Ok(inner.acquire(shard, node, ttl)))
    }

    fn renew(&self, lease: Lease, ttl: SignedDuration) -> Reply<'_, Lease> {
        self.answer(|inner| inner.renew(lease, ttl))
    }

    fn release(&self, lease: Lease) -> Reply<'_, ()> {
        self.answer(|inner| {
            inner.release(&lease);
            Ok(())
        })
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn beat(&self, beat: Beat) -> Reply<'_, Roster> {
        self.answer(|inner| Ok(inner.beat(beat)))
    }

    fn roster(&self) -> Reply<'_, Roster> {
        self.answer(|inner| Ok(inner.roster()))
    }

    fn reports(&self) -> Reply<'_, Vec<(Keeper, Bytes)>> {
        self.answer(|inner| Ok(inner.reports()))
    }

    fn strike(&self, node: NodeId, leaves: bool) -> Reply<'_, ()> {
        self.answer(|inner| {
            inner.strike(&node, leaves);
            Ok(())
        })
    }

    fn drain(&self, node: NodeId, draining: bool) -> Reply<'_, bool> {
        self.answer(|inner| Ok(inner.drain(&node, draining)))
    }

    fn keep(&self, runs: Vec<RunKey>, keeper: Keeper) -> Reply<'_, ()> {
        self.answer(|inner| {
            for run in &runs {
                if let Some(live) = inner.live.get_mut(run) {
                    live.keeper = keeper;
                }
            }
            Ok(())
        })
    }

    fn listen(&self) -> Option<Listener> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.lock().listeners.push(sender);
        Some(receiver)
    }

    fn tell(&self, news: News) {
        self.lock().tell(&news);
    }

    fn reserve(&self, count: u32) -> Reply<'_, i64> {
        self.answer(|inner| {
            let first = inner.keys;
            inner.keys += i64::from(count);
            Ok(first)
        })
    }

    fn commit(&self, batch: Batch) -> Reply<'_, Vec<Result<(), StoreError>>> {
        let answers = self.commit_now(&batch);
        Box::pin(std::future::ready(Ok(answers)))
    }

    fn load(&self, trees: Vec<TreeRef>) -> Reply<'_, Vec<Option<StoredTree>>> {
        self.answer(|inner| Ok(trees.iter().map(|tree| inner.find(tree)).collect()))
    }

    fn timers(
        &self,
        shard: ShardId,
        after: Option<TreeKey>,
        count: usize,
    ) -> Reply<'_, Vec<(TreeKey, Option<Timestamp>)>> {
        self.answer(|inner| Ok(inner.timers(shard, after, count)))
    }

    fn ledger(
        &self,
        tree: TreeKey,
        after: Timestamp,
        through: Timestamp,
        count: usize,
    ) -> Reply<'_, Vec<Entry>> {
        self.answer(|inner| Ok(inner.ledger(tree, after, through, count)))
    }

    fn schedules(&self, query: ScheduleQuery) -> Reply<'_, Page<StoredTree>> {
        self.answer(|inner| Ok(inner.schedules(&query)))
    }

    fn count_schedules(&self, query: ScheduleQuery) -> Reply<'_, u64> {
        self.answer(|inner| Ok(inner.count_schedules(&query)))
    }

    fn create_queue(&self, queue: NewQueue) -> Reply<'_, Queue> {
        self.answer(|inner| Ok(inner.create_queue(queue)))
    }

    fn update_queue(&self, queue: QueueKey, settings: QueueSettings) -> Reply<'_, Option<Queue>> {
        self.answer(|inner| Ok(inner.update_queue(queue, settings)))
    }

    fn queues(&self, namespace: Option<Arc<str>>) -> Reply<'_, Vec<Queue>> {
        self.answer(|inner| Ok(inner.queues(namespace.as_deref())))
    }

    fn queue_depth(&self, queue: QueueKey) -> Reply<'_, QueueDepth> {
        self.answer(|inner| Ok(inner.queue_depth(queue)))
    }

    fn claim(&self, claim: Claim) -> Reply<'_, Taken> {
        self.answer(|inner| Ok(inner.claim(&claim)))
    }

    fn live_runs(&self, kept: Kept, after: Option<RunKey>, count: usize) -> Reply<'_, Vec<LiveRun>> {
        self.answer(|inner| Ok(inner.live_runs(&kept, after, count)))
    }

    fn load_runs(&self, runs: Vec<RunKey>) -> Reply<'_, Vec<Option<StoredRun>>> {
        self.answer(|inner| Ok(runs.iter().map(|run| inner.run(*run)).collect()))
    }

    fn closed_run(&self, tree: TreeKey, start: StartId) -> Reply<'_, Option<RunKey>> {
        self.answer(|inner| Ok(inner.closed_run(tree, start)))
    }

    fn runs(&self, query: RunQuery) -> Reply<'_, Page<StoredRun>> {
        self.answer(|inner| Ok(inner.runs(&query)))
    }

    fn run_details(&self, run: RunKey) -> Reply<'_, RunDetails> {
        self.answer(|inner| Ok(inner.details.get(&run).cloned().unwrap_or_default()))
    }

    fn document(&self, name: Arc<str>) -> Reply<'_, Option<Document>> {
        self.answer(|inner| Ok(inner.documents.get(&name).cloned()))
    }

    fn put_document(&self, name: Arc<str>, version: u64, bytes: Bytes) -> Reply<'_, bool> {
        self.answer(|inner| {
            if inner.documents.get(&name).map_or(0, |document| document.version) != version {
                return Ok(false);
            }
            inner.documents.insert(name, Document { version: version + 1, bytes });
            Ok(true)
        })
    }

    fn secret(&self, fresh: [u8; 32]) -> Reply<'_, [u8; 32]> {
        self.answer(|inner| Ok(*inner.secret.get_or_insert(fresh)))
    }

    fn retire(&self, retention: Retention) -> Reply<'_, u64> {
        self.answer(|inner| Ok(inner.retire(&retention)))
    }
}
