//! The reference store: the contract as short, obvious code. It forgets everything when it is dropped.

mod claim;
mod query;
mod retire;
mod roster;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Entry, Outcome, ScheduleKey, StartId};
use tokio::sync::mpsc;

use query::{is_kept, is_wanted};

use crate::{
    Batch, Beat, Bytes, Claim, Conflict, Document, Epoch, Expected, Keeper, Kept, Lease, Lifespan, Listener,
    LiveRun, LiveState, NewQueue, NewRun, News, NodeId, NodeSeen, Page, Queue, QueueDepth, QueueKey,
    QueueSettings, Reply, Retention, Roster, RunDetails, RunKey, RunQuery, RunRequest, RunWrite,
    ScheduleQuery, Sequence, ShardId, Store, StoreError, StoredRun, StoredTree, Taken, TreeKey, TreeRef,
    TreeView, TreeWrite, Unit,
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

impl Inner {
    fn find(&self, tree: &TreeRef) -> Option<StoredTree> {
        let key = match tree {
            TreeRef::Key(key) => *key,
            TreeRef::Name(name) => *self.names.get(name)?,
        };
        self.trees.get(&key).map(|row| row.stored.clone())
    }

    /// Checks everything, then writes everything.
    fn commit(&mut self, unit: &Unit, keeper: Keeper) -> Result<(), StoreError> {
        if let Some(write) = &unit.tree {
            self.check_tree(write)?;
        }
        // Whoever asks the same again shall hear that, whatever became of the runs.
        if let Some(request) = &unit.request {
            let place = (request.namespace.clone(), request.id.clone());
            if let Some(RunRequest { runs, .. }) = self.requests.get(&place) {
                return Err(StoreError::Conflict(Conflict::Repeated { runs: runs.clone() }));
            }
        }
        for (place, write) in unit.runs.iter().enumerate() {
            self.check_run(write, &unit.runs[..place])?;
        }
        if let Some(request) = &unit.request {
            let place = (request.namespace.clone(), request.id.clone());
            self.requests.insert(place, request.clone());
        }
        if let Some(write) = &unit.tree {
            self.write_tree(write);
            if write.epoch.is_none() {
                let (shard, tree, due_time) = (write.shard, write.tree, write.due_time);
                self.tell(&News::Tree { shard, tree, due_time });
            }
        }
        for write in &unit.runs {
            self.write_run(write, keeper);
        }
        Ok(())
    }

    fn check_tree(&self, write: &TreeWrite) -> Result<(), StoreError> {
        let epoch = self.leases.get(&write.shard).map_or(Epoch(0), |(epoch, _)| *epoch);
        if let Some(believed) = write.epoch.filter(|believed| *believed != epoch) {
            return Err(StoreError::Fenced { epoch: believed });
        }
        match &write.expected {
            Expected::At(expected) => {
                let found = self.trees.get(&write.tree).map(|row| row.stored.sequence);
                if found != Some(*expected) {
                    return Err(StoreError::Conflict(Conflict::Sequence { expected: *expected, found }));
                }
            }
            Expected::New { key, replaces } => {
                if self.names.get(key).copied() != *replaces || self.trees.contains_key(&write.tree) {
                    return Err(StoreError::Conflict(Conflict::NameTaken));
                }
            }
        }
        Ok(())
    }

    /// Runs are judged by what was there before the unit, and by what it makes before.
    fn check_run(&self, write: &RunWrite, before: &[RunWrite]) -> Result<(), StoreError> {
        let moved = |run: RunKey| Err(StoreError::Conflict(Conflict::RunMoved { run }));
        let mut made_before = before.iter().filter_map(|write| match write {
            RunWrite::Insert(made) => Some(made),
            _ => None,
        });
        match write {
            RunWrite::Insert(made)
                if self.live.contains_key(&made.run)
                    || self.closed.contains_key(&made.run)
                    || made_before.clone().any(|other| other.run == made.run) =>
            {
                moved(made.run)
            }
            RunWrite::Insert(made) if made.dedup.is_some() => {
                let same = |other: &&NewRun| other.queue == made.queue && other.dedup == made.dedup;
                let live = self.live.values().map(|live| &live.made).find(same);
                match live.or_else(|| made_before.find(same)) {
                    Some(other) => Err(StoreError::Conflict(Conflict::Duplicate { run: other.run })),
                    None => Ok(()),
                }
            }
            RunWrite::Bury { run } if !self.closed.get(run).is_some_and(|run| run.is_dead_letter) => {
                moved(*run)
            }
            RunWrite::Retry { run, attempt, .. }
            | RunWrite::HandOver { run, attempt, .. }
            | RunWrite::Close { run, attempt: Some(attempt), .. } => {
                let running = |live: &LiveRun| {
                    matches!(live.state, LiveState::Running { .. }) && live.attempt == *attempt
                };
                if self.live.get(run).is_some_and(running) { Ok(()) } else { moved(*run) }
            }
            RunWrite::Close { run, attempt: None, .. } if !self.live.contains_key(run) => moved(*run),
            RunWrite::Insert(_)
            | RunWrite::Close { .. }
            | RunWrite::Release { .. }
            | RunWrite::Stop { .. }
            | RunWrite::Bury { .. }
            | RunWrite::Details { .. } => Ok(()),
        }
    }

    fn write_tree(&mut self, write: &TreeWrite) {
        if let Expected::New { key, replaces } = &write.expected {
            if let Some(row) = replaces.and_then(|old| self.trees.get_mut(&old)) {
                row.replaced = true;
            }
            self.names.insert(key.clone(), write.tree);
            let stored = StoredTree {
                tree: write.tree,
                shard: write.shard,
                key: key.clone(),
                sequence: Sequence(0),
                due_time: None,
                definition: Arc::new([]),
                state: Arc::new([]),
                completion: None,
            };
            let view = TreeView { lifespan: Lifespan::Open, paused: false, queue: None };
            self.trees.insert(write.tree, Row { stored, view, replaced: false });
        }
        let Some(row) = self.trees.get_mut(&write.tree) else { return };
        row.stored.sequence.0 += 1;
        row.stored.state = write.state.clone();
        row.stored.due_time = write.due_time;
        if let Some(definition) = &write.definition {
            row.stored.definition = definition.clone();
        }
        if let Some(completion) = &write.completion {
            row.stored.completion = completion.clone();
        }
        row.view = write.view.unwrap_or(row.view);
        self.ledger.entry(write.tree).or_default().extend(write.ledger.iter().cloned());
        if write.retired
            && let Some(row) = self.trees.remove(&write.tree)
        {
            self.ledger.remove(&write.tree);
            if !row.replaced {
                self.names.remove(&row.stored.key);
            }
        }
    }

    fn write_run(&mut self, write: &RunWrite, keeper: Keeper) {
        match write {
            RunWrite::Insert(made) => {
                let state = match made.not_before {
                    Some(not_before) => LiveState::BackingOff { not_before },
                    None => LiveState::Ready,
                };
                let settings = self.queues.get(&made.queue).map(|queue| queue.made.settings.clone());
                let rank = settings.unwrap_or_default().rank(made.created_at, made.priority);
                self.ranks.insert(made.run, rank);
                if made.not_before.is_none() {
                    self.queue_up(made.queue, &made.key);
                }
                let live =
                    LiveRun { made: made.clone(), attempt: 0, state, stop: None, failure: None, keeper };
                self.live.insert(made.run, live);
            }
            RunWrite::Retry { run, not_before, failure, .. } => {
                if let Some(live) = self.live.get_mut(run) {
                    live.state = LiveState::BackingOff { not_before: *not_before };
                    live.failure = Some(failure.clone());
                    live.keeper = keeper;
                }
            }
            RunWrite::Release { run } => {
                let waits = |live: &LiveRun| matches!(live.state, LiveState::BackingOff { .. });
                if let Some(live) = self.live.get(run).filter(|live| waits(live)).cloned() {
                    self.queue_up(live.made.queue, &live.made.key);
                    self.live.insert(*run, LiveRun { state: LiveState::Ready, ..live });
                }
            }
            RunWrite::Stop { run, kind } => {
                if let Some(live) = self.live.get_mut(run) {
                    live.stop = live.stop.max(Some(*kind));
                }
            }
            RunWrite::Close { run, closing, .. } => {
                if let Some(live) = self.live.remove(run) {
                    let is_dead_letter = matches!(closing.outcome, Outcome::Failed | Outcome::TimedOut);
                    let closing = Some(closing.clone());
                    self.closed.insert(*run, StoredRun { run: live, closing, is_dead_letter });
                }
            }
            RunWrite::HandOver { run, worker: to, .. } => {
                if let Some(LiveState::Running { worker, .. }) =
                    self.live.get_mut(run).map(|live| &mut live.state)
                {
                    *worker = to.clone();
                }
            }
            RunWrite::Bury { run } => {
                if let Some(closed) = self.closed.get_mut(run) {
                    closed.is_dead_letter = false;
                }
            }
            RunWrite::Details { run, attempt, progress, log_tail } => {
                if self.live.get(run).is_some_and(|live| live.attempt == *attempt) {
                    let details = self.details.entry(*run).or_default();
                    details.progress = progress.clone().or(details.progress.take());
                    details.log_tail = log_tail.clone().or(details.log_tail.take());
                }
            }
        }
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
        self.answer(|inner| {
            let (now, (epoch, held)) = (inner.now, inner.leases.entry(shard).or_default());
            if held.as_ref().is_some_and(|lease| lease.node != node && lease.expires_at > now) {
                return Ok(None);
            }
            epoch.0 += 1;
            let lease = Lease { shard, node, epoch: *epoch, expires_at: now + ttl };
            *held = Some(lease.clone());
            Ok(Some(lease))
        })
    }

    fn renew(&self, lease: Lease, ttl: SignedDuration) -> Reply<'_, Lease> {
        self.answer(|inner| {
            let (now, (epoch, held)) = (inner.now, inner.leases.entry(lease.shard).or_default());
            if *epoch != lease.epoch || held.is_none() {
                return Err(StoreError::Fenced { epoch: lease.epoch });
            }
            let lease = Lease { expires_at: now + ttl, ..lease };
            *held = Some(lease.clone());
            Ok(lease)
        })
    }

    fn release(&self, lease: Lease) -> Reply<'_, ()> {
        self.answer(|inner| {
            let (epoch, held) = inner.leases.entry(lease.shard).or_default();
            if *epoch == lease.epoch {
                *held = None;
            }
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
        self.answer(|inner| {
            let first = after.map_or(Bound::Unbounded, Bound::Excluded);
            let rows =
                inner.trees.range((first, Bound::Unbounded)).filter(|(_, row)| row.stored.shard == shard);
            Ok(rows.map(|(tree, row)| (*tree, row.stored.due_time)).take(count).collect())
        })
    }

    fn ledger(
        &self,
        tree: TreeKey,
        after: Timestamp,
        through: Timestamp,
        count: usize,
    ) -> Reply<'_, Vec<Entry>> {
        self.answer(|inner| {
            let touches = |entry: &&Entry| entry.through > after && entry.from <= through;
            let mut entries: Vec<Entry> =
                inner.ledger.get(&tree).into_iter().flatten().filter(touches).cloned().collect();
            entries.sort_by_key(|entry| (entry.from, entry.through, entry.origin));
            entries.truncate(count);
            Ok(entries)
        })
    }

    fn schedules(&self, query: ScheduleQuery) -> Reply<'_, Page<StoredTree>> {
        self.answer(|inner| {
            let mut rows: Vec<StoredTree> = inner
                .trees
                .values()
                .filter(|row| inner.matches(&query, row))
                .map(|row| row.stored.clone())
                .collect();
            rows.sort_by(|one, other| one.key.cmp(&other.key));
            rows.retain(|row| query.after.as_ref().is_none_or(|after| row.key.schedule > *after));
            let more = rows.len() > query.count;
            rows.truncate(query.count);
            let next = rows.last().filter(|_| more).map(|row| row.key.schedule.clone());
            Ok(Page { items: rows, next })
        })
    }

    fn count_schedules(&self, query: ScheduleQuery) -> Reply<'_, u64> {
        self.answer(|inner| Ok(inner.trees.values().filter(|row| inner.matches(&query, row)).count() as u64))
    }

    fn create_queue(&self, queue: NewQueue) -> Reply<'_, Queue> {
        self.answer(|inner| {
            let same =
                |known: &&Queue| known.made.namespace == queue.namespace && known.made.name == queue.name;
            if let Some(known) = inner.queues.values().find(same) {
                return Ok(known.clone());
            }
            let key = QueueKey(inner.keys);
            inner.keys += 1;
            inner.queues.insert(key, Queue { queue: key, made: queue.clone() });
            inner.tell(&News::Queue(key));
            Ok(Queue { queue: key, made: queue })
        })
    }

    fn update_queue(&self, queue: QueueKey, settings: QueueSettings) -> Reply<'_, Option<Queue>> {
        self.answer(|inner| {
            let known = inner.queues.get_mut(&queue);
            let updated = known.map(|known| {
                known.made.settings = settings;
                known.clone()
            });
            if let Some(known) = &updated {
                inner.forget_windows(queue, &known.made.settings);
                inner.tell(&News::Queue(queue));
            }
            Ok(updated)
        })
    }

    fn queues(&self, namespace: Option<Arc<str>>) -> Reply<'_, Vec<Queue>> {
        self.answer(|inner| {
            let wanted =
                |queue: &&Queue| namespace.as_ref().is_none_or(|wanted| queue.made.namespace == *wanted);
            let mut queues: Vec<Queue> = inner.queues.values().filter(wanted).cloned().collect();
            queues.sort_by_key(|queue| (queue.made.namespace.clone(), queue.made.name.clone()));
            Ok(queues)
        })
    }

    fn queue_depth(&self, queue: QueueKey) -> Reply<'_, QueueDepth> {
        self.answer(|inner| {
            let mut depth = QueueDepth::default();
            for live in inner.live.values().filter(|live| live.made.queue == queue) {
                match live.state {
                    LiveState::Ready => depth.ready += 1,
                    LiveState::BackingOff { .. } => depth.backing_off += 1,
                    LiveState::Running { .. } => depth.running += 1,
                }
            }
            depth.first_made_at = inner.first_in_line(queue).map(|live| live.made.created_at);
            Ok(depth)
        })
    }

    fn claim(&self, claim: Claim) -> Reply<'_, Taken> {
        self.answer(|inner| Ok(inner.claim(&claim)))
    }

    fn live_runs(&self, kept: Kept, after: Option<RunKey>, count: usize) -> Reply<'_, Vec<LiveRun>> {
        self.answer(|inner| {
            let first = after.map_or(Bound::Unbounded, Bound::Excluded);
            Ok(inner
                .live
                .range((first, Bound::Unbounded))
                .map(|(_, live)| live.clone())
                .filter(|live| is_kept(&kept, live.keeper))
                .take(count)
                .collect())
        })
    }

    fn load_runs(&self, runs: Vec<RunKey>) -> Reply<'_, Vec<Option<StoredRun>>> {
        self.answer(|inner| Ok(runs.iter().map(|run| inner.run(*run)).collect()))
    }

    fn closed_run(&self, tree: TreeKey, start: StartId) -> Reply<'_, Option<RunKey>> {
        self.answer(|inner| {
            let mut closed = inner.closed.values();
            Ok(closed.find(|run| run.run.made.origin == Some((tree, start))).map(|run| run.run.made.run))
        })
    }

    fn runs(&self, query: RunQuery) -> Reply<'_, Page<StoredRun>> {
        self.answer(|inner| {
            let of_namespace = |queue: &QueueKey| {
                inner.queues.get(queue).is_some_and(|queue| queue.made.namespace == query.namespace)
            };
            let mut keys: Vec<RunKey> = inner.live.keys().chain(inner.closed.keys()).copied().collect();
            keys.sort_by(|one, other| other.cmp(one));
            let found = keys.into_iter().filter_map(|key| inner.run(key));
            let mut found = found.filter(|run| is_wanted(&query, run) && of_namespace(&run.run.made.queue));
            let items: Vec<StoredRun> = found.by_ref().take(query.count).collect();
            let more = found.next().is_some();
            let next = items.last().filter(|_| more).map(|run| run.run.made.run.to_string().into());
            Ok(Page { items, next })
        })
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
