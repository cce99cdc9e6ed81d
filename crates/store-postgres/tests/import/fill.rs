//! Files with something in them.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{
    Entry, NotStarted, Origin, Outcome, RequestKey, ScheduleKey, StartId, StopKind, Verdict,
};
use punctual_store::conformance::{Subject, chaos, model};
use punctual_store::{
    Batch, Beat, Claim, Closing, Expected, Keeper, Lifespan, NewQueue, NewRun, NodeId, QueueKey,
    QueueSettings, Rate, RunKey, RunRequest, RunWrite, Sequence, ShardId, Store, TreeKey, TreeView,
    TreeWrite, Unit,
};
use punctual_store_sqlite::{OpenError, Options, Sqlite};

/// Files that a suite fills at random.
struct InFolder {
    folder: PathBuf,
    count: Cell<usize>,
    last: RefCell<PathBuf>,
}

impl InFolder {
    fn open(&self) -> Arc<dyn Store> {
        open(&self.last.borrow())
    }
}

impl Subject for InFolder {
    async fn create(&self) -> Arc<dyn Store> {
        self.count.set(self.count.get() + 1);
        *self.last.borrow_mut() = self.folder.join(format!("{}.db", self.count.get()));
        self.open()
    }

    async fn advance(&self, by: SignedDuration) {
        tokio::time::sleep(by.unsigned_abs()).await;
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        drop(store);
        self.open()
    }
}

/// Opens a file. Whoever had it just now may still be letting go of it, on a thread of its own.
fn open(path: &Path) -> Arc<dyn Store> {
    let begun = std::time::Instant::now();
    loop {
        match Sqlite::open(path, Options { shards: 4, ..Options::default() }) {
            Ok(store) => return Arc::new(store),
            Err(OpenError::InUse { .. }) if begun.elapsed().as_secs() < 10 => std::thread::yield_now(),
            Err(error) => panic!("the file opens: {error}"),
        }
    }
}

/// What the comparison with the reference leaves behind, or, every third time, the limits that come and go.
pub async fn from_seed(folder: &Path, seed: u64) -> PathBuf {
    std::fs::create_dir_all(folder).expect("a folder is made");
    let subject = InFolder { folder: folder.into(), count: Cell::new(0), last: RefCell::default() };
    match seed % 3 {
        2 => chaos::exercise(&subject, seed).await,
        _ => model::exercise(&subject, seed).await,
    }
    subject.last.take()
}

/// A time of our days.
fn at(second: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::new(1_800_000_000 + second, 123_456_789)
}

/// A time of other centuries; PostgreSQL keeps them to the second.
fn far(text: &str) -> Timestamp {
    text.parse().expect("a time")
}

async fn commit(store: &dyn Store, unit: Unit) {
    let answers = store.commit(Batch::of(vec![unit])).await.expect("the store answers");
    answers.into_iter().next().expect("one answer").expect("it is written");
}

/// Declares a queue with a limit of every kind.
pub async fn queue(store: &dyn Store, name: &str) -> QueueKey {
    let rate = |starts_max| Some(Rate { starts_max, per: SignedDuration::from_mins(10) });
    let settings = QueueSettings {
        description: "with \u{e9}".into(),
        concurrency_max: Some(6),
        worker_concurrency_max: Some(3),
        rate: rate(5),
        key_concurrency_max: Some(2),
        key_rate: rate(2),
        ..QueueSettings::default()
    };
    let made = NewQueue {
        namespace: "default".into(),
        name: name.into(),
        settings,
        created_at: far("1700-01-01T00:00:00Z"),
    };
    store.create_queue(made).await.expect("a queue is declared").queue
}

async fn tree(store: &dyn Store, name: &str, change: impl FnOnce(&mut TreeWrite)) -> TreeKey {
    let tree = TreeKey(store.reserve(1).await.expect("a key"));
    let mut write = TreeWrite {
        tree,
        shard: ShardId(1),
        epoch: None,
        expected: Expected::New { key: ScheduleKey::new("default", name), replaces: None },
        definition: Some(name.as_bytes().into()),
        view: Some(TreeView { lifespan: Lifespan::Open, paused: false, queue: None }),
        state: [0, 255, 1].as_slice().into(),
        completion: None,
        due_time: None,
        ledger: Vec::new(),
        retired: false,
    };
    change(&mut write);
    commit(store, Unit { tree: Some(write), ..Unit::default() }).await;
    tree
}

fn entry(from: Timestamp, through: Timestamp, origin: Origin) -> Entry {
    let verdict = Verdict::NotStarted(NotStarted::Paused);
    Entry { from, through, count: u64::MAX, at_least: true, origin, verdict, decided_at: through }
}

/// One of everything, and of the odd ones two.
pub async fn with_oddities(folder: &Path) -> PathBuf {
    let path = folder.join("odd ?#%41.db");
    let store = open(&path);
    store.secret([7; 32]).await.expect("it has a secret");
    for version in 0..2 {
        let written = store.put_document("a document".into(), version, [0, 255].as_slice().into()).await;
        assert_eq!(written, Ok(true));
    }
    let (plain, limited) = (queue_without_limits(&*store).await, queue(&*store, "limited").await);
    let request = Origin::Request(RequestKey(u64::MAX));
    let times = ["1700-01-01T00:00:00Z", "2262-04-12T00:00:00Z", "9999-12-30T00:00:00Z"].map(far);
    let first = tree(&*store, "a", |write| {
        write.view = Some(TreeView { lifespan: Lifespan::Deleted, paused: true, queue: Some(plain) });
        write.completion = Some(Some([1, 2].as_slice().into()));
        write.ledger = vec![entry(at(1), at(1), Origin::Spec), entry(at(1), at(9), request)];
        write.ledger.extend(times.map(|time| entry(time, time, request)));
        write.ledger.push(entry(times[0], times[2], Origin::Spec));
    })
    .await;
    tree(&*store, "a", |write| {
        let key = ScheduleKey::new("default", "a");
        write.expected = Expected::New { key, replaces: Some(first) };
        write.due_time = Some(Timestamp::MAX);
    })
    .await;
    let owner = tree(&*store, "\u{1f980} b", |write| write.due_time = Some(times[2])).await;
    let next = TreeWrite { expected: Expected::At(Sequence(1)), ..next_of(owner, at(77), request) };
    commit(&*store, Unit { tree: Some(next), ..Unit::default() }).await;
    runs(&*store, plain, limited, (owner, request)).await;
    path
}

async fn queue_without_limits(store: &dyn Store) -> QueueKey {
    let made = NewQueue {
        namespace: "default".into(),
        name: "plain".into(),
        settings: QueueSettings::default(),
        created_at: at(0),
    };
    store.create_queue(made).await.expect("a queue is declared").queue
}

fn next_of(tree: TreeKey, due_time: Timestamp, origin: Origin) -> TreeWrite {
    TreeWrite {
        tree,
        shard: ShardId(1),
        epoch: None,
        expected: Expected::At(Sequence(0)),
        definition: None,
        view: Some(TreeView { lifespan: Lifespan::Completed, paused: false, queue: None }),
        state: [].as_slice().into(),
        completion: None,
        due_time: Some(due_time),
        ledger: vec![entry(at(20), at(20), origin)],
        retired: false,
    }
}

/// Runs in every state, with and without limits.
async fn runs(store: &dyn Store, plain: QueueKey, limited: QueueKey, (tree, request): (TreeKey, Origin)) {
    let first = store.reserve(60).await.expect("keys");
    let keys = ["", "\0odd", "a", "a\u{e9}"];
    let made = |place: i64, queue| NewRun {
        run: RunKey(first + place),
        queue,
        origin: (place % 2 == 0).then(|| {
            let origin = if place % 4 == 0 { Origin::Spec } else { request };
            (tree, StartId { nominal_ms: place * 1_000, origin })
        }),
        due_time: if place % 7 == 0 { far("3000-01-01T00:00:01Z") } else { at(place) },
        created_at: at(-place % 5),
        priority: (place % 11) as i16 - 5,
        key: keys[place as usize % 4].into(),
        dedup: (place % 5 == 0).then(|| format!("{place}\0").into()),
        not_before: (place % 9 == 0).then(|| at(500 + place)),
        body: vec![place as u8; place as usize].into(),
    };
    let inserts = (0..25).map(|place| made(place, plain)).chain((25..60).map(|place| made(place, limited)));
    let inserts: Vec<RunWrite> = inserts.map(RunWrite::Insert).collect();
    let runs = (0..60).map(|place| RunKey(first + place)).collect();
    let request = RunRequest {
        namespace: "default".into(),
        id: "an id\0".into(),
        runs,
        made_at: far("2400-01-01T00:00:00Z"),
    };
    commit(store, Unit { tree: None, runs: inserts, request: Some(request) }).await;
    for (queue, worker) in [(plain, "w"), (plain, "v\u{e9}"), (limited, "w"), (limited, "v")] {
        let claim =
            Claim { queue, worker: worker.into(), runs_max: 8, now: at(30), keeper: Keeper::default() };
        let taken = store.claim(claim).await.expect("the store answers").runs;
        assert!(!taken.is_empty());
        let mut changes = Vec::new();
        for (place, run) in taken.iter().enumerate() {
            let (run, attempt) = (run.made.run, run.attempt);
            let outcomes = [Outcome::Succeeded, Outcome::Failed, Outcome::TimedOut, Outcome::Cancelled];
            let payload = (place % 2 == 1).then(|| [3; 9].as_slice().into());
            changes.push(match (place, outcomes.get(place)) {
                (_, Some(outcome)) if queue == plain => {
                    let closing = Closing { outcome: *outcome, closed_at: at(40), payload };
                    RunWrite::Close { run, attempt: Some(attempt), closing }
                }
                (4, _) => {
                    RunWrite::Retry { run, attempt, not_before: at(99), failure: [4].as_slice().into() }
                }
                (5, _) => RunWrite::Stop { run, kind: StopKind::Terminate },
                (6, _) => {
                    let progress = Some([6].as_slice().into());
                    RunWrite::Details { run, attempt, progress, log_tail: None }
                }
                _ => RunWrite::Details { run, attempt, progress: None, log_tail: Some([].as_slice().into()) },
            });
        }
        commit(store, Unit { tree: None, runs: changes, request: None }).await;
        if queue == plain {
            let bury = RunWrite::Bury { run: taken[1].made.run };
            commit(store, Unit { tree: None, runs: vec![bury], request: None }).await;
        }
    }
}

/// A server has used the file since.
pub async fn touch(path: &Path) {
    let store = open(path);
    let (node, ttl) = (NodeId("later".into()), SignedDuration::from_secs(1));
    store.acquire(ShardId(0), node, ttl).await.expect("the store answers").expect("nobody holds it");
}

/// A node uses a database.
pub async fn beat(store: &dyn Store) {
    let beat = Beat {
        node: NodeId("living".into()),
        keeper: Keeper(1),
        started_at: at(0),
        version: "1".into(),
        ttl: SignedDuration::from_mins(10),
        report: None,
    };
    store.beat(beat).await.expect("the store answers");
}

/// It leaves.
pub async fn leave(store: &dyn Store) {
    store.strike(NodeId("living".into()), true).await.expect("the store answers");
}
