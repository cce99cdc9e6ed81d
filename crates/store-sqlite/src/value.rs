//! How times, identities and states of runs look in columns.

use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use punctual_core::StartId;
pub(crate) use punctual_store::number::*;
use punctual_store::{
    Closing, Keeper, LiveRun, LiveState, NewRun, QueueKey, RunKey, StoreError, StoredRun, TreeKey,
};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{Row, RowIndex};

use crate::fault::Fault;

/// A time in a column: exact to the nanosecond, and a plain integer for every time near ours.
///
/// Integers sort before blobs, so times after 2262 still sort after all others. Times before 1677 would sort there too;
/// nothing is scheduled then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) Timestamp);

impl ToSql for Time {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Owned(self.value()))
    }
}

impl Time {
    pub(crate) fn value(self) -> Value {
        let nanos = self.0.as_nanosecond();
        match i64::try_from(nanos) {
            Ok(nanos) => Value::Integer(nanos),
            // The offset makes bytes sort as the numbers do.
            Err(_) => Value::Blob((nanos as u128 ^ 1 << 127).to_be_bytes().to_vec()),
        }
    }
}

impl FromSql for Time {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Time> {
        let nanos = match value {
            ValueRef::Integer(nanos) => i128::from(nanos),
            ValueRef::Blob(bytes) => {
                let bytes: [u8; 16] = bytes.try_into().map_err(|_| FromSqlError::InvalidType)?;
                (u128::from_be_bytes(bytes) ^ 1 << 127) as i128
            }
            ValueRef::Null | ValueRef::Real(_) | ValueRef::Text(_) => return Err(FromSqlError::InvalidType),
        };
        Timestamp::from_nanosecond(nanos).map(Time).map_err(FromSqlError::other)
    }
}

/// A time that columns are compared with: one before all times that are kept as integers is before them all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound(pub(crate) Timestamp);

impl ToSql for Bound {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let earliest = Timestamp::from_nanosecond(i64::MIN.into()).unwrap_or(Timestamp::MIN);
        Ok(ToSqlOutput::Owned(Time(self.0.max(earliest)).value()))
    }
}

/// A number that columns hold as it is in a signed one.
pub(crate) fn count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A run from the columns that live and closed runs share, in the order of the queries.
pub(crate) fn live_run(row: &Row<'_>) -> Result<LiveRun, Fault> {
    let run = RunKey(row.get(0)?);
    let odd = |what: &str| Fault::from(StoreError::corrupted(format!("run {run}"), what));
    let tree: Option<i64> = row.get(2)?;
    let origin = match tree {
        None => None,
        Some(tree) => {
            let origin = origin(row.get::<_, i64>(4)? as u64);
            Some((TreeKey(tree), StartId { nominal_ms: row.get(3)?, origin }))
        }
    };
    let made = NewRun {
        run,
        queue: QueueKey(row.get(1)?),
        origin,
        due_time: time(row, 8)?,
        created_at: time(row, 9)?,
        priority: row.get(14)?,
        key: key(row, 15)?,
        dedup: row.get(16)?,
        not_before: optional_time(row, 17)?,
        body: row.get(13)?,
    };
    let state = match row.get(5)? {
        READY => LiveState::Ready,
        BACKING_OFF => LiveState::BackingOff { not_before: time(row, 10)? },
        RUNNING => LiveState::Running { worker: row.get(11)?, started_at: time(row, 10)? },
        _ => return Err(odd("its state is unknown")),
    };
    let stop = stop(row.get(7)?).ok_or_else(|| odd("its stop is unknown"))?;
    Ok(LiveRun { made, attempt: row.get(6)?, state, stop, failure: row.get(12)?, keeper: Keeper::default() })
}

/// The key of a run. Most have none, and share it.
fn key(row: &Row<'_>, column: usize) -> rusqlite::Result<Arc<str>> {
    static NO_KEY: LazyLock<Arc<str>> = LazyLock::new(|| "".into());
    match row.get_ref(column)? {
        ValueRef::Text([]) => Ok(NO_KEY.clone()),
        _ => row.get(column),
    }
}

/// The column of a closed run's outcome.
pub(crate) const OUTCOME: usize = 18;

/// A closed run; its end is in the columns after those of a live one.
pub(crate) fn closed_run(row: &Row<'_>) -> Result<StoredRun, Fault> {
    let run = live_run(row)?;
    let outcome = outcome(row.get(OUTCOME)?)
        .ok_or_else(|| StoreError::corrupted(format!("run {}", run.made.run), "its outcome is unknown"))?;
    let closing = Closing { outcome, closed_at: time(row, 19)?, payload: row.get(20)? };
    Ok(StoredRun { run, closing: Some(closing), is_dead_letter: row.get(21)? })
}

/// A time of a row.
pub(crate) fn time(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Timestamp> {
    row.get(column).map(|Time(time)| time)
}

/// A time of a row, if there is one.
pub(crate) fn optional_time(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<Time>>(column)?.map(|Time(time)| time))
}
