//! Lists of runs, the latest first: live and closed ones are kept apart, and merged here.

use std::collections::BTreeSet;

use punctual_core::Outcome;
use punctual_store::{Page, QueueKey, RunFilter, RunQuery, StoredRun};
use rusqlite::{Connection, Row};

use super::run::{load_closed, load_run};
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
        Some(RunFilter::Closed(_) | RunFilter::DeadLetter) => Found::default(),
    };
    let closed = match query.filter {
        None => closed(connection, query, &queues, None)?,
        Some(RunFilter::Closed(outcome)) => closed(connection, query, &queues, outcome)?,
        Some(RunFilter::DeadLetter) => dead(connection, query, &queues)?,
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
    if let Some(queue) = query.queue.filter(|_| state == Some(READY))
        && let Some(found) = few_ready(connection, query, queues, queue)?
    {
        return Ok(found);
    }
    let mut statement = connection.prepare_cached(include_str!("../../queries/runs_live.sql"))?;
    let mut rows = statement.query((before(query), value::count(ROWS_MAX)))?;
    let mut found = Found::default();
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        seen += 1;
        if is_wanted(query, queues, row)? && state.is_none_or(|state| row.get(5) == Ok(state)) {
            if found.runs.len() > query.count {
                break;
            }
            found.runs.push(StoredRun { run: value::live_run(row)?, closing: None, is_dead_letter: false });
        }
        if seen == ROWS_MAX {
            found.looked_down_to = Some(row.get(0)?);
        }
    }
    Ok(found)
}

/// The ready runs of a queue that has few of them: they are indexed by rank, so these few are read and sorted.
fn few_ready(
    connection: &Connection,
    query: &RunQuery,
    queues: &BTreeSet<i64>,
    queue: QueueKey,
) -> Result<Option<Found>, Fault> {
    let mut statement = connection.prepare_cached(include_str!("../../queries/runs_ready.sql"))?;
    let keys = statement.query_map((queue.0, value::count(ROWS_MAX)), |row| row.get(0))?;
    let keys: Vec<i64> = keys.collect::<Result<_, _>>()?;
    if keys.len() == ROWS_MAX {
        return Ok(None);
    }
    let keys = keys.into_iter().filter(|run| *run < before(query)).collect();
    load(connection, query, queues, keys).map(Some)
}

/// The dead letters of some queues: those of each queue are found by an index.
fn dead(connection: &Connection, query: &RunQuery, queues: &BTreeSet<i64>) -> Result<Found, Fault> {
    // One more than the page holds is enough to know that there is another one, unless a schedule's are wanted.
    let rows_max = if query.tree.is_some() { ROWS_MAX / queues.len().max(1) } else { 0 };
    let rows_max = rows_max.max(query.count.saturating_add(1));
    let mut statement = connection.prepare_cached(include_str!("../../queries/runs_dead.sql"))?;
    let (mut all, mut floor) = (Vec::new(), None);
    for queue in queues {
        let keys = statement.query_map((queue, before(query), value::count(rows_max)), |row| row.get(0))?;
        let keys: Vec<i64> = keys.collect::<Result<_, _>>()?;
        floor = floor.max(keys.last().copied().filter(|_| keys.len() == rows_max));
        all.extend(keys);
    }
    all.retain(|run| floor.is_none_or(|floor| *run >= floor));
    let found = load(connection, query, queues, all)?;
    Ok(Found { looked_down_to: floor, ..found })
}

/// Reads runs by key, the latest first, until there are more than the page holds.
fn load(
    connection: &Connection,
    query: &RunQuery,
    queues: &BTreeSet<i64>,
    mut keys: Vec<i64>,
) -> Result<Found, Fault> {
    keys.sort_by(|one, other| other.cmp(one));
    let mut found = Found::default();
    for key in keys {
        let Some(run) = load_run(connection, key)? else { continue };
        let tree = run.run.made.origin.map(|(tree, _)| tree);
        if queues.contains(&run.run.made.queue.0) && query.tree.is_none_or(|wanted| tree == Some(wanted)) {
            found.runs.push(run);
            if found.runs.len() > query.count {
                break;
            }
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
        if is_wanted(query, queues, row)?
            && outcome.is_none_or(|outcome| row.get(value::OUTCOME) == Ok(outcome))
        {
            if found.runs.len() > query.count {
                break;
            }
            found.runs.push(value::closed_run(row)?);
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
