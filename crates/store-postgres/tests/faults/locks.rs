//! What somebody else holds is not waited for without end, and nobody waits in a circle.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_somebody_holds_is_not_waited_for_without_end() {
    let server = Arc::new(Server::start_careless().unwrap());
    for is_lent in [false, true] {
        let name = if is_lent { "lent" } else { "ours" };
        let store = open_way(&server.create_database(name).unwrap(), is_lent).await;
        let queue = queue(&store).await;
        let first = until_answered(|| store.reserve(10)).await;
        let holder = server.clone();
        let held = tokio::task::spawn_blocking(move || {
            let sql = "BEGIN; LOCK TABLE punctual.state; SELECT pg_sleep(4); COMMIT";
            holder.query(name, sql).unwrap()
        });
        let is_held = "SELECT count(*) FROM pg_locks WHERE relation = 'punctual.state'::regclass AND granted";
        while server.query(name, is_held).unwrap().trim() == "0" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }

        let commit = || store.commit(Batch::of(vec![step(TreeKey(first), 0, RunKey(first + 1), queue)]));
        let begun = Instant::now();
        let (refused, unread) =
            tokio::join!(answer(commit()), answer(store.load(vec![TreeRef::Key(TreeKey(first))])));
        assert!(matches!(refused, Err(StoreError::Unavailable { .. })), "{refused:?}");
        assert!(matches!(unread, Err(StoreError::Unavailable { .. })), "{unread:?}");
        // The database has given up, not we.
        assert!(begun.elapsed() < Duration::from_millis(2_500), "{:?}", begun.elapsed());
        // What does not need it goes on.
        assert!(answer(store.reserve(1)).await.is_ok());
        held.await.unwrap();
        assert_eq!(until_answered(commit).await, vec![Ok(())]);
    }
}

/// A proxy would hand them to somebody else, and us what somebody else has set.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_set_for_longer_than_a_transaction_on_connections_that_a_proxy_lends() {
    let server = Server::start_careless().unwrap();
    let url = server.create_database("set").unwrap();
    server.query("postgres", "ALTER DATABASE set SET log_statement = 'all'").unwrap();
    let store = open_way(&url, true).await;
    let queue = queue(&store).await;
    let first = until_answered(|| store.reserve(10)).await;
    let unit = step(TreeKey(first), 0, RunKey(first + 1), queue);
    assert_eq!(answer(store.commit(Batch::of(vec![unit]))).await, Ok(vec![Ok(())]));
    assert_eq!(sequence(&store, TreeKey(first)).await, 1);
    let (worker, now, keeper) = ("worker".into(), Timestamp::now(), Default::default());
    let taken = answer(store.claim(Claim { queue, worker, runs_max: 5, now, keeper })).await;
    assert_eq!(taken.unwrap().runs.len(), 1);
    answer(store.renew_all(Vec::new(), SignedDuration::from_secs(5))).await.unwrap();

    let log = server.log();
    assert!(log.contains("SET LOCAL enable_seqscan = off"), "{log}");
    for setting in ["enable_", "statement_timeout", "lock_timeout", "idle_in", "default_transaction", "jit"] {
        assert!(!log.contains(&format!("SET {setting}")), "{setting} is left behind");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_stops_in_the_middle_of_a_commit_holds_up_nobody() {
    let server = Arc::new(Server::start_careless().unwrap());
    let store = open(&server.create_database("stopped").unwrap()).await;
    let holder = server.clone();
    let held = tokio::task::spawn_blocking(move || {
        let sql =
            "BEGIN; SELECT FROM punctual.lease WHERE shard = 0 FOR KEY SHARE; SELECT pg_sleep(3); COMMIT";
        holder.query("stopped", sql).unwrap()
    });
    let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    while server.query("stopped", sleeps).unwrap().trim() == "0" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    let (node, ttl, begun) = (NodeId("a".into()), SignedDuration::from_secs(5), Instant::now());
    let acquire = |shard: u32| answer(store.acquire(ShardId(shard), node.clone(), ttl));
    assert_eq!(acquire(0).await, Ok(None), "its shard is not free yet");
    assert!(acquire(1).await.unwrap().is_some(), "others are");
    assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
    held.await.unwrap();
    assert!(acquire(0).await.unwrap().is_some());
}

/// The schedule moves on, and its run ends.
fn ended(tree: TreeKey, run: RunKey, queue: QueueKey) -> Unit {
    let closing = Closing { outcome: Outcome::Succeeded, closed_at: Timestamp::now(), payload: None };
    let runs = vec![RunWrite::Close { run, attempt: Some(1), closing }];
    Unit { runs, ..step(tree, 1, run, queue) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_write_the_same_in_another_order_do_not_wait_in_a_circle() {
    let server = Server::start_careless().unwrap();
    let url = server.create_database("circle").unwrap();
    let (here, there) = (open(&url).await, open(&url).await);
    let queue = queue(&here).await;
    const COUNT: i64 = 600;
    for _ in 0..6 {
        let first = until_answered(|| here.reserve(2 * COUNT as u32)).await;
        let keys: Vec<(TreeKey, RunKey)> =
            (first..first + COUNT).map(|key| (TreeKey(key), RunKey(key + COUNT))).collect();
        let made = keys.iter().map(|(tree, run)| step(*tree, 0, *run, queue)).collect();
        answer(here.commit(Batch::of(made))).await.unwrap();
        let claim = Claim {
            queue,
            worker: "worker".into(),
            runs_max: COUNT as usize,
            now: Timestamp::now(),
            keeper: Default::default(),
        };
        assert_eq!(answer(here.claim(claim)).await.unwrap().runs.len(), COUNT as usize);

        // Both deal with all of them: every third by a retry, the others end, and one node goes the other way round.
        let unit = |(place, (tree, run)): (usize, &(TreeKey, RunKey))| match place % 3 {
            0 => {
                let failure = b"failure"[..].into();
                let retry = RunWrite::Retry { run: *run, attempt: 1, not_before: Timestamp::now(), failure };
                Unit { tree: None, runs: vec![retry], request: None }
            }
            _ => ended(*tree, *run, queue),
        };
        let units: Vec<Unit> = keys.iter().enumerate().map(unit).collect();
        let backward: Vec<Unit> = units.iter().rev().cloned().collect();
        let forward = here.commit(Batch::of(units));
        let backward = there.commit(Batch::of(backward));
        let runs: Vec<RunKey> = keys.iter().rev().map(|(_, run)| *run).collect();
        let keep = there.keep(runs, Default::default());
        let (forward, backward, kept) = tokio::join!(forward, backward, keep);
        assert_eq!(kept, Ok(()));
        let answers = [forward, backward].into_iter().flat_map(|answers| answers.expect("an answer"));
        let written = answers.filter(Result::is_ok).count();
        assert_eq!(written, COUNT as usize, "each is written once");
    }
    assert_eq!(server.log().matches("deadlock detected").count(), 0, "{}", server.log());
}
