//! How times, identities and states of runs look in columns.

use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use punctual_core::{Origin, Outcome, RequestKey, StartId, StopKind};
use punctual_store::{
    Closing, Keeper, Lifespan, LiveRun, LiveState, NewRun, QueueKey, RunKey, StoreError, StoredRun, TreeKey,
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
    fn value(self) -> Value {
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

/// The request of a start; no request has the key 0.
pub(crate) fn request(origin: Origin) -> u64 {
    match origin {
        Origin::Spec => 0,
        Origin::Request(key) => key.0,
    }
}

/// Who asked for a start.
pub(crate) fn origin(request: u64) -> Origin {
    match request {
        0 => Origin::Spec,
        key => Origin::Request(RequestKey(key)),
    }
}

/// An unsigned number as a signed one that sorts alike.
pub(crate) fn sorted(number: u64) -> i64 {
    (number ^ 1 << 63) as i64
}

/// The unsigned number again.
pub(crate) fn unsorted(number: i64) -> u64 {
    number as u64 ^ 1 << 63
}

const LIFESPANS: [Lifespan; 3] = [Lifespan::Open, Lifespan::Completed, Lifespan::Deleted];
const OUTCOMES: [Outcome; 5] =
    [Outcome::Succeeded, Outcome::Failed, Outcome::TimedOut, Outcome::Cancelled, Outcome::Terminated];

/// The number of a part of a schedule's life.
pub(crate) fn lifespan_number(lifespan: Lifespan) -> i64 {
    match lifespan {
        Lifespan::Open => 0,
        Lifespan::Completed => 1,
        Lifespan::Deleted => 2,
    }
}

/// The part of a schedule's life of a number.
pub(crate) fn lifespan(number: i64) -> Option<Lifespan> {
    LIFESPANS.get(usize::try_from(number).ok()?).copied()
}

/// The number of an outcome.
pub(crate) fn outcome_number(outcome: Outcome) -> i64 {
    match outcome {
        Outcome::Succeeded => 0,
        Outcome::Failed => 1,
        Outcome::TimedOut => 2,
        Outcome::Cancelled => 3,
        Outcome::Terminated => 4,
    }
}

/// The outcome of a number.
pub(crate) fn outcome(number: i64) -> Option<Outcome> {
    OUTCOMES.get(usize::try_from(number).ok()?).copied()
}

/// The number of a request to stop; none is 0, and harder is more.
pub(crate) fn stop_number(kind: StopKind) -> i64 {
    match kind {
        StopKind::Cancel => 1,
        StopKind::Terminate => 2,
    }
}

/// Where a live run is, as its column says.
pub(crate) const READY: i64 = 0;
/// It will be tried again later.
pub(crate) const BACKING_OFF: i64 = 1;
/// A worker has it.
pub(crate) const RUNNING: i64 = 2;

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
    let stop = match row.get::<_, i64>(7)? {
        0 => None,
        1 => Some(StopKind::Cancel),
        2 => Some(StopKind::Terminate),
        _ => return Err(odd("its stop is unknown")),
    };
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

/// The keys of runs as bytes.
pub(crate) fn run_keys(runs: &[RunKey]) -> Vec<u8> {
    runs.iter().flat_map(|run| run.0.to_le_bytes()).collect()
}

/// The keys of runs again.
pub(crate) fn runs_of(bytes: &[u8]) -> Vec<RunKey> {
    bytes.as_chunks().0.iter().map(|bytes| RunKey(i64::from_le_bytes(*bytes))).collect()
}

/// A time of a row.
pub(crate) fn time(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Timestamp> {
    row.get(column).map(|Time(time)| time)
}

/// A time of a row, if there is one.
pub(crate) fn optional_time(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<Time>>(column)?.map(|Time(time)| time))
}
