//! A claim costs what it hands out, not what waits, whatever limits its queue has; and what somebody holds is passed over.

use punctual_store::{QueueSettings, Rate};

use super::*;

const KEYS: usize = 500;

/// Rows of queues that were looked at, by way of indexes or not.
fn read_so_far(server: &Server, database: &str) -> u64 {
    let tables = "relname IN ('run_live', 'queue_key', 'queue_start', 'key_start', 'queue_round')";
    let sql = format!(
        "SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE {tables})
            + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE {tables})"
    );
    server.query(database, &sql).expect("statistics").trim().parse().unwrap_or(0)
}

/// Rows that claims look at, and the ends of what they hand out, when so many wait.
async fn with_waiting(server: &Server, name: &str, rows: usize, settings: QueueSettings) -> u64 {
    let database = format!("{name}_{rows}");
    let (store, queue) = open_with(
        server,
        &database,
        Options { statement_timeout: Duration::from_secs(60), ..Options::new("") },
    )
    .await;
    insert(server, &database, queue, 1..=rows);
    let keys = format!("UPDATE punctual.run_live SET key = convert_to('key ' || run % {KEYS}, 'UTF8')");
    server.query(&database, &keys).expect("keys");
    store.update_queue(queue, settings).await.expect("the store answers").expect("it is there");
    server.query(&database, "VACUUM ANALYZE").expect("rows are counted");
    // The first claim after a change finds everything new; that is not the usual case.
    work(&store, queue, 0..1).await;
    drop(store);
    alone(server, &database);
    server.query(&database, "SELECT pg_stat_reset()").expect("statistics begin");
    let url = format!("postgresql://postgres@127.0.0.1:{}/{database}", server.port());
    let store = Postgres::open(Options::new(url)).await.expect("the database opens");
    work(&store, queue, 1..ROUNDS).await;
    drop(store);
    alone(server, &database);
    read_so_far(server, &database)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_of_queues_with_limits_cost_the_same_however_much_waits() {
    let server = Server::start_careless().expect("PostgreSQL starts");
    let rate = Some(Rate { starts_max: 1_000_000, per: SignedDuration::from_secs(60) });
    let limited = QueueSettings {
        concurrency_max: Some(500),
        worker_concurrency_max: Some(500),
        rate,
        ..QueueSettings::default()
    };
    let keyed = QueueSettings { key_concurrency_max: Some(3), key_rate: rate, ..limited.clone() };
    for (name, settings) in [("limited", limited), ("keyed", keyed)] {
        let few = with_waiting(&server, name, 2_000, settings.clone()).await;
        let many = with_waiting(&server, name, 60_000, settings).await;
        eprintln!("{name}: {few} rows looked at with 2,000 that wait, {many} with 60,000");
        assert!(many < 2 * few && few < (ROUNDS * BATCH * 100) as u64, "{name}: {few}, then {many}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_passes_over_what_somebody_holds() {
    let server = Server::start_careless().expect("PostgreSQL starts");
    let (store, queue) = open(&server, "passed").await;
    insert(&server, "passed", queue, 1..=50);
    let holder = holder(&server, "passed").await;
    holder.batch_execute("SELECT FROM punctual.run_live WHERE run <= 10 FOR UPDATE").await.expect("rows");

    let begun = Instant::now();
    let runs: Vec<i64> = claim(&store, queue, 5).await.iter().map(|live| live.made.run.0).collect();

    assert_eq!(runs, [11, 12, 13, 14, 15]);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    holder.batch_execute("COMMIT").await.expect("it lets go");
    let runs: Vec<i64> = claim(&store, queue, 5).await.iter().map(|live| live.made.run.0).collect();
    assert_eq!(runs, [1, 2, 3, 4, 5]);
}
