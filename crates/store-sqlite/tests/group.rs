//! Many requests in one transaction: one bad one hurts only itself, and what was accepted is finished.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use punctual_store::{Batch, NewRun, QueueKey, RunKey, RunWrite, Store, StoreError, Unit};
use punctual_store_sqlite::{Options, Sqlite};
use rusqlite::Connection;

fn open(path: &Path) -> Sqlite {
    Sqlite::open(path, Options::default()).expect("the file opens")
}

fn insert(run: i64) -> Batch {
    let made = NewRun {
        run: RunKey(run),
        queue: QueueKey(1),
        origin: None,
        due_time: Timestamp::UNIX_EPOCH,
        created_at: Timestamp::UNIX_EPOCH,
        priority: 0,
        key: "".into(),
        dedup: None,
        not_before: None,
        body: [1; 50].into(),
    };
    Batch::of(vec![Unit { tree: None, runs: vec![RunWrite::Insert(made)], request: None }])
}

/// Makes the database itself refuse some runs, as a fault that no check can foresee would.
fn poison(path: &Path, condition: &str) {
    drop(open(path));
    let connection = Connection::open(path).expect("it is a database");
    let trigger = format!(
        "CREATE TRIGGER poison BEFORE INSERT ON run_live WHEN {condition} BEGIN SELECT RAISE(ABORT, 'poison'); END"
    );
    connection.execute_batch(&trigger).expect("the trigger is made");
}

#[tokio::test]
async fn a_bad_request_hurts_only_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    for (round, bad) in [(0, vec![7]), (1, vec![0, 39]), (2, vec![]), (3, (0..40).collect())] {
        let path = folder.path().join(format!("{round}.db"));
        let list: Vec<String> = bad.iter().map(ToString::to_string).collect();
        poison(&path, &format!("new.run IN ({})", list.join(", ")));
        let store = open(&path);

        // All are handed over before the first answer is asked for.
        let waiting: Vec<_> = (0..40).map(|run| store.commit(insert(run))).collect();
        let mut refused = Vec::new();
        for (run, answer) in waiting.into_iter().enumerate() {
            match answer.await {
                Ok(answers) => assert_eq!(answers, [Ok(())]),
                Err(StoreError::Unavailable { reason }) => {
                    assert!(reason.contains("poison"), "{reason}");
                    refused.push(run as i64);
                }
                Err(other) => panic!("{other}"),
            }
        }

        assert_eq!(refused, bad);
        let live = store.live_runs(Default::default(), None, usize::MAX).await.expect("the store answers");
        assert_eq!(live.len(), 40 - bad.len());
        assert_eq!(store.queue_depth(QueueKey(1)).await.map(|depth| depth.ready), Ok(live.len() as u64));
    }
}

#[tokio::test]
async fn what_was_accepted_is_finished() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("punctual.db");
    let store = open(&path);
    for run in 1..=100 {
        // Nobody waits for the answer.
        drop(store.commit(insert(run)));
    }
    drop(store);

    let live = open(&path).live_runs(Default::default(), None, usize::MAX).await.expect("the store answers");
    assert_eq!(live.len(), 100);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_tasks_share_the_writer() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(open(&folder.path().join("punctual.db")));
    let tasks = (0..64).map(|_| {
        let store = store.clone();
        tokio::spawn(async move {
            for _ in 0..100 {
                let key = store.reserve(1).await.expect("a key is given");
                let answers = store.commit(insert(key)).await.expect("the store answers");
                assert_eq!(answers, [Ok(())]);
                let seen = store.load_runs(vec![RunKey(key)]).await.expect("the store answers");
                assert!(seen[0].is_some(), "whoever was answered can read it");
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.expect("the task ends well");
    }
    assert_eq!(store.queue_depth(QueueKey(1)).await.map(|depth| depth.ready), Ok(6_400));
}
