//! A rate and the bounds of running runs hold, although the process was killed at any moment.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use jiff::{SignedDuration, Timestamp};
use punctual_store::{
    Batch, Claim, LiveState, NewQueue, NewRun, QueueKey, QueueSettings, Rate, RunKey, RunWrite, Store,
    StoreError, Unit,
};
use punctual_store_sqlite::{Options, Sqlite};

const FILE: &str = "PUNCTUAL_WINDOW_FILE";
const KILLS: usize = 12;
const STARTS_MAX: u32 = 70;
const KEY_STARTS_MAX: u32 = 30;
const KEYS: i64 = 3;

async fn queue(store: &Sqlite) -> Result<QueueKey, StoreError> {
    let per = SignedDuration::from_hours(1);
    let settings = QueueSettings {
        rate: Some(Rate { starts_max: STARTS_MAX, per }),
        key_rate: Some(Rate { starts_max: KEY_STARTS_MAX, per }),
        worker_concurrency_max: Some(60),
        ..QueueSettings::default()
    };
    let created_at = Timestamp::UNIX_EPOCH;
    let made = NewQueue { namespace: "n".into(), name: "q".into(), settings, created_at };
    Ok(store.create_queue(made).await?.queue)
}

fn claim(queue: QueueKey, worker: &str, runs_max: usize) -> Claim {
    Claim { queue, worker: worker.into(), runs_max, now: Timestamp::UNIX_EPOCH, keeper: Default::default() }
}

/// What the child does until it is killed: inserts and claims, and says how much it got after each answer.
async fn claim_for_ever(path: &Path) -> Result<(), StoreError> {
    let store = Sqlite::open(path, Options::default()).expect("the lock of the killed is gone");
    let queue = queue(&store).await?;
    loop {
        let run = store.reserve(1).await?;
        let made = NewRun {
            run: RunKey(run),
            queue,
            origin: None,
            due_time: Timestamp::UNIX_EPOCH,
            created_at: Timestamp::UNIX_EPOCH,
            priority: 0,
            key: format!("key {}", run % KEYS).into(),
            dedup: None,
            not_before: None,
            body: [0; 50].into(),
        };
        let unit = Unit { tree: None, runs: vec![RunWrite::Insert(made)], request: None };
        store.commit(Batch::of(vec![unit])).await?.remove(0)?;
        let taken = store.claim(claim(queue, "worker", 2)).await?;
        eprintln!("{}", taken.runs.len());
    }
}

#[tokio::test]
async fn no_limit_is_exceeded_because_of_a_kill() {
    if let Some(path) = std::env::var_os(FILE) {
        claim_for_ever(Path::new(&path)).await.expect("the child claims until it is killed");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("punctual.db");
    let mut said = 0;
    for kill in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "no_limit_is_exceeded_because_of_a_kill", "--nocapture"])
            .env(FILE, &path)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the child begins");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let mut count =
            |line: std::io::Result<String>| said += line.map_or(0, |line| line.parse().unwrap_or(0));
        lines.by_ref().take(2 + kill).for_each(&mut count);
        child.kill().expect("the child is killed");
        child.wait().expect("the child ends");
        lines.for_each(count);
    }
    let store = Sqlite::open(&path, Options::default()).expect("the file is whole");
    let queue = queue(&store).await.expect("the store answers");
    let running = async || -> Vec<String> {
        let live = store.live_runs(Default::default(), None, usize::MAX).await.expect("the store answers");
        let running = live.into_iter().filter(|run| matches!(run.state, LiveState::Running { .. }));
        running.map(|run| run.made.key.to_string()).collect()
    };
    let before = running().await.len();
    assert!(before >= said && before > 0, "{said} were handed out, {before} are there");
    assert!(before <= 60, "{before} are there, a worker may have 60");
    let taken = store.claim(claim(queue, "worker", 100)).await.expect("the store answers");
    assert!(before + taken.runs.len() <= 60);
    let taken = store.claim(claim(queue, "another", 50)).await.expect("the store answers");
    assert!(taken.runs.len() <= 50);
    let running = running().await;
    assert!(running.len() <= STARTS_MAX as usize, "{} began in one window", running.len());
    for key in 0..KEYS {
        let of_key = running.iter().filter(|of| **of == format!("key {key}")).count();
        assert!(of_key <= KEY_STARTS_MAX as usize, "{of_key} of key {key} began in one window");
    }
    let inspection = store.inspect().await.expect("the store answers");
    assert_eq!((inspection.faults, inspection.mismatches), (Vec::new(), Vec::new()));
}
