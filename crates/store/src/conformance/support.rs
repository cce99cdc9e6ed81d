//! Short words for what the suite writes again and again.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Entry, NotStarted, Origin, ScheduleKey, StartId, Verdict};

use super::Subject;
use crate::{
    Batch, Bytes, Claim, Closing, Expected, LiveRun, NewQueue, NewRun, QueueKey, QueueSettings, RunKey,
    RunWrite, Sequence, ShardId, Store, StoreError, StoredTree, TreeKey, TreeRef, TreeWrite, Unit,
};

/// A store under test, and the queue that most tests use.
pub(super) struct Bed {
    pub(super) store: Arc<dyn Store>,
    pub(super) queue: QueueKey,
}

impl Bed {
    pub(super) async fn new(subject: &impl Subject) -> Bed {
        let store = subject.create().await;
        let queue =
            store.create_queue(new_queue("default", "work")).await.expect("a queue is declared").queue;
        Bed { store, queue }
    }

    /// A key that nobody else has.
    pub(super) async fn key(&self) -> i64 {
        self.store.reserve(1).await.expect("a key is given")
    }

    /// Commits one unit.
    pub(super) async fn commit(&self, unit: Unit) -> Result<(), StoreError> {
        let answers = self.store.commit(Batch::of(vec![unit])).await.expect("the store answers");
        assert_eq!(answers.len(), 1, "each unit has one answer");
        answers.into_iter().next().expect("one answer")
    }

    /// Commits a write of a schedule.
    pub(super) async fn write(&self, write: TreeWrite) -> Result<(), StoreError> {
        self.commit(Unit { tree: Some(write), runs: Vec::new(), request: None }).await
    }

    /// Commits changes of runs.
    pub(super) async fn write_runs(&self, runs: Vec<RunWrite>) -> Result<(), StoreError> {
        self.commit(Unit { tree: None, runs, request: None }).await
    }

    /// Makes a schedule.
    pub(super) async fn tree(&self, name: &str) -> TreeKey {
        let tree = TreeKey(self.key().await);
        self.write(new_tree(tree, name)).await.expect("a new schedule is written");
        tree
    }

    pub(super) async fn load(&self, tree: TreeKey) -> Option<StoredTree> {
        self.store.load(vec![TreeRef::Key(tree)]).await.expect("the store answers").remove(0)
    }

    pub(super) async fn load_name(&self, name: &str) -> Option<StoredTree> {
        let name = TreeRef::Name(ScheduleKey::new("default", name));
        self.store.load(vec![name]).await.expect("the store answers").remove(0)
    }

    /// A run that is not written yet.
    pub(super) async fn new_run(&self) -> NewRun {
        new_run(RunKey(self.key().await), self.queue)
    }

    /// A run that is ready.
    pub(super) async fn ready(&self) -> NewRun {
        let made = self.new_run().await;
        self.write_runs(vec![RunWrite::Insert(made.clone())]).await.expect("a new run is written");
        made
    }

    /// A run that a worker has.
    pub(super) async fn running(&self) -> LiveRun {
        let made = self.ready().await;
        let claimed = self.claim(usize::MAX).await;
        claimed.into_iter().find(|run| run.made.run == made.run).expect("a ready run is handed out")
    }

    pub(super) async fn claim(&self, runs_max: usize) -> Vec<LiveRun> {
        let claim = Claim {
            queue: self.queue,
            worker: "worker".into(),
            runs_max,
            now: at(77),
            keeper: Default::default(),
        };
        self.store.claim(claim).await.expect("the store answers").runs
    }

    pub(super) async fn live(&self) -> Vec<LiveRun> {
        self.store.live_runs(Default::default(), None, usize::MAX).await.expect("the store answers")
    }
}

/// A time, odd to the nanosecond.
pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::new(1_800_000_000 + second, 123_456_789)
}

pub(super) fn bytes(text: &str) -> Bytes {
    text.as_bytes().into()
}

pub(super) fn new_queue(namespace: &str, name: &str) -> NewQueue {
    let description = format!("description of {name}").into();
    let settings = QueueSettings { description, ..QueueSettings::default() };
    NewQueue { namespace: namespace.into(), name: name.into(), settings, created_at: at(0) }
}

pub(super) fn new_tree(tree: TreeKey, name: &str) -> TreeWrite {
    let key = ScheduleKey::new("default", name);
    let definition = Some(bytes(&format!("definition of {name}")));
    TreeWrite { expected: Expected::New { key, replaces: None }, definition, ..next(tree, 0) }
}

/// A write that expects a sequence.
pub(super) fn next(tree: TreeKey, sequence: u64) -> TreeWrite {
    TreeWrite {
        tree,
        shard: ShardId(0),
        epoch: None,
        expected: Expected::At(Sequence(sequence)),
        definition: None,
        view: None,
        state: bytes(&format!("state after {sequence}")),
        completion: None,
        due_time: Some(at(sequence as i64)),
        ledger: Vec::new(),
        retired: false,
    }
}

pub(super) fn new_run(run: RunKey, queue: QueueKey) -> NewRun {
    NewRun {
        run,
        queue,
        origin: None,
        due_time: at(1),
        created_at: at(2),
        priority: 0,
        key: "".into(),
        dedup: None,
        not_before: None,
        body: bytes(&format!("body of {run}")),
    }
}

/// The start of an occurrence.
pub(super) fn start(nominal_ms: i64) -> StartId {
    StartId { nominal_ms, origin: Origin::Spec }
}

pub(super) fn closing(outcome: punctual_core::Outcome) -> Closing {
    Closing { outcome, closed_at: at(99), payload: Some(bytes("result")) }
}

/// A ledger entry of some seconds.
pub(super) fn entry(from: i64, through: i64) -> Entry {
    Entry {
        from: at(from),
        through: at(through),
        count: (through - from + 1) as u64,
        at_least: false,
        origin: Origin::Spec,
        verdict: Verdict::NotStarted(NotStarted::Paused),
        decided_at: at(through + 1),
    }
}

/// Waits for all of them at once.
pub(super) async fn all<T>(futures: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut waiting: Vec<Pin<Box<_>>> = futures.into_iter().map(Box::pin).collect();
    let mut answers: Vec<Option<T>> = waiting.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, answer) in waiting.iter_mut().zip(&mut answers) {
            if answer.is_none()
                && let Poll::Ready(given) = future.as_mut().poll(context)
            {
                *answer = Some(given);
            }
        }
        if answers.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    answers.into_iter().flatten().collect()
}

/// Numbers from a seed.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Less than this.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound.max(1) as u64) as usize
    }

    /// True once in so many times.
    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() { None } else { Some(&from[self.below(from.len())]) }
    }
}
