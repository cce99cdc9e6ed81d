//! Removing what is older or more than the retention allows: whole days where that is allowed, else some rows at a time.

use jiff::Timestamp;
use punctual_store::Retention;

use crate::days;
use crate::fault::Fault;
use crate::session::Session;
use crate::value::{count, time};

/// Above this many rows they are not counted one by one.
const COUNTED_MAX: i64 = 200_000;

/// Removes runs, then requests, then ledger entries, the oldest first; says how many.
pub(crate) async fn retire(session: &Session, retention: &Retention, by_days: bool) -> Result<u64, Fault> {
    let mut removed = 0;
    let (mut runs_before, mut ledger_before) = (retention.runs_before, retention.ledger_before);
    if by_days {
        days::provide(session).await?;
        removed += days::remove(session, "run_closed", runs_before, retention.rows_max).await?;
        removed += days::remove(session, "ledger", ledger_before, retention.rows_max).await?;
        // What is younger goes with its day.
        let earlier = |time: Timestamp| time.checked_sub(days::slack()).unwrap_or(Timestamp::MIN);
        (runs_before, ledger_before) = (earlier(runs_before), earlier(ledger_before));
    }
    let mut left = retention.rows_max;
    left -= retire_runs(session, runs_before, retention.runs_max, left).await?;
    left -= retire_requests(session, retention.runs_before, left).await?;
    left -= retire_ledger(session, ledger_before, retention.ledger_max, left).await?;
    Ok(removed + (retention.rows_max - left) as u64)
}

async fn retire_runs(
    session: &Session,
    before: Timestamp,
    runs_max: Option<u64>,
    rows_max: usize,
) -> Result<usize, Fault> {
    let many = surplus(session, "run_closed", runs_max).await?.min(rows_max);
    let mut removed = 0;
    if many > 0 {
        let sql = "WITH gone AS (DELETE FROM punctual.run_closed
                WHERE run IN (SELECT run FROM punctual.run_closed ORDER BY run LIMIT $1) RETURNING run),
            told AS (DELETE FROM punctual.run_detail WHERE run IN (SELECT run FROM gone))
            SELECT count(*) FROM gone";
        removed += found(session.find(sql, &[&count(many)]).await?);
    }
    let sql = "WITH gone AS (DELETE FROM punctual.run_closed
            WHERE run IN (SELECT run FROM punctual.run_closed WHERE closed_at < $1 ORDER BY closed_at, run LIMIT $2)
            RETURNING run),
        told AS (DELETE FROM punctual.run_detail WHERE run IN (SELECT run FROM gone))
        SELECT count(*) FROM gone";
    Ok(removed + found(session.find(sql, &[&time(before), &count(rows_max - removed)]).await?))
}

async fn retire_requests(session: &Session, before: Timestamp, rows_max: usize) -> Result<usize, Fault> {
    let sql = "WITH gone AS (DELETE FROM punctual.request WHERE (namespace, id) IN
            (SELECT namespace, id FROM punctual.request WHERE made_at < $1 ORDER BY made_at LIMIT $2) RETURNING 1)
        SELECT count(*) FROM gone";
    Ok(found(session.find(sql, &[&time(before), &count(rows_max)]).await?))
}

async fn retire_ledger(
    session: &Session,
    before: Timestamp,
    ledger_max: Option<u64>,
    rows_max: usize,
) -> Result<usize, Fault> {
    let many = surplus(session, "ledger", ledger_max).await?.min(rows_max);
    let mut removed = 0;
    if many > 0 {
        let sql = "WITH gone AS (DELETE FROM punctual.ledger WHERE (tableoid, ctid) IN
                (SELECT tableoid, ctid FROM punctual.ledger ORDER BY decided_at LIMIT $1) RETURNING 1)
            SELECT count(*) FROM gone";
        removed += found(session.find(sql, &[&count(many)]).await?);
    }
    let sql = "WITH gone AS (DELETE FROM punctual.ledger WHERE (tableoid, ctid) IN
            (SELECT tableoid, ctid FROM punctual.ledger WHERE decided_at < $1 ORDER BY decided_at LIMIT $2) RETURNING 1)
        SELECT count(*) FROM gone";
    Ok(removed + found(session.find(sql, &[&time(before), &count(rows_max - removed)]).await?))
}

fn found(row: Option<tokio_postgres::Row>) -> usize {
    row.map_or(0, |row| usize::try_from(row.get::<_, i64>(0)).unwrap_or(0))
}

/// How many are too many: counted where they are few, else as the database estimates them.
async fn surplus(session: &Session, table: &str, most: Option<u64>) -> Result<usize, Fault> {
    let Some(most) = most.and_then(|most| i64::try_from(most).ok()) else { return Ok(0) };
    let sql = "SELECT coalesce(sum(greatest(child.reltuples, 0)), 0)::bigint FROM pg_inherits
        JOIN pg_class AS child ON child.oid = inhrelid JOIN pg_class AS parent ON parent.oid = inhparent
        JOIN pg_namespace AS space ON space.oid = parent.relnamespace
        WHERE space.nspname = 'punctual' AND parent.relname = $1";
    let estimate = session.find(sql, &[&table]).await?.map_or(0, |row| row.get::<_, i64>(0));
    let kept = if estimate > COUNTED_MAX {
        estimate
    } else {
        i64::try_from(session.count(&format!("SELECT count(*) FROM punctual.{table}")).await?).unwrap_or(0)
    };
    Ok(usize::try_from(kept.saturating_sub(most)).unwrap_or(0))
}
