//! How times and runs look in columns.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::StartId;
pub(crate) use punctual_store::number::*;
use punctual_store::{
    Bytes, Closing, Keeper, LiveRun, LiveState, NewRun, QueueKey, RunKey, StoreError, StoredRun, TreeKey,
};
use tokio_postgres::Row;

use crate::fault::Fault;

/// Times from 1823 to 2116 are nanoseconds; beyond these bounds seconds are counted on from them, so that all times fit
/// and sort. What is scheduled for other centuries is kept to the second.
const NANOS_MAX: i64 = 1 << 62;

/// Nanoseconds of a second.
const SECOND: i128 = 1_000_000_000;

/// A time in a column.
pub(crate) fn time(time: Timestamp) -> i64 {
    let (nanos, most) = (time.as_nanosecond(), i128::from(NANOS_MAX));
    let kept = match nanos {
        _ if time == Timestamp::MAX => i64::MAX.into(),
        _ if time == Timestamp::MIN => i64::MIN.into(),
        _ if nanos > most => most + (nanos - most).div_euclid(SECOND) + 1,
        _ if nanos < -most => -most + (nanos + most).div_euclid(SECOND) - 1,
        _ => nanos,
    };
    i64::try_from(kept).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

/// The time of a column.
pub(crate) fn at(kept: i64) -> Timestamp {
    let (wide, most) = (i128::from(kept), i128::from(NANOS_MAX));
    let whole_seconds = |nanos: i128| nanos.div_euclid(SECOND) * SECOND;
    let nanos = match kept {
        i64::MAX => return Timestamp::MAX,
        i64::MIN => return Timestamp::MIN,
        _ if wide > most => whole_seconds(most + (wide - most) * SECOND),
        _ if wide < -most => whole_seconds(-most + (wide + most + 2) * SECOND),
        _ => wide,
    };
    Timestamp::from_nanosecond(nanos).unwrap_or(if kept < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

/// A number that columns hold as it is in a signed one.
pub(crate) fn count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Bytes of a row.
pub(crate) fn bytes(row: &Row, column: usize) -> Bytes {
    row.get::<_, &[u8]>(column).into()
}

/// Bytes of a row, if there are any.
pub(crate) fn optional_bytes(row: &Row, column: usize) -> Option<Bytes> {
    row.get::<_, Option<&[u8]>>(column).map(Bytes::from)
}

/// A text that is kept as bytes, since PostgreSQL's texts cannot hold every one.
pub(crate) fn text(bytes: &[u8]) -> Arc<str> {
    String::from_utf8_lossy(bytes).into()
}

/// The columns of a run that live and closed ones share, in the order of [`live_run`].
macro_rules! run_columns {
    () => {
        "run, queue, tree, nominal_ms, request, due_time, created_at, since, not_before, keeper, attempt, state, stop, \
         priority, worker, key, dedup, failure, body"
    };
}
pub(crate) use run_columns;

/// The first column after those that live and closed runs share.
pub(crate) const OUTCOME: usize = 19;

/// A run from the columns that live and closed runs share.
pub(crate) fn live_run(row: &Row) -> Result<LiveRun, Fault> {
    let run = RunKey(row.get(0));
    let odd = |what: &str| Fault::from(StoreError::corrupted(format!("run {run}"), what));
    let tree: Option<i64> = row.get(2);
    let origin = tree.map(|tree| {
        let origin = origin(row.get::<_, Option<i64>>(4).unwrap_or(0) as u64);
        (TreeKey(tree), StartId { nominal_ms: row.get::<_, Option<i64>>(3).unwrap_or(0), origin })
    });
    let since: Option<i64> = row.get(7);
    let since = || since.map(at).ok_or_else(|| odd("its time is missing"));
    let state = match i64::from(row.get::<_, i16>(11)) {
        READY => LiveState::Ready,
        BACKING_OFF => LiveState::BackingOff { not_before: since()? },
        RUNNING => {
            let worker: Option<&str> = row.get(14);
            LiveState::Running { worker: worker.unwrap_or_default().into(), started_at: since()? }
        }
        _ => return Err(odd("its state is unknown")),
    };
    let made = NewRun {
        run,
        queue: QueueKey(row.get(1)),
        origin,
        due_time: at(row.get(5)),
        created_at: at(row.get(6)),
        priority: row.get(13),
        key: text(row.get(15)),
        dedup: row.get::<_, Option<&[u8]>>(16).map(text),
        not_before: row.get::<_, Option<i64>>(8).map(at),
        body: bytes(row, 18),
    };
    Ok(LiveRun {
        made,
        attempt: row.get::<_, i32>(10) as u32,
        state,
        stop: stop(row.get::<_, i16>(12).into()).ok_or_else(|| odd("its stop is unknown"))?,
        failure: optional_bytes(row, 17),
        keeper: Keeper(row.get(9)),
    })
}

/// A closed run; its end is in the columns after those of a live one: outcome, closed_at, dead, payload.
pub(crate) fn closed_run(row: &Row) -> Result<StoredRun, Fault> {
    let run = live_run(row)?;
    let odd = || StoreError::corrupted(format!("run {}", run.made.run), "its outcome is unknown");
    let outcome = outcome(row.get::<_, i16>(OUTCOME).into()).ok_or_else(odd)?;
    let closed_at = at(row.get(OUTCOME + 1));
    let closing = Closing { outcome, closed_at, payload: optional_bytes(row, OUTCOME + 3) };
    Ok(StoredRun { run, closing: Some(closing), is_dead_letter: row.get(OUTCOME + 2) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back_and_sort() {
        let mut last = i64::MIN;
        let texts = [
            "-009998-12-31T23:00:00Z",
            "0001-01-01T00:00:00Z",
            "1800-06-01T12:00:01Z",
            "1823-11-13T00:00:00.000000001Z",
            "1970-01-01T00:00:00Z",
            "2026-11-15T12:00:00.123456789Z",
            "2116-01-01T00:00:00.5Z",
            "2116-06-01T00:00:07Z",
            "2262-04-12T00:00:00Z",
            "3000-01-01T00:00:01Z",
            "9998-12-31T23:59:59Z",
        ];
        for text in texts {
            let instant: Timestamp = text.parse().expect("a time");
            assert_eq!(at(time(instant)), instant, "{text}");
            assert!(time(instant) > last, "{text} comes after the one before");
            last = time(instant);
        }
        assert_eq!([at(time(Timestamp::MIN)), at(time(Timestamp::MAX))], [Timestamp::MIN, Timestamp::MAX]);
    }
}
