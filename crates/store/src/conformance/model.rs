//! A store beside the reference store: random operations on both, from a seed, and every answer is compared.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{NotStarted, Origin, Outcome, RequestKey, ScheduleKey, Skip, StartId, StopKind, Verdict};

use super::Subject;
use super::query::{all_runs, all_schedules};
use super::support::{Random, at, bytes, closing, entry, new_queue, new_run, next};
use crate::memory::Memory;
use crate::{
    Batch, Claim, Closing, Epoch, Expected, Lease, Lifespan, NewRun, NodeId, QueueKey, Retention, RunFilter,
    RunKey, RunQuery, RunWrite, ScheduleQuery, Sequence, ShardId, Store, TreeKey, TreeRef, TreeView,
    TreeWrite, Unit,
};

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
        match pair.random.below(20) {
            0 => pair.create_queue().await,
            1 | 2 => pair.lease(&place).await,
            3..=6 => pair.claim(&place).await,
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

    async fn create_queue(&mut self) {
        let name = format!("queue {}", self.random.below(4));
        let namespace = if self.random.one_in(4) { "elsewhere" } else { "default" };
        let made = new_queue(namespace, &name);
        let queue = self.store.create_queue(made.clone()).await.expect("the store answers");
        if !self.queues.contains(&queue.queue) {
            // The twin shall give the same key: it gives the next one.
            let next = self.twin.reserve(0).await.expect("memory answers");
            let missing = u32::try_from(queue.queue.0 - next).expect("keys are small");
            self.twin.reserve(missing).await.expect("memory answers");
            self.queues.push(queue.queue);
        }
        assert_eq!(Ok(queue), self.twin.create_queue(made).await);
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

    async fn claim(&mut self, place: &str) {
        let queue = *self.random.pick(&self.queues).expect("there is a queue");
        let runs_max = self.random.below(4);
        let now = at(self.random.below(1_000) as i64);
        let claim = Claim { queue, worker: "worker".into(), runs_max, now };
        let answers = (self.store.claim(claim.clone()).await, self.twin.claim(claim).await);
        assert_eq!(answers.0, answers.1, "{place}: claim");
    }

    async fn retire(&mut self, place: &str) {
        let rows_max = 1 + self.random.below(20);
        let runs_before = at(self.random.below(600) as i64);
        let ledger_before = at(self.random.below(600) as i64);
        let retention = Retention { runs_before, ledger_before, rows_max };
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

impl Pair {
    async fn commit(&mut self, place: &str) {
        self.again.clear();
        self.closed.clear();
        let mut batch = Batch::default();
        for _ in 0..1 + self.random.below(5) {
            let tree = if self.random.one_in(3) { None } else { Some(self.tree_write().await) };
            let mut runs = Vec::new();
            for _ in 0..self.random.below(4) {
                runs.extend(self.run_write().await);
            }
            batch.units.push(Unit { tree, runs });
        }
        let answers = (self.store.commit(batch.clone()).await, self.twin.commit(batch.clone()).await);
        assert_eq!(answers.0, answers.1, "{place}: commit of {batch:#?}");
    }

    async fn tree_write(&mut self) -> TreeWrite {
        let known = self.random.pick(&self.trees).copied().filter(|_| !self.random.one_in(5));
        let write = match known {
            Some(tree) => {
                let stored = self.twin.load_now(&[TreeRef::Key(tree)]).remove(0);
                let sequence = stored.map_or(1, |stored| stored.sequence.0);
                let wrong = if self.random.one_in(8) { 1 } else { 0 };
                TreeWrite { expected: Expected::At(Sequence(sequence + wrong)), ..next(tree, sequence) }
            }
            None => {
                let tree = TreeKey(self.key().await);
                self.trees.push(tree);
                let namespace = if self.random.one_in(6) { "elsewhere" } else { "default" };
                let key = ScheduleKey::new(namespace, NAMES[self.random.below(NAMES.len())]);
                let holder = self.twin.load_now(&[TreeRef::Name(key.clone())]).remove(0);
                let replaces = match self.random.below(6) {
                    0 => None,
                    1 => self.random.pick(&self.trees).copied(),
                    _ => holder.map(|holder| holder.tree),
                };
                TreeWrite { expected: Expected::New { key, replaces }, ..next(tree, 0) }
            }
        };
        self.with_parts(write)
    }

    fn with_parts(&mut self, write: TreeWrite) -> TreeWrite {
        let shard = ShardId((write.tree.0 % 4) as u32);
        let random = &mut self.random;
        let held = self.leases.iter().rev().find(|lease| lease.shard == shard).map(|lease| lease.epoch);
        let epoch = match random.below(6) {
            0..=2 => None,
            3 => Some(Epoch(random.below(4) as u64)),
            _ => held,
        };
        let view = TreeView {
            lifespan: [Lifespan::Open, Lifespan::Completed, Lifespan::Deleted][random.below(3)],
            paused: random.one_in(2),
            queue: random.pick(&self.queues).copied(),
        };
        let text = random.number().to_string();
        let mut ledger = Vec::new();
        for _ in 0..random.below(3) {
            let from = random.below(500) as i64;
            let wide = if random.one_in(2) { random.below(50) as i64 } else { 0 };
            let origin = if random.one_in(2) {
                Origin::Spec
            } else {
                Origin::Request(RequestKey(random.number() | 1))
            };
            let verdict = if random.one_in(2) {
                Verdict::NotStarted(NotStarted::Dropped)
            } else {
                Verdict::NotStarted(NotStarted::Skipped(Skip::Overlap))
            };
            ledger.push(punctual_core::Entry { origin, verdict, ..entry(from, from + wide) });
        }
        TreeWrite {
            shard,
            epoch,
            definition: random.one_in(4).then(|| bytes(&text)),
            view: random.one_in(3).then_some(view),
            state: bytes(&format!("state {text}")),
            completion: random.one_in(4).then(|| random.one_in(2).then(|| bytes(&text))),
            due_time: (!random.one_in(5)).then(|| at(random.below(1_000) as i64)),
            ledger,
            retired: random.one_in(12),
            ..write
        }
    }

    async fn run_write(&mut self) -> Option<RunWrite> {
        let known = self.random.pick(&self.runs).copied();
        let kind = self.random.below(12);
        let Some(run) = known.filter(|_| kind > 3) else { return self.insert().await };
        let attempt = self.random.below(3) as u32;
        let text = bytes(&self.random.number().to_string());
        Some(match kind {
            4 | 5 => {
                let not_before = at(self.random.below(1_000) as i64);
                RunWrite::Retry { run, attempt, not_before, failure: text }
            }
            6 => RunWrite::Release { run },
            7 => {
                let kind = if self.random.one_in(2) { StopKind::Cancel } else { StopKind::Terminate };
                RunWrite::Stop { run, kind }
            }
            8 | 9 => {
                let (progress, log_tail) = (self.random.one_in(2), self.random.one_in(2));
                let (progress, log_tail) = (progress.then(|| text.clone()), log_tail.then_some(text));
                RunWrite::Details { run, attempt, progress, log_tail }
            }
            _ if self.again.contains(&run) => return None,
            _ => {
                self.closed.insert(run);
                let outcome = [Outcome::Succeeded, Outcome::Failed, Outcome::TimedOut][self.random.below(3)];
                let closed_at = at(self.random.below(600) as i64);
                let closing = Closing { closed_at, ..closing(outcome) };
                RunWrite::Close { run, attempt: (!self.random.one_in(3)).then_some(attempt), closing }
            }
        })
    }

    async fn insert(&mut self) -> Option<RunWrite> {
        let known = self.random.pick(&self.runs).copied();
        let live = self.twin.live_runs(None, usize::MAX).await.expect("memory answers");
        let is_live = |run: &RunKey| live.iter().any(|live| live.made.run == *run);
        let known = known.filter(|run| is_live(run) && !self.closed.contains(run));
        let run = match known.filter(|_| self.random.one_in(8)) {
            Some(run) => {
                self.again.insert(run);
                run
            }
            None => {
                let run = RunKey(self.key().await);
                self.runs.push(run);
                run
            }
        };
        let queue = *self.random.pick(&self.queues)?;
        self.nominal_ms += 1;
        let origin = if self.random.one_in(2) {
            Origin::Spec
        } else {
            Origin::Request(RequestKey(self.random.number() | 1))
        };
        let start = StartId { nominal_ms: self.nominal_ms, origin };
        let tree = self.random.pick(&self.trees).copied();
        let origin = tree.filter(|_| !self.random.one_in(3)).map(|tree| (tree, start));
        Some(RunWrite::Insert(NewRun { origin, ..new_run(run, queue) }))
    }
}

impl Pair {
    async fn query(&mut self, place: &str) {
        let random = &mut self.random;
        let namespace: Arc<str> = if random.one_in(4) { "elsewhere".into() } else { "default".into() };
        let prefix = ["", "a", "b", "x"][random.below(4)].into();
        let lifespans = [None, Some(Lifespan::Open), Some(Lifespan::Completed), Some(Lifespan::Deleted)];
        let queue = random.pick(&self.queues).copied();
        let schedules = ScheduleQuery {
            namespace: namespace.clone(),
            prefix,
            lifespan: lifespans[random.below(4)],
            paused: [None, Some(true), Some(false)][random.below(3)],
            queue: queue.filter(|_| random.one_in(3)),
            after: None,
            count: 1 + random.below(4),
        };
        let filters = [
            None,
            Some(RunFilter::Ready),
            Some(RunFilter::BackingOff),
            Some(RunFilter::Running),
            Some(RunFilter::Closed(None)),
            Some(RunFilter::Closed(Some(Outcome::Failed))),
        ];
        let tree = random.pick(&self.trees).copied();
        let before = random.pick(&self.runs).copied();
        let runs = RunQuery {
            namespace,
            tree: tree.filter(|_| random.one_in(3)),
            queue: queue.filter(|_| random.one_in(3)),
            filter: filters[random.below(6)],
            before: before.filter(|_| random.one_in(3)),
            count: 1 + random.below(6),
        };
        let (store, twin) = (&*self.store, &self.twin);
        assert_eq!(all_schedules(store, &schedules).await, all_schedules(twin, &schedules).await, "{place}");
        let counts = (store.count_schedules(schedules.clone()).await, twin.count_schedules(schedules).await);
        assert_eq!(counts.0, counts.1, "{place}: count");
        assert_eq!(all_runs(store, &runs).await, all_runs(twin, &runs).await, "{place}: {runs:?}");
    }

    async fn compare(&mut self, place: &str) {
        let (store, twin) = (&*self.store, &self.twin);
        let refs: Vec<TreeRef> = self.trees.iter().map(|tree| TreeRef::Key(*tree)).collect();
        assert_eq!(store.load(refs.clone()).await, twin.load(refs).await, "{place}: schedules");
        let names = NAMES.iter().map(|name| TreeRef::Name(ScheduleKey::new("default", name)));
        let names: Vec<TreeRef> = names.collect();
        assert_eq!(store.load(names.clone()).await, twin.load(names).await, "{place}: names");
        for shard in 0..4 {
            let after = self.random.pick(&self.trees).copied().filter(|_| self.random.one_in(2));
            let count = self.random.below(50);
            let timers = (
                store.timers(ShardId(shard), after, count).await,
                twin.timers(ShardId(shard), after, count).await,
            );
            assert_eq!(timers.0, timers.1, "{place}: timers");
        }
        for tree in &self.trees {
            let after = at(self.random.below(500) as i64 - 1);
            let through = after + SignedDuration::from_secs(self.random.below(300) as i64);
            let count = self.random.below(9);
            let entries = (
                store.ledger(*tree, after, through, count).await,
                twin.ledger(*tree, after, through, count).await,
            );
            assert_eq!(entries.0, entries.1, "{place}: ledger");
        }
        for queue in &self.queues {
            let depths = (store.queue_depth(*queue).await, twin.queue_depth(*queue).await);
            assert_eq!(depths.0, depths.1, "{place}: depth");
        }
        assert_eq!(store.queues(None).await, twin.queues(None).await, "{place}: queues");
        let live = twin.live_runs(None, usize::MAX).await;
        assert_eq!(store.live_runs(None, usize::MAX).await, live, "{place}: live runs");
        let stored = twin.load_runs(self.runs.clone()).await;
        assert_eq!(store.load_runs(self.runs.clone()).await, stored, "{place}: runs");
        for run in stored.expect("memory answers").into_iter().flatten() {
            let key = run.run.made.run;
            assert_eq!(store.run_details(key).await, twin.run_details(key).await, "{place}: details");
            if let Some((tree, start)) = run.run.made.origin {
                let closed = (store.closed_run(tree, start).await, twin.closed_run(tree, start).await);
                assert_eq!(closed.0, closed.1, "{place}: closed run");
            }
        }
    }
}
