//! A file of version 1 is brought to this version in place, with all that is in it.

use std::path::Path;

use jiff::Timestamp;
use punctual_core::Outcome;
use punctual_store::{
    Claim, LiveState, NewRun, QueueDepth, QueueKey, QueueSettings, RunFilter, RunKey, RunQuery, RunWrite,
    Store, TreeKey,
};
use punctual_store_sqlite::{Options, Sqlite};
use rusqlite::Connection;

const SECOND: i64 = 1_000_000_000;

/// A file as the first release wrote it: two queues, live runs in all states, closed ones, a schedule.
fn write_version_1(path: &Path) {
    let connection = Connection::open(path).expect("a database opens");
    connection.pragma_update(None, "application_id", 0x506e_6374).expect("it is ours");
    connection.pragma_update(None, "journal_mode", "WAL").expect("it has a log");
    connection.execute_batch(include_str!("../migrations/0001_initial.sql")).expect("the first tables");
    connection
        .execute_batch(
            "INSERT INTO meta (name, value) VALUES ('next_key', 100), ('shards', 4);
            INSERT INTO queue VALUES 
                (1, 'default', 'work', CAST('for reports' AS BLOB), 5000000000), (2, 'default', 'other', x'', 7);
            INSERT INTO schedule VALUES (10, 0, 'default', 'nightly', x'00');
            INSERT INTO schedule_name VALUES ('default', 'nightly', 10, 0, 0, 1);
            INSERT INTO state VALUES (10, 3, NULL, x'01');
            INSERT INTO ledger VALUES (10, 0, 1, 1, 0, 1, 0, 1, 0, 1, 9);
            INSERT INTO run_live
                (run, queue, tree, nominal_ms, request, state, attempt, stop, due_time, created_at, since, worker,
                failure, body)
            VALUES
                (20, 1, 10, 5, 0, 0, 0, 0, 1, 9000000000, NULL, NULL, NULL, x'20'),
                (21, 1, NULL, NULL, NULL, 0, 0, 1, 1, 8000000000, NULL, NULL, NULL, x'21'),
                (22, 1, NULL, NULL, NULL, 1, 2, 0, 1, 8000000000, 77000000000, NULL, x'ff', x'22'),
                (23, 1, NULL, NULL, NULL, 2, 1, 0, 1, 8000000000, 78000000000, 'worker', NULL, x'23'),
                (24, 2, NULL, NULL, NULL, 0, 0, 0, 1, 8000000000, NULL, NULL, NULL, x'24');
            INSERT INTO run_closed
                (run, queue, tree, nominal_ms, request, state, attempt, stop, due_time, created_at, since, worker,
                outcome, closed_at, failure, body, payload)
            VALUES
                (15, 1, 10, 4, 0, 2, 1, 0, 1, 2, 3, 'worker', 0, 4, NULL, x'15', x'aa'),
                (16, 1, NULL, NULL, NULL, 2, 1, 0, 1, 2, 3, 'worker', 1, 4, NULL, x'16', NULL);
            PRAGMA user_version = 1;",
        )
        .expect("the rows are written");
}

fn at(nanos: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanos.into()).expect("in range")
}

fn insert(run: i64, queue: i64, key: &str) -> RunWrite {
    RunWrite::Insert(NewRun {
        run: RunKey(run),
        queue: QueueKey(queue),
        origin: None,
        due_time: at(0),
        created_at: at(8 * SECOND),
        priority: 0,
        key: key.into(),
        dedup: None,
        not_before: None,
        body: [].into(),
    })
}

#[tokio::test]
async fn version_1_is_upgraded_in_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("punctual.db");
    write_version_1(&path);
    for _ in 0..2 {
        // The second time it is of this version already.
        drop(Sqlite::open(&path, Options::default()).expect("it is upgraded"));
    }
    let store = Sqlite::open(&path, Options::default()).expect("it is upgraded");

    assert_eq!(store.shards(), 4);
    let queues = store.queues(None).await.expect("the store answers");
    let described = QueueSettings { description: "for reports".into(), ..QueueSettings::default() };
    assert_eq!((&queues[1].made.settings, &*queues[1].made.name), (&described, "work"));
    assert_eq!(queues[0].made.settings, QueueSettings::default());
    let live = store.live_runs(Default::default(), None, 99).await.expect("the store answers");
    let states: Vec<&LiveState> = live.iter().map(|run| &run.state).collect();
    let backs_off = LiveState::BackingOff { not_before: at(77 * SECOND) };
    let runs = LiveState::Running { worker: "worker".into(), started_at: at(78 * SECOND) };
    assert_eq!(states, [&LiveState::Ready, &LiveState::Ready, &backs_off, &runs, &LiveState::Ready]);
    assert!(
        live.iter().all(|run| run.made.priority == 0 && run.made.key.is_empty() && run.made.dedup.is_none())
    );
    assert_eq!(live[0].made.origin.map(|(tree, start)| (tree, start.nominal_ms)), Some((TreeKey(10), 5)));
    assert_eq!((&live[2].made.body[..], live[2].failure.as_deref()), (&[0x22][..], Some(&[0xff][..])));
    let depth = store.queue_depth(QueueKey(1)).await;
    let first_made_at = Some(at(8 * SECOND));
    assert_eq!(depth, Ok(QueueDepth { ready: 2, backing_off: 1, running: 1, first_made_at }));

    let closed = store.load_runs(vec![RunKey(15), RunKey(16)]).await.expect("the store answers");
    let closed: Vec<_> = closed.into_iter().map(|run| run.expect("it is kept")).collect();
    let outcome = |place: usize| closed[place].closing.as_ref().map(|closing| closing.outcome);
    assert_eq!((outcome(0), outcome(1)), (Some(Outcome::Succeeded), Some(Outcome::Failed)));
    let dead = RunQuery {
        namespace: "default".into(),
        filter: Some(RunFilter::DeadLetter),
        count: 9,
        ..RunQuery::default()
    };
    let dead = store.runs(dead).await.expect("the store answers");
    assert_eq!(dead.items, [], "nobody was to deal with what failed before");
    let inspection = store.inspect().await.expect("the store answers");
    assert_eq!((inspection.faults, inspection.mismatches), (Vec::new(), Vec::new()));
    assert_eq!((inspection.closed, inspection.ledger, inspection.without_timer), (2, 1, vec![TreeKey(10)]));

    // The work goes on: by the time it was made, also with new runs and new limits.
    let claim = |runs_max| Claim {
        queue: QueueKey(1),
        worker: "new".into(),
        runs_max,
        now: at(99 * SECOND),
        keeper: Default::default(),
    };
    let taken = store.claim(claim(1)).await.expect("the store answers").runs;
    assert_eq!(taken[0].made.run, RunKey(21), "the one made first");
    let limits = QueueSettings { key_concurrency_max: Some(3), ..described };
    store.update_queue(QueueKey(1), limits).await.expect("the store answers").expect("it is there");
    let writes = vec![RunWrite::Release { run: RunKey(22) }, insert(100, 1, "b"), insert(101, 1, "")];
    let unit = punctual_store::Unit { tree: None, runs: writes, request: None };
    let answers = store.commit(punctual_store::Batch::of(vec![unit])).await.expect("the store answers");
    assert_eq!(answers, [Ok(())]);
    let taken = store.claim(claim(9)).await.expect("the store answers").runs;
    let keys: Vec<i64> = taken.iter().map(|run| run.made.run.0).collect();
    assert_eq!(keys, [22, 100], "two of no key ran already, so one more may go");
}
