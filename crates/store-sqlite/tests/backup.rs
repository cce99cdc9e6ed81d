//! Copies under load, and looks at the whole file.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};
use punctual_store::{
    Batch, Claim, NewQueue, NewRun, QueueKey, QueueSettings, Rate, RunKey, RunWrite, Store, Unit,
};
use punctual_store_sqlite::{Options, Sqlite};
use rusqlite::Connection;

fn open(path: &Path) -> Sqlite {
    Sqlite::open(path, Options::default()).expect("the file opens")
}

fn new_run(run: i64, queue: QueueKey) -> NewRun {
    NewRun {
        run: RunKey(run),
        queue,
        origin: None,
        due_time: Timestamp::UNIX_EPOCH,
        created_at: Timestamp::UNIX_EPOCH,
        priority: 0,
        key: format!("key {}", run % 7).into(),
        dedup: None,
        not_before: None,
        body: vec![run as u8; 400].into(),
    }
}

async fn declare(store: &Sqlite, settings: QueueSettings) -> QueueKey {
    let created_at = Timestamp::UNIX_EPOCH;
    let queue = NewQueue { namespace: "n".into(), name: "q".into(), settings, created_at };
    store.create_queue(queue).await.expect("the store answers").queue
}

async fn commit(store: &Sqlite, runs: Vec<RunWrite>) {
    let unit = Unit { tree: None, runs, request: None };
    let answers = store.commit(Batch::of(vec![unit])).await.expect("the store answers");
    assert_eq!(answers, [Ok(())]);
}

fn limits() -> QueueSettings {
    let rate = Some(Rate { starts_max: 1_000_000, per: SignedDuration::from_secs(10) });
    QueueSettings {
        worker_concurrency_max: Some(1_000_000),
        key_concurrency_max: Some(1_000_000),
        key_rate: rate,
        rate,
        ..QueueSettings::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_under_load_holds_a_prefix_of_what_was_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(open(&folder.path().join("punctual.db")));
    let queue = declare(&store, limits()).await;
    let first = store.reserve(1_000_000).await.expect("keys are given");
    let (answered, ends) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicBool::new(false)));
    let load = {
        let (store, answered, ends) = (store.clone(), answered.clone(), ends.clone());
        tokio::spawn(async move {
            let mut next = 0;
            while !ends.load(Ordering::Relaxed) {
                commit(
                    &store,
                    (next..next + 5).map(|run| RunWrite::Insert(new_run(first + run, queue))).collect(),
                )
                .await;
                let now = Timestamp::UNIX_EPOCH;
                let claim =
                    Claim { queue, worker: "worker".into(), runs_max: 2, now, keeper: Default::default() };
                assert_eq!(store.claim(claim).await.map(|taken| taken.runs.len()), Ok(2));
                next += 5;
                answered.store(next, Ordering::Relaxed);
            }
        })
    };
    for round in 0..4 {
        while answered.load(Ordering::Relaxed) < 300 * (round + 1) {
            tokio::task::yield_now().await;
        }
        let copy = folder.path().join(format!("copy-{round}.db"));
        let before = answered.load(Ordering::Relaxed);
        let (bytes, inspection) = tokio::join!(store.backup(&copy), store.inspect());
        let after = answered.load(Ordering::Relaxed);
        let inspection = inspection.expect("the store answers");
        assert_eq!((inspection.faults, inspection.mismatches), (Vec::new(), Vec::new()), "also under load");
        assert_eq!(bytes, Ok(std::fs::metadata(&copy).expect("it is there").len()));
        assert!(store.backup(&copy).await.is_err(), "what exists is not touched");

        let copied = open(&copy);
        let live = copied.live_runs(Default::default(), None, usize::MAX).await.expect("the copy answers");
        let keys: Vec<i64> = live.iter().map(|run| run.made.run.0 - first).collect();
        assert_eq!(keys, (0..keys.len() as i64).collect::<Vec<_>>(), "nothing in between is missing");
        assert!(keys.len() as i64 >= before, "{before} were answered, {} are there", keys.len());
        assert!(keys.len() as i64 <= after + 5, "{after} were answered, {} are there", keys.len());
        let inspection = copied.inspect().await.expect("the copy answers");
        assert_eq!((inspection.faults, inspection.mismatches), (Vec::new(), Vec::new()));
        commit(&copied, vec![RunWrite::Insert(new_run(first + 900_000, queue))]).await;
    }
    ends.store(true, Ordering::Relaxed);
    load.await.expect("the load ends well");
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("the folder").flatten().collect();
    assert!(left.iter().all(|file| !file.file_name().to_string_lossy().contains("part")), "{left:?}");
}

#[tokio::test]
async fn an_inspection_tells_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("punctual.db");
    let store = open(&path);
    let queue = declare(&store, limits()).await;
    commit(&store, (1_000..1_020).map(|run| RunWrite::Insert(new_run(run, queue))).collect()).await;
    let claim = Claim {
        queue,
        worker: "worker".into(),
        runs_max: 5,
        now: Timestamp::UNIX_EPOCH,
        keeper: Default::default(),
    };
    store.claim(claim).await.expect("the store answers");
    let fine = store.inspect().await.expect("the store answers");
    assert_eq!((fine.ready, fine.backing_off, fine.running, fine.closed), (15, 0, 5, 0));
    assert_eq!((&fine.mismatches[..], &fine.faults[..], &fine.orphans[..]), (&[][..], &[][..], &[][..]));
    assert!(fine.pages * fine.page_bytes <= fine.file_bytes + fine.log_bytes && fine.log_bytes > 0);
    // Another tool writes into the file, which nobody should do.
    let tool = Connection::open(&path).expect("it is a database");
    tool.execute_batch(
        "UPDATE run_live SET state = 1 WHERE run = 1010; UPDATE run_live SET tree = 5 WHERE run = 1011;
        UPDATE queue_key SET running = 9 WHERE key = 'key 3'; DELETE FROM queue_key WHERE key = 'key 4'",
    )
    .expect("it is written");
    let found = store.inspect().await.expect("the store answers");
    assert_eq!(found.orphans, [RunKey(1_011)]);
    let told = found.mismatches.join("\n");
    for wrong in ["[15, 0, 5]", "\"key 3\"", "\"key 4\": nothing is stored"] {
        assert!(told.contains(wrong), "{wrong} is not in {told}");
    }
}
