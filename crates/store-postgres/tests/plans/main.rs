//! What a statement costs does not depend on how many rows there are, nor on how many the database believes there are.

mod days;
mod growth;
mod waiting;

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Outcome, ScheduleKey};
use punctual_store::{
    Batch, Claim, Closing, Epoch, Expected, Keeper, LiveRun, NewQueue, NewRun, NodeId, QueueKey,
    QueueSettings, RunKey, RunWrite, Sequence, ShardId, Store, StoreError, TreeKey, TreeRef, TreeWrite, Unit,
};
use punctual_store_postgres::{Options, Postgres};
use punctual_testkit::Postgres as Server;

/// Runs that a worker takes at a time, and schedules that move on with their ends.
const BATCH: usize = 20;

/// How often.
const ROUNDS: usize = 10;

async fn queue(store: &Postgres, name: &str) -> QueueKey {
    let new = NewQueue {
        namespace: "default".into(),
        name: name.into(),
        settings: QueueSettings::default(),
        created_at: Timestamp::now(),
    };
    store.create_queue(new).await.expect("a queue is declared").queue
}

fn tree_write(tree: i64, expected: Expected) -> TreeWrite {
    let is_new = matches!(expected, Expected::New { .. });
    TreeWrite {
        tree: TreeKey(tree),
        shard: ShardId(0),
        epoch: None,
        expected,
        definition: is_new.then(|| b"definition"[..].into()),
        view: None,
        state: b"state"[..].into(),
        completion: None,
        due_time: None,
        ledger: Vec::new(),
        retired: false,
    }
}

/// Runs that are ready, from one number to another, and schedules.
fn insert(server: &Server, database: &str, queue: QueueKey, runs: std::ops::RangeInclusive<usize>) {
    let (first, last) = (runs.start(), runs.end());
    let statements = [
        format!(
            "INSERT INTO punctual.state SELECT number + 1000, 1, NULL, 'x' FROM generate_series({first}, {last}) AS number"
        ),
        format!(
            "INSERT INTO punctual.run_live (run, queue, rank, due_time, created_at, keeper, attempt, state, stop,
                priority, keyed, limited, key, body)
            SELECT number, {queue}, number, 0, number * 1000000, 0, 0, 0, 0, 0, false, false, '', 'x'
            FROM generate_series({first}::bigint, {last}) AS number"
        ),
    ];
    for statement in statements {
        server.query(database, &statement).expect("rows are made");
    }
}

/// A database with some schedules, and a queue.
async fn open(server: &Server, database: &str) -> (Postgres, QueueKey) {
    open_with(server, database, Options::new("")).await
}

async fn open_with(server: &Server, database: &str, options: Options) -> (Postgres, QueueKey) {
    let url = server.create_database(database).expect("a database is made");
    let store = Postgres::open(Options { shards: 4, url, ..options }).await.expect("the database opens");
    let queue = queue(&store, "work").await;
    let new = |tree: i64| {
        let key = ScheduleKey::new("default", &format!("schedule-{tree}"));
        let tree = Some(tree_write(tree, Expected::New { key, replaces: None }));
        Unit { tree, ..Unit::default() }
    };
    let made = store.commit(Batch::of((1..=BATCH as i64).map(new).collect())).await.expect("they are made");
    assert!(made.iter().all(Result::is_ok), "{made:?}");
    (store, queue)
}

/// Rows that were looked at, by way of indexes or not.
fn looked_at(server: &Server, database: &str, updates: usize) -> u64 {
    let begun = Instant::now();
    loop {
        let sql = "SELECT sum(n_tup_upd), sum(seq_tup_read)
                + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname IN ('run_live', 'state'))
            FROM pg_stat_user_tables WHERE relname IN ('run_live', 'state')";
        let answer = server.query(database, sql).expect("statistics");
        let mut numbers = answer.trim().split('|').map(|number| number.parse::<u64>().unwrap_or(0));
        let (written, read) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        if written as usize >= updates {
            return read;
        }
        // They are told once a second.
        assert!(begun.elapsed() < Duration::from_secs(20), "no statistics: {answer}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Waits until nobody is connected any more: then all that was counted is told.
fn alone(server: &Server, database: &str) {
    let begun = Instant::now();
    let sql =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND backend_type = 'client backend'";
    while server.query(database, sql).expect("sessions").trim() != "0" {
        assert!(begun.elapsed() < Duration::from_secs(20), "connections stay");
        std::thread::sleep(Duration::from_millis(50));
    }
}

async fn claim(store: &Postgres, queue: QueueKey, runs_max: usize) -> Vec<LiveRun> {
    let (worker, now, keeper) = ("w".into(), Timestamp::now(), Keeper::default());
    let claim = Claim { queue, worker, runs_max, now, keeper };
    store.claim(claim).await.expect("runs are claimed").runs
}

/// Claims and ends runs, each end with a schedule that moves on.
async fn work(store: &Postgres, queue: QueueKey, rounds: std::ops::Range<usize>) {
    for round in rounds {
        let taken = claim(store, queue, BATCH).await;
        assert_eq!(taken.len(), BATCH, "as many as were asked for");
        let units = taken.iter().zip(1..).map(|(live, tree)| Unit {
            tree: Some(tree_write(tree, Expected::At(Sequence(round as u64 + 1)))),
            runs: vec![RunWrite::Close {
                run: live.made.run,
                attempt: Some(live.attempt),
                closing: Closing { outcome: Outcome::Succeeded, closed_at: Timestamp::now(), payload: None },
            }],
            request: None,
        });
        let ended = store.commit(Batch::of(units.collect())).await.expect("runs end");
        assert!(ended.iter().all(Result::is_ok), "{ended:?}");
    }
}

/// Rows that are looked at when there are so many.
async fn with_rows(server: &Server, rows: usize) -> u64 {
    let database = format!("rows_{rows}");
    let (store, queue) = open(server, &database).await;
    insert(server, &database, queue, 1..=rows);
    server.query(&database, "ANALYZE punctual.run_live, punctual.state").expect("rows are counted");
    server.query(&database, "SELECT pg_stat_reset()").expect("statistics begin");
    work(&store, queue, 0..ROUNDS).await;
    drop(store);
    looked_at(server, &database, 2 * ROUNDS * BATCH)
}

/// The same when they come after the statements were planned, and when the tables were counted while nothing was in them.
async fn with_surprise(server: &Server, rows: usize) -> u64 {
    let database = format!("surprise_{rows}");
    let (store, queue) = open(server, &database).await;
    insert(server, &database, queue, 1..=ROUNDS * BATCH);
    let sql = "UPDATE pg_class SET reltuples = 0, relpages = 1
        WHERE relnamespace = 'punctual'::regnamespace AND relkind IN ('r', 'i')";
    server.query(&database, sql).expect("the count is wrong");
    work(&store, queue, 0..ROUNDS).await;
    insert(server, &database, queue, ROUNDS * BATCH + 1..=rows);
    server.query(&database, "SELECT pg_stat_reset()").expect("statistics begin");
    work(&store, queue, ROUNDS..2 * ROUNDS).await;
    drop(store);
    looked_at(server, &database, 2 * ROUNDS * BATCH)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_statement_walks_through_a_table() {
    let server = Server::start_careless().expect("PostgreSQL starts");
    let (few, many) = (with_rows(&server, 2_000).await, with_rows(&server, 100_000).await);
    let surprised = with_surprise(&server, 100_000).await;
    // Statistics of the rounds before may come late.
    let bound = (ROUNDS * BATCH * 20) as u64;
    assert!(few < bound && many < bound && surprised < bound, "{few} / {many} / {surprised}, bound {bound}");
}

/// Looks schedules up, by name and by key.
async fn look_up(store: &Postgres) {
    let name = |tree: i64| TreeRef::Name(ScheduleKey::new("default", &format!("schedule-{tree}")));
    for _ in 0..ROUNDS {
        let keys = (1..=BATCH as i64).map(|tree| TreeRef::Key(TreeKey(tree)));
        let all: Vec<TreeRef> = (1..=BATCH as i64).map(name).chain(keys).collect();
        let found = store.load(all).await.expect("they are found");
        assert!(found.iter().all(Option::is_some), "each of them");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schedules_are_found_by_name_and_key_however_many_came_since_they_were_counted() {
    let server = Server::start_careless().expect("PostgreSQL starts");
    let (store, _) = open(&server, "names").await;
    let query = |sql: &str| server.query("names", sql).expect(sql);
    query(
        "UPDATE pg_class SET reltuples = 0, relpages = 1
        WHERE relnamespace = 'punctual'::regnamespace AND relkind IN ('r', 'i')",
    );
    look_up(&store).await;
    query(
        "WITH new AS (SELECT number, 'other-' || number AS id FROM generate_series(1000, 60000) AS number),
            names AS (INSERT INTO punctual.schedule_name SELECT 'default', id, number, 0, false, NULL FROM new),
            schedules AS (INSERT INTO punctual.schedule SELECT number, 0, 'default', id, 'x' FROM new)
        INSERT INTO punctual.state SELECT number, 1, NULL, 'x' FROM new",
    );
    query("SELECT pg_stat_reset()");
    look_up(&store).await;
    // What a connection has read is told when it ends, at the latest.
    drop(store);

    let tables = "relname IN ('schedule_name', 'schedule', 'state', 'completion')";
    let sql = format!(
        "SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE {tables})
            + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE {tables})"
    );
    // A name and two schedules, each in two tables.
    let (least, begun) = ((5 * ROUNDS * BATCH) as u64, Instant::now());
    let read = loop {
        let read = query(&sql).trim().parse::<u64>().unwrap_or(0);
        if read >= least {
            break read;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "no statistics: {read}");
        std::thread::sleep(Duration::from_millis(100));
    };
    assert!(read < 4 * least, "{read} rows were looked at for {least}");
}

/// Claims one run after another until it is this one.
async fn claim_until(store: &Postgres, queue: QueueKey, run: i64) {
    let begun = Instant::now();
    loop {
        let taken = claim(store, queue, 1).await;
        if taken.iter().any(|taken| taken.made.run.0 == run) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "run {run} is not seen");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_held_open_does_not_make_claims_walk_through_what_was_claimed() {
    // So many that to walk through them is slow on fast machines too: some 50 ms on one that was.
    const CLAIMED: usize = 1_000_000;
    const SLOW_ROUNDS: usize = 3;
    let server = Server::start_careless().expect("PostgreSQL starts");
    let (store, queue) = open(&server, "held").await;
    let query = |sql: &str| server.query("held", sql).expect(sql);
    insert(&server, "held", queue, 1..=CLAIMED + 20_000);
    let holder = holder(&server, "held").await;
    query(&format!("UPDATE punctual.run_live SET state = 2 WHERE run <= {CLAIMED}"));

    let mut times = Vec::new();
    for round in 0..SLOW_ROUNDS + 2 * ROUNDS {
        let begun = Instant::now();
        work(&store, queue, round..round + 1).await;
        times.push(begun.elapsed());
    }
    let (slow, quick) = times.split_at_mut(SLOW_ROUNDS);
    quick.sort();
    let (slowest, median) = (slow.iter().max().copied().unwrap_or_default(), quick[ROUNDS]);
    assert!(median * 4 < slowest, "at first {slow:?}, then {quick:?}");

    // What becomes ready in front is seen: when somebody says so, and when nobody does.
    let front = |run: i64| {
        insert(&server, "held", queue, run as usize..=run as usize);
        query(&format!("UPDATE punctual.run_live SET rank = 1, created_at = 1000000 WHERE run = {run}"));
    };
    front(5_000_001);
    query(&format!("SELECT punctual.tell('R{queue}')"));
    claim_until(&store, queue, 5_000_001).await;
    front(5_000_002);
    claim_until(&store, queue, 5_000_002).await;

    // When the snapshot is gone, all is as before.
    holder.batch_execute("COMMIT").await.expect("it is gone");
    query("VACUUM punctual.run_live");
    front(5_000_003);
    claim_until(&store, queue, 5_000_003).await;
}

/// A run that is to be made.
fn new_run(run: i64, queue: QueueKey) -> NewRun {
    NewRun {
        run: RunKey(run),
        queue,
        origin: None,
        due_time: Timestamp::UNIX_EPOCH,
        created_at: Timestamp::UNIX_EPOCH,
        not_before: None,
        priority: 0,
        key: "".into(),
        dedup: None,
        body: b"body"[..].into(),
    }
}

/// Who was behind for longer than it remembers its keys wrote one run after another from then on, and fell behind for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_are_written_together_though_nobody_remembers_that_their_keys_are_new() {
    const RUNS: i64 = 2_000;
    let server = Server::start_careless().expect("PostgreSQL starts");
    let (store, queue) = open(&server, "behind").await;
    let make = |runs: std::ops::RangeInclusive<i64>| {
        let unit = |run| Unit { runs: vec![RunWrite::Insert(new_run(run, queue))], ..Unit::default() };
        store.commit(Batch::of(runs.map(unit).collect()))
    };

    // Nobody drew these keys.
    let made = make(1_000_001..=1_000_000 + RUNS).await.expect("the store answers");
    assert!(made.iter().all(Result::is_ok));

    let begun = Instant::now();
    let looks = loop {
        let sql = "SELECT (SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'run_live'),
                seq_scan + idx_scan FROM pg_stat_user_tables WHERE relname = 'queue'";
        let answer = server.query("behind", sql).expect("statistics");
        let numbers: Vec<i64> = answer.trim().split('|').filter_map(|number| number.parse().ok()).collect();
        if let [made, looks] = numbers[..]
            && made >= RUNS
        {
            break looks;
        }
        // They are told once a second, by who has something to do.
        assert!(begun.elapsed() < Duration::from_secs(20), "no statistics: {answer}");
        assert!(claim(&store, queue, 0).await.is_empty());
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert!(looks < RUNS / 2, "the queue was looked at {looks} times for {RUNS} runs");

    // Those that are there, live or closed, are refused as ever, and nobody else with them.
    let taken = claim(&store, queue, 1).await;
    let (run, attempt) = (taken[0].made.run, Some(1));
    let closing = Closing { outcome: Outcome::Succeeded, closed_at: Timestamp::now(), payload: None };
    let close = Unit { runs: vec![RunWrite::Close { run, attempt, closing }], ..Unit::default() };
    assert_eq!(store.commit(Batch::of(vec![close])).await, Ok(vec![Ok(())]));
    let again = make(run.0..=run.0 + RUNS + 1).await.expect("the store answers");
    let refused = again.iter().filter(|answer| matches!(answer, Err(StoreError::Conflict(_)))).count();
    assert_eq!((refused as i64, again.len() as i64), (RUNS, RUNS + 2));
}

/// Somebody who holds a snapshot open until it is dropped.
async fn holder(server: &Server, database: &str) -> tokio_postgres::Client {
    let url = format!("postgresql://postgres@127.0.0.1:{}/{database}", server.port());
    let (holder, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("a holder");
    tokio::spawn(connection);
    let hold = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class";
    holder.batch_execute(hold).await.expect("a snapshot");
    holder
}

/// All schedules move on, each with a state of a kilobyte, so that a page has room for few versions.
async fn move_on(store: &Postgres, round: usize, epoch: Option<Epoch>) -> Vec<Result<(), StoreError>> {
    let units = (1..=BATCH as i64).map(|tree| {
        let write = tree_write(tree, Expected::At(Sequence(round as u64 + 1)));
        Unit { tree: Some(TreeWrite { state: vec![7; 1_000].into(), epoch, ..write }), ..Unit::default() }
    });
    store.commit(Batch::of(units.collect())).await.expect("schedules move on")
}

/// Versions that the index has led to, once so many changes are counted; and how many of those stayed on their page.
async fn led_to(server: &Server, (store, queue): (&Postgres, QueueKey), changes: usize) -> (usize, usize) {
    let mut told = String::new();
    for _ in 0..200 {
        // Before PostgreSQL 15 a connection tells what it has counted only when it has something to do. Here that leaves the
        // schedules alone.
        assert!(claim(store, queue, 1).await.is_empty(), "nothing waits");
        let sql = "SELECT n_tup_upd, (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'state'), n_tup_hot_upd
            FROM pg_stat_user_tables WHERE relname = 'state'";
        told = server.query("spots", sql).expect("statistics");
        let numbers: Vec<usize> = told.trim().split('|').filter_map(|number| number.parse().ok()).collect();
        if let [counted, read, stayed] = numbers[..]
            && counted >= changes
        {
            return (read, stayed);
        }
        // They are told once a second.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("no statistics: {told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_held_open_does_not_make_schedules_dearer_to_find() {
    const CHANGES: usize = 100;
    let server = Server::start_careless().expect("PostgreSQL starts");
    let (store, queue) = open(&server, "spots").await;
    for round in 0..CHANGES {
        assert!(move_on(&store, round, None).await.iter().all(Result::is_ok));
    }
    let (_, stayed) = led_to(&server, (&store, queue), CHANGES * BATCH).await;
    assert!(stayed > CHANGES * BATCH * 9 / 10, "pages are cleared while that is possible: {stayed}");
    let _holder = holder(&server, "spots").await;
    for round in CHANGES..2 * CHANGES {
        assert!(move_on(&store, round, None).await.iter().all(Result::is_ok));
    }
    let (first, _) = led_to(&server, (&store, queue), 2 * CHANGES * BATCH).await;
    // Each row has a hundred versions by now, in many pages.
    for round in 2 * CHANGES..3 * CHANGES {
        assert!(move_on(&store, round, None).await.iter().all(Result::is_ok));
    }
    let (then, _) = led_to(&server, (&store, queue), 3 * CHANGES * BATCH).await;
    assert!(then - first < 3 * CHANGES * BATCH, "{first}, then {then}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_are_elsewhere_are_found_by_their_keys() {
    let server = Server::start_careless().expect("PostgreSQL starts");
    let (store, _) = open(&server, "moved").await;
    let query = |sql: &str| server.query("moved", sql).expect(sql);
    let lease = |node: &str| store.acquire(ShardId(0), NodeId(node.into()), SignedDuration::from_secs(60));
    let mut ours = lease("a").await.expect("a lease").expect("nobody has it");
    let mut round = 0;
    for disturbance in ["SELECT 1", "VACUUM FULL punctual.state", "VACUUM FULL punctual.lease", "SELECT 1"] {
        ours = store.renew(ours, SignedDuration::from_secs(60)).await.expect("it is ours");
        query(disturbance);
        for _ in 0..3 {
            assert!(
                move_on(&store, round, Some(ours.epoch)).await.iter().all(Result::is_ok),
                "{disturbance}"
            );
            round += 1;
        }
    }
    let sequences = query("SELECT DISTINCT sequence FROM punctual.state WHERE tree <= 20");
    assert_eq!(sequences.trim(), (round + 1).to_string(), "each moved on by itself");
    // What somebody else wrote is met, and so is a lease that was lost, though both were here a moment ago.
    query("UPDATE punctual.state SET sequence = sequence + 1 WHERE tree = 7");
    let answers = move_on(&store, round, Some(ours.epoch)).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_err()).count(), 1, "{answers:?}");
    query("UPDATE punctual.lease SET epoch = epoch + 1, node = 'b' WHERE shard = 0");
    let answers = move_on(&store, round + 1, Some(ours.epoch)).await;
    assert!(answers.iter().all(|answer| matches!(answer, Err(StoreError::Fenced { .. }))), "{answers:?}");
}
