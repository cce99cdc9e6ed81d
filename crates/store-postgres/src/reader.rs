//! Questions: each is a statement or a few, on a connection that others use at the same time.

mod runs;
mod schedules;

use jiff::Timestamp;
use punctual_core::{Entry, StartId};
use punctual_store::record::verdict_of;
use punctual_store::{
    Keeper, Kept, LiveRun, Queue, QueueDepth, QueueKey, RunDetails, RunKey, StoreError, StoredRun, TreeKey,
};

use crate::fault::Fault;
use crate::queues;
use crate::session::Session;
use crate::value::{self, at, count, run_columns, time};
pub(crate) use runs::runs;
pub(crate) use schedules::{count_schedules, load, schedules, timers};

/// What became of occurrences that touch a range, ascending.
pub(crate) async fn ledger(
    session: &Session,
    tree: TreeKey,
    (after, through): (Timestamp, Timestamp),
    most: usize,
) -> Result<Vec<Entry>, Fault> {
    let sql = "SELECT from_time, through_time, origin, count, at_least, verdict, decided_at, sequence, place
        FROM punctual.ledger WHERE tree = $1 AND NOT wide AND from_time > $2 AND from_time <= $3
        UNION ALL
        SELECT from_time, through_time, origin, count, at_least, verdict, decided_at, sequence, place
        FROM punctual.ledger WHERE tree = $1 AND wide AND from_time <= $3 AND through_time > $2
        ORDER BY from_time, through_time, origin, sequence, place LIMIT $4";
    let rows = session.query(sql, &[&tree.0, &time(after), &time(through), &count(most)]).await?;
    let odd = || StoreError::corrupted(format!("the ledger of schedule {tree}"), "a verdict is unknown");
    let entry = |row: &tokio_postgres::Row| {
        Ok(Entry {
            from: at(row.get(0)),
            through: at(row.get(1)),
            origin: value::origin(value::unsorted(row.get(2))),
            count: row.get::<_, i64>(3) as u64,
            at_least: row.get(4),
            verdict: verdict_of(i64::from(row.get::<_, i16>(5)).try_into().unwrap_or_default())
                .ok_or_else(odd)?,
            decided_at: at(row.get(6)),
        })
    };
    rows.iter().map(entry).collect()
}

/// The queues of a namespace, or of all.
pub(crate) async fn all_queues(session: &Session, namespace: Option<&str>) -> Result<Vec<Queue>, Fault> {
    let sql = "SELECT queue, namespace, name, settings, created_at FROM punctual.queue
        WHERE $1::text IS NULL OR namespace = $1 ORDER BY namespace, name";
    session.query(sql, &[&namespace]).await?.iter().map(queues::stored).collect()
}

/// How much is in a queue.
pub(crate) async fn depth(session: &Session, queue: QueueKey) -> Result<QueueDepth, Fault> {
    let queue = [&queue.0 as _];
    let counts = "SELECT state, count(*) FROM punctual.run_live WHERE queue = $1 GROUP BY state";
    let first =
        "SELECT created_at FROM punctual.run_live WHERE queue = $1 AND state = 0 ORDER BY rank, run LIMIT 1";
    let asked = (session.query(counts, &queue), session.find(first, &queue));
    let (counts, first) = futures_util::future::try_join(asked.0, asked.1).await?;
    let of = |state: i64| {
        let row = counts.iter().find(|row| i64::from(row.get::<_, i16>(0)) == state);
        row.map_or(0, |row| row.get::<_, i64>(1) as u64)
    };
    Ok(QueueDepth {
        ready: of(value::READY),
        backing_off: of(value::BACKING_OFF),
        running: of(value::RUNNING),
        first_made_at: first.map(|row| at(row.get(0))),
    })
}

/// Runs that have not ended, by ascending key.
pub(crate) async fn live_runs(
    session: &Session,
    kept: &Kept,
    after: Option<RunKey>,
    most: usize,
) -> Result<Vec<LiveRun>, Fault> {
    let Some(first) = after.map_or(Some(i64::MIN), |after| after.0.checked_add(1)) else {
        return Ok(Vec::new());
    };
    let sql = concat!(
        "SELECT ",
        run_columns!(),
        " FROM punctual.run_live WHERE run >= $1 AND ($3::bigint IS NULL OR keeper = $3)
            AND ($4::bigint[] IS NULL OR keeper <> ALL($4)) ORDER BY run LIMIT $2"
    );
    let by = if let Kept::By(Keeper(keeper)) = kept { Some(*keeper) } else { None };
    let none_of: Option<Vec<i64>> = match kept {
        Kept::ByNoneOf(keepers) => Some(keepers.iter().map(|keeper| keeper.0).collect()),
        Kept::ByAnybody | Kept::By(_) => None,
    };
    session.query(sql, &[&first, &count(most), &by, &none_of]).await?.iter().map(value::live_run).collect()
}

/// Runs in the order asked for.
pub(crate) async fn load_runs(session: &Session, runs: &[RunKey]) -> Result<Vec<Option<StoredRun>>, Fault> {
    let keys: Vec<i64> = runs.iter().map(|run| run.0).collect();
    let live = concat!("SELECT ", run_columns!(), " FROM punctual.run_live WHERE run = ANY($1)");
    let closed = concat!(
        "SELECT ",
        run_columns!(),
        ", outcome, closed_at, dead, payload FROM punctual.run_closed WHERE run = ANY($1)"
    );
    // One after the other: a run that ends in between is then found among those that have ended.
    let mut found = std::collections::HashMap::new();
    for row in &session.query(live, &[&keys]).await? {
        let run = StoredRun { run: value::live_run(row)?, closing: None, is_dead_letter: false };
        found.insert(run.run.made.run, run);
    }
    let missing: Vec<i64> = runs.iter().filter(|run| !found.contains_key(run)).map(|run| run.0).collect();
    if !missing.is_empty() {
        for row in &session.query(closed, &[&missing]).await? {
            let run = value::closed_run(row)?;
            found.insert(run.run.made.run, run);
        }
    }
    Ok(runs.iter().map(|run| found.get(run).cloned()).collect())
}

/// The run of one start that has ended.
pub(crate) async fn closed_run(
    session: &Session,
    tree: TreeKey,
    start: StartId,
) -> Result<Option<RunKey>, Fault> {
    let sql =
        "SELECT run FROM punctual.run_closed WHERE tree = $1 AND nominal_ms = $2 AND request = $3 LIMIT 1";
    let request = value::request(start.origin) as i64;
    let row = session.find(sql, &[&tree.0, &start.nominal_ms, &request]).await?;
    Ok(row.map(|row| RunKey(row.get(0))))
}

/// Progress and log tail of a run.
pub(crate) async fn run_details(session: &Session, run: RunKey) -> Result<RunDetails, Fault> {
    let row =
        session.find("SELECT progress, log_tail FROM punctual.run_detail WHERE run = $1", &[&run.0]).await?;
    Ok(row.map_or_else(RunDetails::default, |row| RunDetails {
        progress: value::optional_bytes(&row, 0),
        log_tail: value::optional_bytes(&row, 1),
    }))
}
