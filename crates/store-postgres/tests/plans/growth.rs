//! Tables of live work stay small while somebody holds a snapshot open, if the operator wants that; nothing in them is lost.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use punctual_core::Outcome;
use punctual_store::{Batch, Closing, QueueKey, RunKey, RunWrite, Store, Unit};
use punctual_store_postgres::{Options, Postgres};
use punctual_testkit::Postgres as Server;

use super::{BATCH, claim, holder, move_on, new_run, open_with, queue};

const BYTES_MAX: u64 = 1 << 20;

/// Runs that nobody takes meanwhile.
const WAITING: i64 = 50;

/// How long a round may take while a table cannot be had: without a bound on the wait for it, all would wait behind that for
/// five seconds.
const WAITED_MAX: Duration = Duration::from_secs(4);

/// Schedules move on, and runs come and go.
struct Town {
    server: Server,
    store: Postgres,
    busy: QueueKey,
    round: usize,
    /// The longest that anybody had to wait.
    waited: Duration,
}

impl Town {
    async fn round(&mut self) {
        let (begun, first) = (Instant::now(), (1_000 + self.round * BATCH) as i64);
        assert!(move_on(&self.store, self.round, None).await.iter().all(Result::is_ok));
        self.insert(first..first + BATCH as i64, self.busy).await;
        let taken = claim(&self.store, self.busy, BATCH).await;
        let runs: Vec<i64> = taken.iter().map(|live| live.made.run.0).collect();
        assert_eq!(runs, (first..first + BATCH as i64).collect::<Vec<_>>());
        let close = |run: i64| RunWrite::Close {
            run: RunKey(run),
            attempt: Some(1),
            closing: Closing { outcome: Outcome::Succeeded, closed_at: Timestamp::now(), payload: None },
        };
        self.write(runs.into_iter().map(close)).await;
        self.round += 1;
        self.waited = self.waited.max(begun.elapsed());
    }

    async fn insert(&self, runs: std::ops::Range<i64>, queue: QueueKey) {
        let body = |run| punctual_store::NewRun { body: vec![9; 1_000].into(), ..new_run(run, queue) };
        self.write(runs.map(|run| RunWrite::Insert(body(run)))).await;
    }

    async fn write(&self, writes: impl Iterator<Item = RunWrite>) {
        let unit = |write| Unit { runs: vec![write], ..Unit::default() };
        let answers = self.store.commit(Batch::of(writes.map(unit).collect())).await.expect("an answer");
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    }

    fn size(&self, table: &str) -> u64 {
        let sql = format!("SELECT pg_total_relation_size('punctual.{table}')");
        self.query(&sql).parse().expect("a size")
    }

    fn query(&self, sql: &str) -> String {
        self.server.query("growth", sql).expect(sql).trim().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_snapshot_keeps_is_thrown_away_where_the_operator_allows_it_and_nothing_else_is() {
    let server = Server::start_careless().expect("PostgreSQL starts");
    let level = "ALTER ROLE postgres SET default_transaction_isolation = 'repeatable read'";
    server.query("postgres", level).expect("who begins to wait for a table must not keep an old view of it");
    let options = Options { live_table_bytes_max: Some(BYTES_MAX), ..Options::new("") };
    let (store, busy) = open_with(&server, "growth", options).await;
    let mut town = Town { server, store, busy, round: 0, waited: Duration::ZERO };
    let idle = queue(&town.store, "idle").await;
    town.insert(1..WAITING + 1, idle).await;
    let _holder = holder(&town.server, "growth").await;

    let (begun, mut largest, mut small) =
        (Instant::now(), BTreeMap::from([("state", 0), ("run_live", 0)]), 0);
    while small < largest.len() {
        town.round().await;
        small = 0;
        for (table, largest) in &mut largest {
            let size = town.size(table);
            *largest = size.max(*largest);
            small += usize::from(*largest > BYTES_MAX && size * 4 < *largest);
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "they grow: {largest:?}");
    }

    // Whoever reads a table keeps it as it is, and holds nobody up.
    let reader = holder(&town.server, "growth").await;
    reader.batch_execute("SELECT count(*) FROM punctual.state").await.expect("rows");
    let file = "SELECT pg_relation_filenode('punctual.state')";
    let (before, begun) = (town.query(file), Instant::now());
    town.waited = Duration::ZERO;
    while begun.elapsed() < Duration::from_secs(12) || town.size("state") < 2 * BYTES_MAX {
        town.round().await;
    }
    assert_eq!(town.query(file), before, "the reader still has it");
    assert!(town.waited < WAITED_MAX, "somebody waited for {:?}", town.waited);

    let (rounds, runs) = (town.round, town.round * BATCH);
    let states = town.query(&format!(
        "SELECT count(*), min(sequence), max(sequence), min(length(bytes)) FROM punctual.state WHERE tree <= {BATCH}"
    ));
    assert_eq!(states, format!("{BATCH}|{0}|{0}|1000", rounds + 1));
    let live =
        town.query("SELECT count(*), min(state), max(state), min(length(body)) FROM punctual.run_live");
    assert_eq!(live, format!("{WAITING}|0|0|1000"));
    let closed = "SELECT count(*), count(DISTINCT run), max(attempt) FROM punctual.run_closed";
    assert_eq!(town.query(closed), format!("{runs}|{runs}|1"));
    assert_eq!(claim(&town.store, idle, 2 * WAITING as usize).await.len(), WAITING as usize);
}
