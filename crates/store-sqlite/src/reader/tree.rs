//! Schedules by key and name, their timers, and lists of them.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::ScheduleKey;
use punctual_store::{
    Lifespan, Page, ScheduleQuery, Sequence, ShardId, StoreError, StoredTree, TreeKey, TreeRef,
};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::fault::Fault;
use crate::value;

/// Names that one page looks at, so that a filter that finds little does not take long.
const NAMES_MAX: usize = 20_000;

/// Schedules in the order asked for.
pub(crate) fn load(connection: &Connection, trees: &[TreeRef]) -> Result<Vec<Option<StoredTree>>, Fault> {
    trees.iter().map(|tree| load_one(connection, tree)).collect()
}

fn load_one(connection: &Connection, tree: &TreeRef) -> Result<Option<StoredTree>, Fault> {
    let key = match tree {
        TreeRef::Key(key) => Some(key.0),
        TreeRef::Name(ScheduleKey { namespace, schedule }) => connection
            .prepare_cached(include_str!("../../queries/load_by_name.sql"))?
            .query_row((&namespace[..], &schedule[..]), |row| row.get(0))
            .optional()?,
    };
    let Some(key) = key else { return Ok(None) };
    let mut statement = connection.prepare_cached(include_str!("../../queries/load_by_key.sql"))?;
    Ok(statement.query_row([key], stored_tree).optional()?)
}

fn stored_tree(row: &Row<'_>) -> rusqlite::Result<StoredTree> {
    Ok(StoredTree {
        tree: TreeKey(row.get(0)?),
        shard: ShardId(row.get(1)?),
        key: ScheduleKey { namespace: row.get(2)?, schedule: row.get(3)? },
        sequence: Sequence(row.get::<_, i64>(4)? as u64),
        due_time: value::optional_time(row, 5)?,
        definition: row.get(6)?,
        state: row.get(7)?,
        completion: row.get(8)?,
    })
}

/// When the schedules of a shard want to be woken.
pub(crate) fn timers(
    connection: &Connection,
    shard: ShardId,
    after: Option<TreeKey>,
    count: usize,
) -> Result<Vec<(TreeKey, Option<Timestamp>)>, Fault> {
    let Some(first) = after.map_or(Some(i64::MIN), |after| after.0.checked_add(1)) else {
        return Ok(Vec::new());
    };
    let mut statement = connection.prepare_cached(include_str!("../../queries/timers.sql"))?;
    let rows = statement.query_map((shard.0, first, value::count(count)), |row| {
        Ok((TreeKey(row.get(0)?), value::optional_time(row, 1)?))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// One page of schedules.
pub(crate) fn schedules(connection: &Connection, query: &ScheduleQuery) -> Result<Page<StoredTree>, Fault> {
    let mut items = Vec::new();
    let mut last: Option<Arc<str>> = None;
    let mut more = false;
    let looked_at = walk_names(connection, query, NAMES_MAX, |id, tree| {
        if items.len() == query.count {
            more = true;
            return Ok(false);
        }
        let found = load_one(connection, &TreeRef::Key(TreeKey(tree)))?;
        let found =
            found.ok_or_else(|| StoreError::corrupted(format!("schedule {id}"), "its rows are missing"))?;
        last = Some(found.key.schedule.clone());
        items.push(found);
        Ok(true)
    })?;
    // A page that ended early goes on where it stopped looking, even if it found nothing.
    let next = if more { last } else { looked_at };
    Ok(Page { items, next })
}

/// How many schedules a query finds in all.
pub(crate) fn count_schedules(connection: &Connection, query: &ScheduleQuery) -> Result<u64, Fault> {
    let mut count = 0;
    let query = ScheduleQuery { after: None, ..query.clone() };
    walk_names(connection, &query, usize::MAX, |_, _| {
        count += 1;
        Ok(true)
    })?;
    Ok(count)
}

/// Shows each wanted name, until told to stop. Gives back the last name looked at if there was no time for the rest.
fn walk_names(
    connection: &Connection,
    query: &ScheduleQuery,
    names_max: usize,
    mut visit: impl FnMut(&str, i64) -> Result<bool, Fault>,
) -> Result<Option<Arc<str>>, Fault> {
    let after = query.after.as_deref().filter(|after| *after >= &*query.prefix);
    let first = after.unwrap_or(&query.prefix);
    let mut statement = connection.prepare_cached(include_str!("../../queries/schedules.sql"))?;
    let mut rows = statement.query((&query.namespace[..], first, -1))?;
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        let id = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
        if !id.starts_with(&*query.prefix) {
            break;
        }
        if after.is_some_and(|after| id == after) {
            continue;
        }
        seen += 1;
        if is_wanted(query, row)? && !visit(id, row.get(1)?)? {
            break;
        }
        if seen == names_max {
            return Ok(Some(id.into()));
        }
    }
    Ok(None)
}

fn is_wanted(query: &ScheduleQuery, row: &Row<'_>) -> Result<bool, Fault> {
    let number: i64 = row.get(2)?;
    let lifespan = value::lifespan(number).ok_or_else(|| {
        StoreError::corrupted("a schedule's name", format!("{number} is no part of a life"))
    })?;
    let in_life = match query.lifespan {
        Some(wanted) => lifespan == wanted,
        None => lifespan != Lifespan::Deleted,
    };
    let (paused, queue): (bool, Option<i64>) = (row.get(3)?, row.get(4)?);
    Ok(in_life
        && query.paused.is_none_or(|wanted| paused == wanted)
        && query.queue.is_none_or(|wanted| queue == Some(wanted.0)))
}
