//! Runs by key, and what they told on their way.

use punctual_core::StartId;
use punctual_store::{LiveRun, RunDetails, RunKey, StoredRun, TreeKey};
use rusqlite::{Connection, OptionalExtension};

use crate::fault::Fault;
use crate::value;

/// Runs that have not ended, by ascending key.
pub(crate) fn live_runs(
    connection: &Connection,
    after: Option<RunKey>,
    count: usize,
) -> Result<Vec<LiveRun>, Fault> {
    let Some(first) = after.map_or(Some(i64::MIN), |after| after.0.checked_add(1)) else {
        return Ok(Vec::new());
    };
    let mut statement = connection.prepare_cached(include_str!("../../queries/live_runs.sql"))?;
    let mut rows = statement.query((first, value::count(count)))?;
    let mut runs = Vec::new();
    while let Some(row) = rows.next()? {
        runs.push(value::live_run(row)?);
    }
    Ok(runs)
}

/// Runs in the order asked for.
pub(crate) fn load_runs(connection: &Connection, runs: &[RunKey]) -> Result<Vec<Option<StoredRun>>, Fault> {
    runs.iter().map(|run| load_run(connection, run.0)).collect()
}

/// A run, live or closed.
pub(super) fn load_run(connection: &Connection, run: i64) -> Result<Option<StoredRun>, Fault> {
    let mut statement = connection.prepare_cached(include_str!("../../queries/load_live_run.sql"))?;
    if let Some(row) = statement.query([run])?.next()? {
        return Ok(Some(StoredRun { run: value::live_run(row)?, closing: None, is_dead_letter: false }));
    }
    load_closed(connection, run)
}

/// A run that has ended.
pub(super) fn load_closed(connection: &Connection, run: i64) -> Result<Option<StoredRun>, Fault> {
    let mut statement = connection.prepare_cached(include_str!("../../queries/load_closed_run.sql"))?;
    let mut rows = statement.query([run])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(value::closed_run(row)?))
}

/// The run of one start that has ended.
pub(crate) fn closed_run(
    connection: &Connection,
    tree: TreeKey,
    start: StartId,
) -> Result<Option<RunKey>, Fault> {
    let mut statement = connection.prepare_cached(include_str!("../../queries/closed_run.sql"))?;
    let start = (tree.0, start.nominal_ms, value::request(start.origin) as i64);
    Ok(statement.query_row(start, |row| row.get(0).map(RunKey)).optional()?)
}

/// Progress and log tail of a run.
pub(crate) fn run_details(connection: &Connection, run: RunKey) -> Result<RunDetails, Fault> {
    let mut statement =
        connection.prepare_cached("SELECT progress, log_tail FROM run_detail WHERE run = ?1")?;
    let details =
        statement.query_row([run.0], |row| Ok(RunDetails { progress: row.get(0)?, log_tail: row.get(1)? }));
    Ok(details.optional()?.unwrap_or_default())
}
