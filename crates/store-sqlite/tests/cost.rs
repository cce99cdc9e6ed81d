//! What a claim costs depends on what it hands out, not on what waits. Counted in steps of the database's machine, so that
//! it does not matter how busy this one is.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use punctual_core::Outcome;
use punctual_store::{
    Batch, Claim, Closing, NewQueue, NewRun, QueueKey, QueueSettings, Rate, RunKey, RunWrite, Store, Taken,
    Unit,
};
use punctual_store_sqlite::{Options, Sqlite, Synchronous};
use rusqlite::Connection;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const KEYS: i64 = 1_000;
const CLAIMED: usize = 10;

fn open(path: &Path) -> Sqlite {
    let options = Options { synchronous: Synchronous::Normal, ..Options::default() };
    Sqlite::open(path, options).expect("the file opens")
}

/// A file with a queue in which so many runs wait. They are written by hand: one by one would take a minute.
async fn fill(path: &Path, runs: i64) -> QueueKey {
    let store = open(path);
    let settings = QueueSettings::default();
    let queue = NewQueue { namespace: "n".into(), name: "q".into(), settings, created_at: NOW };
    let queue = store.create_queue(queue).await.expect("the store answers").queue;
    drop(store);
    let file = Connection::open(path).expect("it is a database");
    file.pragma_update(None, "synchronous", "OFF").expect("nobody pulls the plug");
    file.pragma_update(None, "cache_size", -200_000).expect("it is set");
    file.execute(
        "WITH RECURSIVE counted (run) AS (SELECT 1000 UNION ALL SELECT run + 1 FROM counted LIMIT ?1)
        INSERT INTO run_live
            (run, queue, state, attempt, stop, rank, keyed, due_time, created_at, priority, key, body)
        SELECT run, ?2, 0, 0, 0, run * 7919 % 10007, 0, 0, 0, 0, 'key ' || (run % ?3), x'00' FROM counted",
        (runs, queue.0, KEYS),
    )
    .expect("the rows are written");
    queue
}

/// Each claim is long after the one before, so that no rate holds it back.
async fn claim(store: &Sqlite, queue: QueueKey, clock: &mut i64) -> Taken {
    *clock += 100;
    let now = NOW + SignedDuration::from_secs(*clock);
    let claim = Claim { queue, worker: "worker".into(), runs_max: CLAIMED, now, keeper: Default::default() };
    store.claim(claim).await.expect("the store answers")
}

/// Steps of a claim, and of ending what was claimed; the middle one of several.
async fn cost(store: &Sqlite, queue: QueueKey, clock: &mut i64) -> (u64, u64) {
    let mut costs = (Vec::new(), Vec::new());
    for _ in 0..9 {
        store.steps().await.expect("the store answers");
        let taken = claim(store, queue, clock).await;
        assert_eq!(taken.runs.len(), CLAIMED);
        costs.0.push(store.steps().await.expect("the store answers"));
        let closing = Closing { outcome: Outcome::Succeeded, closed_at: NOW, payload: None };
        let close = |run: RunKey| RunWrite::Close { run, attempt: Some(1), closing: closing.clone() };
        let runs = taken.runs.iter().map(|run| close(run.made.run)).collect();
        let unit = Unit { tree: None, runs, request: None };
        let answers = store.commit(Batch::of(vec![unit])).await.expect("the store answers");
        assert_eq!(answers, [Ok(())]);
        costs.1.push(store.steps().await.expect("the store answers"));
    }
    costs.0.sort();
    costs.1.sort();
    (costs.0[4], costs.1[4])
}

#[tokio::test]
async fn a_claim_costs_the_same_however_much_waits() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut measured = Vec::new();
    for runs in [1_000, 1_000_000] {
        let path = folder.path().join(format!("{runs}.db"));
        let queue = fill(&path, runs).await;
        let store = open(&path);
        let rate = Some(Rate { starts_max: 20, per: SignedDuration::from_secs(60) });
        let limited = QueueSettings {
            concurrency_max: Some(500),
            worker_concurrency_max: Some(500),
            rate,
            ..QueueSettings::default()
        };
        let keyed = QueueSettings { key_concurrency_max: Some(1), key_rate: rate, ..limited.clone() };
        let mut clock = 0;
        let mut costs = vec![cost(&store, queue, &mut clock).await];
        for settings in [limited, keyed] {
            store.update_queue(queue, settings).await.expect("the store answers").expect("it is there");
            // The first claim after a change may find every key in the past; that is not the usual case.
            let taken = claim(&store, queue, &mut clock).await;
            assert_eq!(taken.runs.len(), CLAIMED);
            costs.push(cost(&store, queue, &mut clock).await);
        }
        measured.push(costs);
        let inspection = store.inspect().await.expect("the store answers");
        assert_eq!(inspection.mismatches, [""; 0]);
    }
    eprintln!("steps of a claim and of its ends, plain, limited, by key: {measured:?}");
    for (few, many) in measured[0].iter().zip(&measured[1]) {
        assert!(many.0 <= 2 * few.0 && many.1 <= 2 * few.1, "{few:?} with few, {many:?} with many");
    }
}

#[tokio::test]
async fn a_plain_queue_writes_no_row_of_limits() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("punctual.db");
    let queue = fill(&path, 1_000).await;
    // Whoever writes into these tables fails.
    let file = Connection::open(&path).expect("it is a database");
    for table in ["queue_start", "key_start", "queue_key", "queue_round", "request"] {
        let forbid = format!(
            "CREATE TRIGGER no_{table} BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, '{table}'); END"
        );
        file.execute_batch(&forbid).expect("the trigger is made");
    }
    drop(file);
    let store = open(&path);
    let made = NewRun {
        run: RunKey(5_000),
        queue,
        origin: None,
        due_time: NOW,
        created_at: NOW,
        priority: 3,
        key: "key".into(),
        dedup: Some("one".into()),
        not_before: None,
        body: [].into(),
    };
    let unit = Unit { tree: None, runs: vec![RunWrite::Insert(made)], request: None };
    assert_eq!(store.commit(Batch::of(vec![unit])).await, Ok(vec![Ok(())]));
    let mut clock = 0;
    let (claim, ends) = cost(&store, queue, &mut clock).await;
    // The bare work for each run is about this much; what limits would add is more.
    eprintln!(
        "steps for each run: {} to claim, {} to end",
        claim as usize / CLAIMED,
        ends as usize / CLAIMED
    );
    let bounded = QueueSettings {
        concurrency_max: Some(5_000),
        worker_concurrency_max: Some(5_000),
        ..QueueSettings::default()
    };
    store.update_queue(queue, bounded).await.expect("the store answers").expect("it is there");
    assert_eq!(
        cost(&store, queue, &mut clock).await.0,
        claim,
        "bounds of running runs are counted in memory"
    );
}
