//! What became of occurrences.

use jiff::Timestamp;
use punctual_core::Entry;
use punctual_store::record::verdict_of;
use punctual_store::{StoreError, TreeKey};
use rusqlite::{Connection, Row};

use crate::fault::Fault;
use crate::value::{self, Bound};

/// Entries of a schedule that touch a range, ascending.
pub(crate) fn ledger(
    connection: &Connection,
    tree: TreeKey,
    (after, through): (Timestamp, Timestamp),
    count: usize,
) -> Result<Vec<Entry>, Fault> {
    let mut statement = connection.prepare_cached(include_str!("../../queries/ledger.sql"))?;
    let mut rows = statement.query((tree.0, Bound(after), Bound(through), value::count(count)))?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(entry(tree, row)?);
    }
    Ok(entries)
}

fn entry(tree: TreeKey, row: &Row<'_>) -> Result<Entry, Fault> {
    let verdict = verdict_of(row.get(5)?).ok_or_else(|| {
        StoreError::corrupted(format!("the ledger of schedule {tree}"), "a verdict is unknown")
    })?;
    Ok(Entry {
        from: value::time(row, 0)?,
        through: value::time(row, 1)?,
        origin: value::origin(value::unsorted(row.get(2)?)),
        count: row.get::<_, i64>(3)? as u64,
        at_least: row.get(4)?,
        verdict,
        decided_at: value::time(row, 6)?,
    })
}
