//! History by day: each day of closed runs and verdicts is a table of its own, so what is old goes at once and leaves no
//! dead rows behind, even while somebody holds a snapshot open.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use crate::fault::Fault;
use crate::roster;
use crate::session::Session;
use crate::value::time;

/// Days for which tables are made ahead.
const AHEAD: i64 = 2;

/// Days in the past for which tables are made when rows are brought in: what is usually kept. Older rows go one by one.
const BEHIND: i64 = 32;

/// For so long details are deleted before others may have the connection.
const DETAILS_TIME_MAX: Duration = Duration::from_millis(500);

/// Nanoseconds of a day.
const DAY: i64 = 86_400 * 1_000_000_000;

/// Closed runs; some have details.
const RUNS: &str = "run_closed";

/// Tables that are kept by day.
const TABLES: [&str; 2] = [RUNS, "ledger"];

/// Makes the tables of today and of the next days. Other nodes may do the same.
pub(crate) async fn provide(session: &Session) -> Result<(), Fault> {
    let today = time(roster::now(session).await?).div_euclid(DAY);
    for table in TABLES {
        for day in today..=today + AHEAD {
            provide_day(session, table, day).await?;
        }
    }
    Ok(())
}

/// Makes the tables of days in the past that rows are about to be written for; nothing for times that are too long ago, or
/// for tables that are not kept by day. `provided` remembers what was done before.
pub(crate) async fn provide_past(
    session: &Session,
    table: &str,
    times: impl IntoIterator<Item = i64>,
    provided: &mut BTreeSet<i64>,
) -> Result<(), Fault> {
    let days: BTreeSet<i64> = times.into_iter().map(|time| time.div_euclid(DAY)).collect();
    let missing: Vec<i64> = days.difference(provided).copied().collect();
    let Some(table) = TABLES.iter().find(|kept| **kept == table).filter(|_| !missing.is_empty()) else {
        return Ok(());
    };
    let today = time(roster::now(session).await?).div_euclid(DAY);
    for day in missing {
        if (today - BEHIND..=today).contains(&day) {
            provide_day(session, table, day).await?;
        }
        provided.insert(day);
    }
    Ok(())
}

async fn provide_day(session: &Session, table: &str, day: i64) -> Result<(), Fault> {
    let (name, from, to) = (name(table, day), day * DAY, (day + 1) * DAY);
    let exists = session.find("SELECT to_regclass($1) IS NOT NULL", &[&format!("punctual.{name}")]).await?;
    if exists.is_some_and(|row| row.get(0)) {
        return Ok(());
    }
    let sql = format!(
        "CREATE TABLE IF NOT EXISTS punctual.{name} PARTITION OF punctual.{table} FOR VALUES FROM ({from}) TO ({to})"
    );
    if let Err(fault) = quickly(session, &sql).await {
        if fault.is_connection_lost() {
            return Err(fault);
        }
        // Another node is faster, or rows of that day are in the last table already: there they stay.
        tracing::debug!(table = name, reason = %fault.answer(), "a day of history has no table of its own");
    }
    Ok(())
}

/// Removes whole days that are over before a time, with the details of their runs; says how many rows went, more or less. Where
/// there are many details they go some at a time, and their day when none is left.
pub(crate) async fn remove(
    session: &Session,
    table: &str,
    before: Timestamp,
    rows_max: usize,
) -> Result<u64, Fault> {
    // Nobody counts the rows of a day: that may take longer than any statement may.
    let sql = "SELECT child.relname::text, greatest(child.reltuples, 1)::bigint FROM pg_inherits
        JOIN pg_class AS child ON child.oid = inhrelid JOIN pg_class AS parent ON parent.oid = inhparent
        JOIN pg_namespace AS space ON space.oid = parent.relnamespace
        WHERE space.nspname = 'punctual' AND parent.relname = $1 ORDER BY 1";
    let mut removed = 0;
    for row in session.query(sql, &[&table]).await? {
        let (child, rows): (&str, i64) = (row.get(0), row.get(1));
        let Some(day) = day_of(table, child) else { continue };
        if (day + 1).saturating_mul(DAY) > time(before) {
            continue;
        }
        let gone = match table {
            RUNS => remove_runs(session, child, rows, rows_max).await,
            _ => drop_day(session, child).await.map(|()| rows as u64),
        };
        match gone {
            Ok(gone) => removed += gone,
            Err(fault) if fault.is_connection_lost() => return Err(fault),
            Err(fault) => {
                tracing::debug!(table = child, reason = %fault.answer(), "a day of history has to wait");
            }
        }
    }
    Ok(removed)
}

/// Details of a day's runs, or the day if there are none left.
async fn remove_runs(session: &Session, child: &str, rows: i64, rows_max: usize) -> Result<u64, Fault> {
    let (begun, mut removed, mut after) = (Instant::now(), 0, i64::MIN);
    while begun.elapsed() < DETAILS_TIME_MAX {
        // Only details of runs with such keys are looked at: usually there are few. Each look begins where the last one ended,
        // not at what was deleted since, which stays while somebody holds a snapshot open.
        let sql = format!(
            "WITH old AS (SELECT run FROM punctual.run_detail AS detail WHERE run > {after}
                    AND run BETWEEN (SELECT min(run) FROM punctual.{child}) AND (SELECT max(run) FROM punctual.{child})
                    AND EXISTS (SELECT FROM punctual.{child} AS closed WHERE closed.run = detail.run)
                    ORDER BY run LIMIT {rows_max}),
                gone AS (DELETE FROM punctual.run_detail WHERE run = ANY(ARRAY(SELECT run FROM old)) RETURNING run)
            SELECT count(*), max(run) FROM gone"
        );
        let row = session.row(&sql).await?;
        let (count, last): (i64, Option<i64>) = (row.get(0), row.get(1));
        let Some(last) = last else {
            if removed == 0 {
                drop_day(session, child).await?;
                removed = rows as u64;
            }
            break;
        };
        (removed, after) = (removed + count as u64, last);
    }
    Ok(removed)
}

async fn drop_day(session: &Session, child: &str) -> Result<(), Fault> {
    quickly(session, &format!("DROP TABLE punctual.{child}")).await
}

/// Changes tables, unless somebody uses them for long: whoever waits for such a lock makes all others wait behind it. There
/// is another time.
async fn quickly(session: &Session, sql: &str) -> Result<(), Fault> {
    session
        .transact(async {
            session.run("SET LOCAL lock_timeout = 200").await?;
            session.run(sql).await
        })
        .await
}

/// The time after which a day is kept at most, besides how long it should be.
pub(crate) fn slack() -> SignedDuration {
    SignedDuration::from_nanos(DAY)
}

/// Names carry the date, for people.
fn name(table: &str, day: i64) -> String {
    let date = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(day * 86_400);
    format!("{table}_{}", date.strftime("%Y%m%d"))
}

fn day_of(table: &str, child: &str) -> Option<i64> {
    let date: jiff::civil::Date =
        jiff::civil::Date::strptime("%Y%m%d", child.strip_prefix(table)?.strip_prefix('_')?).ok()?;
    let start = date.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    Some(start.as_second().div_euclid(86_400))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_names() {
        assert_eq!(name("run_closed", 0), "run_closed_19700101");
        assert_eq!(day_of("run_closed", &name("run_closed", 20_000)), Some(20_000));
        assert_eq!(day_of("run_closed", "run_closed_rest"), None);
        assert_eq!(day_of("ledger", "run_closed_19700101"), None);
    }
}
