//! Lists of runs, the latest first: live and closed ones are kept apart, and merged here.

use std::collections::BTreeSet;

use punctual_core::Outcome;
use punctual_store::{Page, RunFilter, RunQuery, StoredRun};
use rusqlite::{Connection, Row};

use super::run::load_closed;
use crate::fault::Fault;
use crate::value::{self, BACKING_OFF, READY, RUNNING};

/// Rows that one page looks at in each table, so that a filter that finds little does not take long.
const ROWS_MAX: usize = 10_000;

/// What was found in one table, by descending key, and how far it was looked at; to the end if that is nothing.
#[derive(Default)]
struct Found {
    runs: Vec<StoredRun>,
    looked_down_to: Option<i64>,
}

/// One page of runs.
pub(crate) fn runs(connection: &Connection, query: &RunQuery) -> Result<Page<StoredRun>, Fault> {
    let queues = queues_of(connection, query)?;
    let live = match query.filter {
        None => live(connection, query, &queues, None)?,
        Some(RunFilter::Ready) => live(connection, query, &queues, Some(READY))?,
        Some(RunFilter::BackingOff) => live(connection, query, &queues, Some(BACKING_OFF))?,
        Some(RunFilter::Running) => live(connection, query, &queues, Some(RUNNING))?,
        Some(RunFilter::Closed(_)) => Found::default(),
    };
    let closed = match query.filter {
        None => closed(connection, query, &queues, None)?,
        Some(RunFilter::Closed(outcome)) => closed(connection, query, &queues, outcome)?,
        Some(RunFilter::Ready | RunFilter::BackingOff | RunFilter::Running) => Found::default(),
    };
    Ok(merge(live, closed, query.count))
}

/// The page goes down to where both tables were looked at.
fn merge(live: Found, closed: Found, count: usize) -> Page<StoredRun> {
    let floor = live.looked_down_to.max(closed.looked_down_to);
    let key = |run: &StoredRun| run.run.made.run.0;
    let mut items = live.runs;
    items.extend(closed.runs);
    items.retain(|run| floor.is_none_or(|floor| key(run) >= floor));
    items.sort_by_key(|run| std::cmp::Reverse(key(run)));
    let more = items.len() > count;
    items.truncate(count);
    let next = if more { items.last().map(key) } else { floor };
    Page { items, next: next.map(|run| run.to_string().into()) }
}

/// The queues that the query is about.
fn queues_of(connection: &Connection, query: &RunQuery) -> Result<BTreeSet<i64>, Fault> {
    let mut statement = connection.prepare_cached("SELECT queue FROM queue WHERE namespace = ?1")?;
    let queues = statement.query_map([&query.namespace[..]], |row| row.get::<_, i64>(0))?;
    let mut queues: BTreeSet<i64> = queues.collect::<Result<_, _>>()?;
    queues.retain(|queue| query.queue.is_none_or(|wanted| wanted.0 == *queue));
    Ok(queues)
}

fn before(query: &RunQuery) -> i64 {
    query.before.map_or(i64::MAX, |before| before.0)
}

fn live(
    connection: &Connection,
    query: &RunQuery,
    queues: &BTreeSet<i64>,
    state: Option<i64>,
) -> Result<Found, Fault> {
    let rows_max = value::count(ROWS_MAX);
    let ready_of = query.queue.filter(|_| state == Some(READY));
    let mut statement = connection.prepare_cached(match ready_of {
        Some(_) => include_str!("../../queries/runs_ready.sql"),
        None => include_str!("../../queries/runs_live.sql"),
    })?;
    let mut rows = match ready_of {
        Some(queue) => statement.query((before(query), rows_max, queue.0))?,
        None => statement.query((before(query), rows_max))?,
    };
    let mut found = Found::default();
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        seen += 1;
        if is_wanted(query, queues, row)? && state.is_none_or(|state| row.get(5) == Ok(state)) {
            if found.runs.len() > query.count {
                break;
            }
            found.runs.push(StoredRun { run: value::live_run(row)?, closing: None });
        }
        if seen == ROWS_MAX {
            found.looked_down_to = Some(row.get(0)?);
        }
    }
    Ok(found)
}

fn closed(
    connection: &Connection,
    query: &RunQuery,
    queues: &BTreeSet<i64>,
    outcome: Option<Outcome>,
) -> Result<Found, Fault> {
    if query.tree.is_some() {
        return closed_of_tree(connection, query, queues, outcome);
    }
    let mut statement = connection.prepare_cached(include_str!("../../queries/runs_closed.sql"))?;
    let mut rows = statement.query((before(query), value::count(ROWS_MAX)))?;
    let outcome = outcome.map(value::outcome_number);
    let mut found = Found::default();
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        seen += 1;
        if is_wanted(query, queues, row)? && outcome.is_none_or(|outcome| row.get(14) == Ok(outcome)) {
            if found.runs.len() > query.count {
                break;
            }
            found.runs.push(StoredRun { run: value::live_run(row)?, closing: Some(value::closing(row)?) });
        }
        if seen == ROWS_MAX {
            found.looked_down_to = Some(row.get(0)?);
        }
    }
    Ok(found)
}

/// The keys come from the index alone, so a schedule among many is found without looking at the others' runs.
fn closed_of_tree(
    connection: &Connection,
    query: &RunQuery,
    queues: &BTreeSet<i64>,
    outcome: Option<Outcome>,
) -> Result<Found, Fault> {
    let Some(tree) = query.tree else { return Ok(Found::default()) };
    let mut statement = connection.prepare_cached(include_str!("../../queries/runs_closed_of_tree.sql"))?;
    let keys = statement.query_map((before(query), value::count(ROWS_MAX), tree.0), |row| row.get(0))?;
    let keys: Vec<i64> = keys.collect::<Result<_, _>>()?;
    let mut found = Found::default();
    for key in &keys {
        let Some(run) = load_closed(connection, *key)? else { continue };
        let ended = run.closing.as_ref().map(|closing| closing.outcome);
        if queues.contains(&run.run.made.queue.0) && (outcome.is_none() || ended == outcome) {
            if found.runs.len() > query.count {
                return Ok(found);
            }
            found.runs.push(run);
        }
    }
    found.looked_down_to = keys.last().copied().filter(|_| keys.len() == ROWS_MAX);
    Ok(found)
}

fn is_wanted(query: &RunQuery, queues: &BTreeSet<i64>, row: &Row<'_>) -> Result<bool, Fault> {
    let (queue, tree): (i64, Option<i64>) = (row.get(1)?, row.get(2)?);
    Ok(queues.contains(&queue) && query.tree.is_none_or(|wanted| tree == Some(wanted.0)))
}
