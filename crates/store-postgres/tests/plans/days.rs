//! A day of history goes at once, with whatever belongs to its runs, however many they are; days that somebody reads wait alone.

use punctual_store::Retention;

use super::*;

/// Closed runs of a day: to walk through them is what nobody does.
const CLOSED: u64 = 300_000;

/// Every so many of them has told something while it ran.
const TELLS: u64 = 100;

/// Rows that go at a time.
const ROWS_MAX: usize = 500;

/// Days of 2020, and their first moments.
const DAYS: [(&str, i64); 2] = [("20200101", 18_262), ("20200102", 18_263)];

const DAY: i64 = 86_400_000_000_000;

/// Two days of the past. In the first one runs ended that have told something; one between them is still live, one ended today.
async fn history(server: &Server) -> (Postgres, QueueKey) {
    let options = Options { removes_days: true, ..Options::new("") };
    let (store, queue) = open_with(server, "days", options).await;
    let query = |sql: &str| server.query("days", sql).expect(sql);
    for (name, day) in DAYS {
        for table in ["run_closed", "ledger"] {
            let (from, to) = (day * DAY, (day + 1) * DAY);
            query(&format!(
                "CREATE TABLE punctual.{table}_{name} PARTITION OF punctual.{table} FOR VALUES FROM ({from}) TO ({to})"
            ));
        }
    }
    let closed = |runs: &str, closed_at: i64| {
        query(&format!(
            "INSERT INTO punctual.run_closed (run, queue, due_time, created_at, keeper, closed_at, attempt, state, stop, priority,
                outcome, dead, key, body)
            SELECT 2 * run, {queue}, 0, 0, 0, {closed_at}, 1, 2, 0, 0, 0, false, '', 'x' FROM {runs} AS run"
        ));
    };
    closed(&format!("generate_series(1, {CLOSED})"), DAYS[0].1 * DAY + 1);
    closed("generate_series(1000001, 1000100)", DAYS[1].1 * DAY + 1);
    // Its number is between those of the old ones.
    closed("generate_series(5000, 5000)", 90_000 * DAY);
    query("UPDATE punctual.run_closed SET run = run + 1 WHERE closed_at > 80000 * 86400000000000");
    insert(server, "days", queue, 20_001..=20_001);
    query(&format!(
        "INSERT INTO punctual.run_detail (run, progress)
        SELECT 2 * {TELLS} * told, 'x'::bytea FROM generate_series(1, {}) AS told UNION ALL VALUES (20001, 'x'::bytea), (10001, 'x')",
        CLOSED / TELLS
    ));
    query("ANALYZE");
    (store, queue)
}

async fn retire(store: &Postgres) -> u64 {
    let before = Timestamp::now() - SignedDuration::from_hours(24 * 30);
    let retention = Retention {
        runs_before: before,
        ledger_before: before,
        runs_max: None,
        ledger_max: None,
        rows_max: ROWS_MAX,
    };
    store.retire(retention).await.expect("the store answers")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_goes_with_what_its_runs_have_told_and_nobody_counts_it() {
    let server = Server::start_careless().expect("PostgreSQL starts");
    let (store, _) = history(&server).await;
    let query = |sql: &str| server.query("days", sql).expect(sql).trim().to_owned();
    let tables =
        || query("SELECT relname FROM pg_class WHERE relname ~ '^(run_closed|ledger)_2020....$' ORDER BY 1");
    let reader = holder(&server, "days").await;
    reader.batch_execute("SELECT count(*) FROM punctual.run_closed_20200102").await.expect("rows");
    query("SELECT pg_stat_reset()");

    while query("SELECT to_regclass('punctual.run_closed_20200101') IS NOT NULL") == "t" {
        assert!(retire(&store).await > 0, "it goes on until the day is gone");
    }
    retire(&store).await;

    assert_eq!(tables(), "run_closed_20200102", "only the day that somebody reads is kept");
    assert_eq!(
        query("SELECT run FROM punctual.run_detail ORDER BY 1"),
        "10001\n20001",
        "of runs that are kept"
    );
    reader.batch_execute("COMMIT").await.expect("it has read");
    assert!(retire(&store).await > 0);
    assert_eq!(tables(), "");
    assert_eq!(query("SELECT run FROM punctual.run_closed"), "10001");

    drop((store, reader));
    alone(&server, "days");
    let counted = "SELECT tup_deleted, tup_returned FROM pg_stat_database WHERE datname = 'days'";
    let told = query(counted);
    let numbers: Vec<u64> = told.split('|').filter_map(|number| number.parse().ok()).collect();
    let [deleted, looked_at] = numbers[..] else { panic!("{told}") };
    assert!(deleted >= CLOSED / TELLS, "statistics are complete: {told}");
    assert!(looked_at < CLOSED / 2, "{looked_at} rows were looked at");
}
