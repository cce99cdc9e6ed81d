//! Limits of a queue hold whoever claims: three nodes share one, at every moment and in every window.

use std::collections::BTreeMap;

use punctual_store::{LiveRun, LiveState, Rate};

use super::*;

/// Runs, of so many keys.
const RUNS: i64 = 400;
const KEYS: i64 = 7;

const NODES: usize = 3;

/// Workers at each node.
const WORKERS: usize = 3;

/// The loosest settings that are ever in force.
fn settings() -> QueueSettings {
    let rate = |starts_max, millis| Some(Rate { starts_max, per: SignedDuration::from_millis(millis) });
    QueueSettings {
        concurrency_max: Some(5),
        worker_concurrency_max: Some(3),
        rate: rate(40, 500),
        key_concurrency_max: Some(2),
        key_rate: rate(6, 500),
        ..QueueSettings::default()
    }
}

/// When an attempt began, by key and for the queue.
type Starts = BTreeMap<String, Vec<Timestamp>>;

/// Takes runs until all have ended; every fifth attempt fails, and is made again.
async fn work(store: Arc<Postgres>, queue: QueueKey, worker: String, stop: Arc<AtomicBool>) -> Vec<LiveRun> {
    let mut taken = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let claim = Claim {
            queue,
            worker: worker.as_str().into(),
            runs_max: 3,
            now: Timestamp::now(),
            keeper: Default::default(),
        };
        let runs = answer(store.claim(claim)).await.expect("an answer").runs;
        tokio::time::sleep(Duration::from_millis(if runs.is_empty() { 5 } else { 2 })).await;
        for live in runs {
            let (run, attempt) = (live.made.run, live.attempt);
            let write = match (run.0 + i64::from(attempt)) % 5 {
                0 => {
                    let failure = b"failure"[..].into();
                    RunWrite::Retry { run, attempt, not_before: Timestamp::now(), failure }
                }
                _ => {
                    let (outcome, closed_at) = (Outcome::Succeeded, Timestamp::now());
                    let closing = Closing { outcome, closed_at, payload: None };
                    RunWrite::Close { run, attempt: Some(attempt), closing }
                }
            };
            let again = matches!(write, RunWrite::Retry { .. });
            let release = again.then_some(RunWrite::Release { run });
            for write in [Some(write), release].into_iter().flatten() {
                let unit = Unit { runs: vec![write], ..Unit::default() };
                assert_eq!(answer(store.commit(Batch::of(vec![unit]))).await, Ok(vec![Ok(())]));
            }
            taken.push(live);
        }
    }
    taken
}

/// Changes the settings to tighter ones and back, at any node.
async fn disturb(stores: Vec<Arc<Postgres>>, queue: QueueKey, stop: Arc<AtomicBool>) {
    for round in 0.. {
        let settings = match round % 4 {
            0 => QueueSettings { concurrency_max: Some(2), key_concurrency_max: Some(1), ..settings() },
            // A rate that is not in force for a moment would begin anew: so it stays.
            2 => QueueSettings { paused: true, key_concurrency_max: None, ..settings() },
            _ => settings(),
        };
        let store = &stores[round % NODES];
        until_answered(|| store.update_queue(queue, settings.clone())).await;
        if stop.load(Ordering::SeqCst) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
}

/// How many starts follow each other in less than a window, at most.
fn densest(starts: &[Timestamp], window: SignedDuration) -> usize {
    let mut most = 0;
    for (place, first) in starts.iter().enumerate() {
        most = most
            .max(starts[place..].iter().take_while(|start| start.duration_since(*first) < window).count());
    }
    most
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_at_every_moment_whichever_node_is_asked() {
    let server = Arc::new(Server::start_careless().unwrap());
    let url = server.create_database("limits").unwrap();
    let mut stores = Vec::new();
    for _ in 0..NODES {
        let options = Options { shards: 4, ..Options::new(&url) };
        stores.push(Arc::new(Postgres::open(options).await.expect("the database opens")));
    }
    let queue = queue(&stores[0]).await;
    until_answered(|| stores[0].update_queue(queue, settings())).await;
    let first = until_answered(|| stores[0].reserve(RUNS as u32)).await;
    let made = (first..first + RUNS).map(|run| {
        let key = format!("key {}", run % KEYS);
        let unit = step(TreeKey(0), 0, RunKey(run), queue);
        let runs = unit.runs.into_iter().map(|write| match write {
            RunWrite::Insert(made) => RunWrite::Insert(NewRun { key: key.as_str().into(), ..made }),
            other => other,
        });
        Unit { runs: runs.collect(), ..Unit::default() }
    });
    let made = answer(stores[0].commit(Batch::of(made.collect()))).await.unwrap();
    assert!(made.iter().all(Result::is_ok), "{made:?}");

    let stop = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..NODES * WORKERS)
        .map(|place| {
            let store = stores[place % NODES].clone();
            tokio::spawn(work(store, queue, format!("worker {place}"), stop.clone()))
        })
        .collect();
    let disturbing = tokio::spawn(disturb(stores.clone(), queue, stop.clone()));
    // Each look is one moment of the database.
    let sql = "WITH running AS (SELECT key, worker FROM punctual.run_live WHERE state = 2)
        SELECT count(*), coalesce(max(mine), 0), (SELECT count(*) FROM punctual.run_live),
            (SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM running GROUP BY worker) AS by_worker)
        FROM (SELECT count(*) OVER (PARTITION BY key) AS mine FROM running) AS by_key";
    let (watcher, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let (begun, mut looks, mut most) = (Instant::now(), 0, [0i64; 3]);
    loop {
        let row = watcher.query_one(sql, &[]).await.unwrap();
        let (all, of_key, live, of_worker): (i64, i64, i64, i64) =
            (row.get(0), row.get(1), row.get(2), row.get(3));
        most = [most[0].max(all), most[1].max(of_key), most[2].max(of_worker)];
        looks += 1;
        if live == 0 {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{live} runs are left");
    }
    stop.store(true, Ordering::SeqCst);
    disturbing.await.unwrap();

    let mut starts = Starts::new();
    for worker in workers {
        for live in worker.await.unwrap() {
            let LiveState::Running { started_at, .. } = live.state else { panic!("it runs: {live:?}") };
            starts.entry("all".into()).or_default().push(started_at);
            starts.entry(live.made.key.to_string()).or_default().push(started_at);
        }
    }
    let half = SignedDuration::from_millis(500);
    starts.values_mut().for_each(|starts| starts.sort());
    let dense: BTreeMap<&str, usize> =
        starts.iter().map(|(key, starts)| (key.as_str(), densest(starts, half))).collect();
    eprintln!(
        "{} attempts, {looks} looks: at most {most:?} at a time, of a key and of a worker; in half a second {dense:?}",
        starts["all"].len()
    );
    assert!(most[0] <= 5 && most[1] <= 2 && most[2] <= 3, "{most:?}");
    for (key, most) in dense {
        assert!(most <= if key == "all" { 40 } else { 6 }, "{key}: {most} in half a second");
    }
}

/// A node has stopped in the middle of a claim. Others do other things meanwhile, and claim from that queue when it is free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_somebody_holds_holds_up_nothing_else() {
    let server = Server::start_careless().unwrap();
    let url = server.create_database("held").unwrap();
    let store = Arc::new(Postgres::open(Options::new(&url)).await.expect("the database opens"));
    let queue = queue(&store).await;
    until_answered(|| store.update_queue(queue, settings())).await;
    let first = until_answered(|| store.reserve(1_000)).await;
    let made = step(TreeKey(0), 0, RunKey(first), queue).runs;
    let made = answer(store.commit(Batch::of(vec![Unit { runs: made, ..Unit::default() }]))).await;
    assert_eq!(made, Ok(vec![Ok(())]));
    let (holder, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let hold = format!("BEGIN; SELECT FROM punctual.queue WHERE queue = {queue} FOR NO KEY UPDATE");
    holder.batch_execute(&hold).await.unwrap();

    let stop = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..4)
        .map(|place| tokio::spawn(work(store.clone(), queue, format!("worker {place}"), stop.clone())))
        .collect();
    let (begun, mut slowest, mut count) = (Instant::now(), Duration::ZERO, 0);
    while begun.elapsed() < Duration::from_secs(3) {
        let asked = Instant::now();
        let unit = Unit { runs: Vec::new(), ..step(TreeKey(first + 1), count, RunKey(0), queue) };
        assert_eq!(answer(store.commit(Batch::of(vec![unit]))).await, Ok(vec![Ok(())]));
        (slowest, count) = (slowest.max(asked.elapsed()), count + 1);
    }
    eprintln!("{count} commits while a queue is held, {slowest:?} at most");
    assert!(slowest < Duration::from_millis(900), "{slowest:?}");

    holder.batch_execute("COMMIT").await.unwrap();
    let live = || server.query("held", "SELECT count(*) FROM punctual.run_live").unwrap();
    let begun = Instant::now();
    while live().trim() != "0" {
        assert!(begun.elapsed() < ANSWER_MAX, "the run is not taken");
    }
    stop.store(true, Ordering::SeqCst);
    let mut taken = 0;
    for worker in workers {
        taken += worker.await.unwrap().iter().filter(|live| live.made.run == RunKey(first)).count();
    }
    assert!(taken >= 1);
}
