//! Whatever happens to the connections and to the database: what was acknowledged is there, what was not is there wholly or not
//! at all, nobody waits for ever, and the store goes on by itself.

mod limits;
mod locks;
mod news;
mod standby;
mod ways;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Outcome, ScheduleKey};
use punctual_store::{
    Batch, Claim, Closing, Expected, NewQueue, NewRun, News, NodeId, QueueKey, QueueSettings, Reply, RunKey,
    RunWrite, Sequence, ShardId, Store, StoreError, TreeKey, TreeRef, TreeWrite, Unit,
};
use punctual_store_postgres::{Options, Postgres};
use punctual_testkit::Postgres as Server;

/// Longer than anything here takes, and shorter than for ever.
const ANSWER_MAX: Duration = Duration::from_secs(15);

async fn open(url: &str) -> Postgres {
    open_way(url, false).await
}

/// As if a proxy on the way lent its connections by transaction, or not.
async fn open_way(url: &str, is_lent: bool) -> Postgres {
    let listen_url = is_lent.then(|| url.to_owned());
    let options =
        Options { shards: 4, statement_timeout: Duration::from_secs(1), listen_url, ..Options::new(url) };
    Postgres::open(options).await.expect("the database opens")
}

/// The answer, which comes.
async fn answer<T>(reply: Reply<'_, T>) -> Result<T, StoreError> {
    tokio::time::timeout(ANSWER_MAX, reply).await.expect("an answer comes")
}

/// Asks until it is answered.
async fn until_answered<'a, T>(ask: impl Fn() -> Reply<'a, T>) -> T {
    let begun = Instant::now();
    loop {
        match answer(ask()).await {
            Ok(answer) => return answer,
            Err(error) => assert!(begun.elapsed() < ANSWER_MAX, "it does not recover: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn queue(store: &Postgres) -> QueueKey {
    let new = NewQueue {
        namespace: "default".into(),
        name: "work".into(),
        settings: QueueSettings::default(),
        created_at: Timestamp::now(),
    };
    store.create_queue(new).await.expect("a queue is declared").queue
}

/// A schedule moves on, and a run begins with it.
fn step(tree: TreeKey, sequence: u64, run: RunKey, queue: QueueKey) -> Unit {
    let name = ScheduleKey::new("default", &format!("schedule-{tree}"));
    let expected = match sequence {
        0 => Expected::New { key: name, replaces: None },
        known => Expected::At(Sequence(known)),
    };
    let write = TreeWrite {
        tree,
        shard: ShardId(0),
        epoch: None,
        expected,
        definition: (sequence == 0).then(|| b"definition"[..].into()),
        view: None,
        state: b"state"[..].into(),
        completion: None,
        due_time: None,
        ledger: Vec::new(),
        retired: false,
    };
    let made = NewRun {
        run,
        queue,
        origin: None,
        due_time: Timestamp::now(),
        created_at: Timestamp::now(),
        priority: 0,
        key: "".into(),
        dedup: None,
        not_before: None,
        body: b"body"[..].into(),
    };
    Unit { tree: Some(write), runs: vec![RunWrite::Insert(made)], request: None }
}

/// What one writer knows of its schedule.
struct Written {
    tree: TreeKey,
    acknowledged: Vec<RunKey>,
    unknown: Vec<RunKey>,
}

async fn sequence(store: &Postgres, tree: TreeKey) -> u64 {
    let found = until_answered(|| store.load(vec![TreeRef::Key(tree)])).await.remove(0);
    found.map_or(0, |found| found.sequence.0)
}

/// Moves one schedule on and on, as its owner does: after an error it reads again.
async fn write(store: Arc<Postgres>, queue: QueueKey, stop: Arc<AtomicBool>) -> Written {
    let tree = TreeKey(until_answered(|| store.reserve(1)).await);
    let mut written = Written { tree, acknowledged: Vec::new(), unknown: Vec::new() };
    let mut known = 0;
    while !stop.load(Ordering::SeqCst) {
        let run = RunKey(until_answered(|| store.reserve(1)).await);
        let batch = Batch::of(vec![step(tree, known, run, queue)]);
        match answer(store.commit(batch)).await.map(|mut answers| answers.remove(0)) {
            Ok(Ok(())) => {
                written.acknowledged.push(run);
                known += 1;
            }
            Err(StoreError::Unavailable { .. }) => {
                written.unknown.push(run);
                known = sequence(&store, tree).await;
            }
            other => panic!("nobody else writes this schedule: {other:?}"),
        }
    }
    written
}

/// Claims on and on; counts what was handed out.
async fn claim(store: Arc<Postgres>, queue: QueueKey, stop: Arc<AtomicBool>) -> usize {
    let mut count = 0;
    while !stop.load(Ordering::SeqCst) {
        let claim = Claim {
            queue,
            worker: "worker".into(),
            runs_max: 5,
            now: Timestamp::now(),
            keeper: Default::default(),
        };
        match answer(store.claim(claim)).await {
            Ok(taken) => count += taken.runs.len(),
            Err(StoreError::Unavailable { .. }) => {}
            Err(other) => panic!("{other:?}"),
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    count
}

/// Writes and claims while something happens a few times.
async fn under_load(server: &mut Server, url: &str, times: usize, happens: impl Fn(&mut Server)) {
    let store = Arc::new(open(url).await);
    let queue = queue(&store).await;
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..8).map(|_| tokio::spawn(write(store.clone(), queue, stop.clone()))).collect();
    let claimers: Vec<_> = (0..2).map(|_| tokio::spawn(claim(store.clone(), queue, stop.clone()))).collect();
    for _ in 0..times {
        tokio::time::sleep(Duration::from_millis(200)).await;
        tokio::task::block_in_place(|| happens(server));
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    stop.store(true, Ordering::SeqCst);
    let (mut acknowledged, mut unknown) = (0, 0);
    for writer in writers {
        let written = writer.await.unwrap();
        let stored = sequence(&store, written.tree).await as usize;
        let found = |runs: Vec<RunKey>| {
            let store = store.clone();
            async move {
                let count = runs.len();
                let found = until_answered(|| store.load_runs(runs.clone())).await;
                (found.into_iter().flatten().count(), count)
            }
        };
        let (kept, all) = found(written.acknowledged).await;
        assert_eq!(kept, all, "what was acknowledged is there");
        let (kept_unknown, all_unknown) = found(written.unknown).await;
        assert_eq!(stored, kept + kept_unknown, "a schedule and its run are written together or not at all");
        acknowledged += all;
        unknown += all_unknown;
    }
    let mut claimed = 0;
    for claimer in claimers {
        claimed += claimer.await.unwrap();
    }
    assert!(acknowledged > 100, "only {acknowledged} commits were acknowledged");
    assert!(claimed <= acknowledged + unknown, "{claimed} runs were handed out");
    eprintln!("{acknowledged} commits acknowledged, {unknown} not known, {claimed} runs handed out");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_end_while_commits_are_in_flight() {
    let mut server = Server::start_careless().unwrap();
    let url = server.create_database("ended").unwrap();
    under_load(&mut server, &url, 15, |server| {
        server.end_connections("ended").unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_crashes_while_commits_are_in_flight() {
    let mut server = Server::start().unwrap();
    let url = server.create_database("crashed").unwrap();
    under_load(&mut server, &url, 3, |server| server.crash_and_restart().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_takes_no_writes_for_a_while_is_waited_for() {
    let server = Server::start_careless().unwrap();
    let store = open(&server.create_database("idle").unwrap()).await;
    let queue = queue(&store).await;
    let commit =
        |tree: i64, run: i64| store.commit(Batch::of(vec![step(TreeKey(tree), 0, RunKey(run), queue)]));
    let first = until_answered(|| store.reserve(10)).await;
    assert_eq!(commit(first, first + 1).await, Ok(vec![Ok(())]));
    let set = |word: &str| {
        let sql = format!("ALTER DATABASE idle SET default_transaction_read_only = {word}");
        // It is itself refused where it was switched on before.
        server.query("postgres", &sql).unwrap();
    };

    set("on");
    server.end_connections("idle").unwrap();
    for _ in 0..3 {
        let refused = answer(commit(first + 2, first + 3)).await;
        assert!(matches!(refused, Err(StoreError::Unavailable { .. })), "{refused:?}");
    }

    set("off");
    let written = until_answered(|| commit(first + 2, first + 3)).await;
    assert_eq!(written, vec![Ok(())]);
    until_answered(|| store.reserve(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_nodes_open_an_empty_database_at_once() {
    let server = Server::start_careless().unwrap();
    let url = server.create_database("empty").unwrap();
    let opening: Vec<_> = (0..10)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { Arc::new(open(&url).await) })
        })
        .collect();
    let mut first_keys = std::collections::BTreeSet::new();
    for opened in opening {
        let store = opened.await.unwrap();
        assert_eq!(store.shards(), 4);
        first_keys.insert(until_answered(|| store.reserve(3)).await);
    }
    assert_eq!(first_keys.len(), 10, "no key is given twice");
    let versions = server.query("empty", "SELECT count(*), max(shard) FROM punctual.lease").unwrap();
    assert_eq!(versions.trim(), "4|3", "one schema, with its shards");
}
