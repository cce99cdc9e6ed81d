//! Long lists: a page looks at a bounded number of rows, and the pages together still show everything once.

use std::path::Path;

use jiff::Timestamp;
use punctual_core::{Origin, Outcome, ScheduleKey, StartId};
use punctual_store::{
    Batch, Closing, Expected, Lifespan, NewQueue, NewRun, QueueKey, QueueSettings, RunFilter, RunKey,
    RunQuery, RunWrite, ScheduleQuery, ShardId, Store, TreeKey, TreeView, TreeWrite, Unit,
};
use punctual_store_sqlite::{Options, Sqlite};

const RUNS: i64 = 30_000;
const SCHEDULES: i64 = 25_000;
const NOW: Timestamp = Timestamp::UNIX_EPOCH;

async fn commit(store: &Sqlite, units: impl Iterator<Item = Unit>) {
    let answers = store.commit(Batch::of(units.collect())).await.expect("the store answers");
    assert!(answers.iter().all(Result::is_ok));
}

fn open(folder: &Path) -> Sqlite {
    Sqlite::open(folder.join("punctual.db"), Options::default()).expect("the file opens")
}

/// One run of a thousand is of the schedule.
fn is_of_tree(run: i64) -> bool {
    run % 1_000 == 0
}

/// Two of three have ended; one of a hundred of them badly.
fn end(run: i64) -> Option<Outcome> {
    (run % 3 != 0).then_some(if run % 100 == 1 { Outcome::Failed } else { Outcome::Succeeded })
}

async fn fill(store: &Sqlite) -> (QueueKey, i64) {
    let queue = |name: &str| NewQueue {
        namespace: name.into(),
        name: "work".into(),
        settings: QueueSettings::default(),
        created_at: NOW,
    };
    let queue = store.create_queue(queue("default")).await.expect("the store answers").queue;
    let first = store.reserve(RUNS as u32).await.expect("keys are given");
    let unit = |run: i64| {
        let start = StartId { nominal_ms: run, origin: Origin::Spec };
        let origin = is_of_tree(run).then_some((TreeKey(5), start));
        let made = NewRun {
            run: RunKey(first + run),
            queue,
            origin,
            due_time: NOW,
            created_at: NOW,
            priority: 0,
            key: "".into(),
            dedup: None,
            not_before: None,
            body: [0; 20].into(),
        };
        Unit { tree: None, runs: vec![RunWrite::Insert(made)], request: None }
    };
    commit(store, (0..RUNS).map(unit)).await;
    let close = |run: i64| {
        let closing = Closing { outcome: end(run)?, closed_at: NOW, payload: None };
        let close = RunWrite::Close { run: RunKey(first + run), attempt: None, closing };
        Some(Unit { tree: None, runs: vec![close], request: None })
    };
    commit(store, (0..RUNS).filter_map(close)).await;
    (queue, first)
}

#[tokio::test]
async fn every_run_is_listed_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    let (queue, first) = fill(&store).await;
    let all = RunQuery { namespace: "default".into(), count: 700, ..RunQuery::default() };
    let of = |filter| RunQuery { filter: Some(filter), ..all.clone() };
    let failed = RunFilter::Closed(Some(Outcome::Failed));
    type Wanted = fn(i64) -> bool;
    let cases: [(RunQuery, Wanted); 9] = [
        (all.clone(), |_| true),
        (RunQuery { tree: Some(TreeKey(5)), ..all.clone() }, is_of_tree),
        (RunQuery { tree: Some(TreeKey(6)), ..all.clone() }, |_| false),
        (of(RunFilter::Ready), |run| end(run).is_none()),
        (RunQuery { queue: Some(queue), ..of(RunFilter::Ready) }, |run| end(run).is_none()),
        (of(RunFilter::Running), |_| false),
        (of(failed), |run| end(run) == Some(Outcome::Failed)),
        (RunQuery { tree: Some(TreeKey(5)), ..of(failed) }, |run| {
            is_of_tree(run) && end(run) == Some(Outcome::Failed)
        }),
        (RunQuery { namespace: "elsewhere".into(), ..all.clone() }, |_| false),
    ];
    for (mut query, wanted) in cases {
        let asked = format!("{query:?}");
        let expected: Vec<i64> = (0..RUNS).rev().filter(|run| wanted(*run)).collect();
        let mut found = Vec::new();
        for page in 0.. {
            assert!(page < 200, "{asked}: no end");
            let page = store.runs(query.clone()).await.expect("the store answers");
            found.extend(page.items.iter().map(|run| run.run.made.run.0 - first));
            let Some(next) = page.next else { break };
            query.before = Some(RunKey(next.parse().expect("a run")));
        }
        assert_eq!(found, expected, "{asked}");
    }
}

#[tokio::test]
async fn every_schedule_is_listed_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    let unit = |tree: i64| {
        let key = ScheduleKey::new("default", &format!("{tree:06}"));
        let view = TreeView { lifespan: Lifespan::Open, paused: tree % 6_000 == 1, queue: None };
        let write = TreeWrite {
            tree: TreeKey(tree),
            shard: ShardId(0),
            epoch: None,
            expected: Expected::New { key, replaces: None },
            definition: None,
            view: Some(view),
            state: [].into(),
            completion: None,
            due_time: None,
            ledger: Vec::new(),
            retired: false,
        };
        Unit { tree: Some(write), runs: Vec::new(), request: None }
    };
    commit(&store, (0..SCHEDULES).map(unit)).await;
    for (paused, count, expected) in
        [(Some(true), 2, 5), (Some(true), 100, 5), (None, 9_000, SCHEDULES as usize)]
    {
        let mut query =
            ScheduleQuery { namespace: "default".into(), paused, count, ..ScheduleQuery::default() };
        assert_eq!(store.count_schedules(query.clone()).await, Ok(expected as u64));
        let mut found = Vec::new();
        loop {
            let page = store.schedules(query.clone()).await.expect("the store answers");
            found.extend(page.items.iter().map(|stored| stored.tree.0));
            let Some(next) = page.next else { break };
            query.after = Some(next);
        }
        assert_eq!(found.len(), expected);
        assert!(found.is_sorted());
    }
}
