//! History by day: each day of closed runs and verdicts is a table of its own, so what is old goes at once and leaves no
//! dead rows behind, even while somebody holds a snapshot open.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::fault::Fault;
use crate::roster;
use crate::session::Session;
use crate::value::time;

/// Days for which tables are made ahead.
const AHEAD: i64 = 2;

/// Days in the past for which tables are made when rows are brought in: what is usually kept. Older rows go one by one.
const BEHIND: i64 = 32;

/// Nanoseconds of a day.
const DAY: i64 = 86_400 * 1_000_000_000;

/// Tables that are kept by day.
const TABLES: [&str; 2] = ["run_closed", "ledger"];

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

/// Removes whole days that are over before a time; says how many rows went.
pub(crate) async fn remove(session: &Session, table: &str, before: Timestamp) -> Result<u64, Fault> {
    let sql = "SELECT child.relname::text FROM pg_inherits
        JOIN pg_class AS child ON child.oid = inhrelid JOIN pg_class AS parent ON parent.oid = inhparent
        JOIN pg_namespace AS space ON space.oid = parent.relnamespace
        WHERE space.nspname = 'punctual' AND parent.relname = $1";
    let mut removed = 0;
    for row in session.query(sql, &[&table]).await? {
        let child: &str = row.get(0);
        let Some(day) = day_of(table, child) else { continue };
        if (day + 1).saturating_mul(DAY) > time(before) {
            continue;
        }
        let count = session.count(&format!("SELECT count(*) FROM punctual.{child}")).await?;
        match quickly(session, &format!("DROP TABLE punctual.{child}")).await {
            Ok(()) => removed += count.max(1),
            Err(fault) if fault.is_connection_lost() => return Err(fault),
            Err(fault) => {
                tracing::debug!(table = child, reason = %fault.answer(), "a day of history has to wait");
            }
        }
    }
    Ok(removed)
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
