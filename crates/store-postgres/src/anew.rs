//! Tables of live work that have become much larger than what lives in them are written anew, where the operator allows it.
//!
//! While somebody holds a snapshot open, PostgreSQL keeps every version of every row, since that snapshot might ask for it; no
//! vacuum helps. What lives is copied, the table is emptied, and the copy is put back, all in one transaction that nobody sees
//! half of. The price: an older snapshot that looks at the table afterwards finds it empty, as after any `TRUNCATE`. So it is
//! done only by those who have set a bound, and never while somebody else uses the table for longer than a moment.

use std::time::Duration;

use tokio::time::Instant;

use crate::fault::Fault;
use crate::options::LOOK_MAX;
use crate::pool::Pool;
use crate::session::Session;

/// What changes with each start or claim.
const TABLES: [&str; 8] =
    ["state", "run_live", "completion", "run_detail", "queue_key", "queue_start", "queue_round", "key_start"];

/// How often the sizes are looked at.
const PAUSE: Duration = Duration::from_secs(5);

/// A table is worth it if it is so many times as large as what lives in it; less, and it would soon have to be done again.
const WORTH: u64 = 4;

/// What may live in such a table: more than that is not copied while others wait.
const LIVE_MAX: u64 = 1_000_000_000;

/// How long others may have to wait for the copy.
const HELD_UP_MAX: Duration = Duration::from_secs(5);

/// How long the lock may be waited for: whoever comes meanwhile waits too.
const LOCK_MAX: Duration = Duration::from_millis(300);

/// How long a vacuum of the table is waited for, and how often it is asked for.
const VACUUM_MAX: Duration = Duration::from_secs(20);
const VACUUM_PAUSE: Duration = Duration::from_millis(200);

/// After somebody has used the table for too long, and after it turned out that it takes too long.
const SOON: Duration = Duration::from_secs(30);
const LATER: Duration = Duration::from_secs(600);

/// Held by whoever writes one anew, so that of several nodes only one does.
const LOCK: i64 = 0x0070_756e_6375;

/// What became of it.
enum Done {
    /// It is small again: how large it was, what lives in it, and how long others had to wait.
    Anew { before: u64, live: u64, held_up: Duration },
    /// What lives in it is not much less than it is, until it is so large.
    NotWorth { until: u64 },
    /// Somebody else is doing it, or uses the table.
    Busy,
}

/// Looks at the sizes now and then, for as long as the store lives.
pub(crate) async fn keep_small(pool: Pool, bytes_max: u64) {
    let mut places = [(Instant::now(), bytes_max); TABLES.len()];
    loop {
        tokio::time::sleep(PAUSE).await;
        for (table, (not_before, worth)) in TABLES.iter().zip(&mut places) {
            if *not_before > Instant::now() {
                continue;
            }
            let shrunk = shrink(&pool, table, *worth).await;
            // What lives in it may become less: what was found counts until it is outgrown, and no longer.
            *worth = match &shrunk {
                Ok(None | Some(Done::Busy)) => *worth,
                Ok(Some(Done::NotWorth { until })) => bytes_max.max(*until),
                Ok(Some(Done::Anew { .. })) | Err(_) => bytes_max,
            };
            let wait = match shrunk {
                Ok(None | Some(Done::NotWorth { .. })) => Duration::ZERO,
                Ok(Some(Done::Anew { before, live, held_up })) => {
                    let (before, live) = (before / 1_000_000, live / 1_000_000);
                    tracing::info!(
                        table,
                        before_mb = before,
                        live_mb = live,
                        held_up_ms = held_up.as_millis() as u64,
                        "a table has been written anew, since it held little but versions that somebody's snapshot keeps"
                    );
                    Duration::ZERO
                }
                Ok(Some(Done::Busy)) => SOON,
                // The database is away, and others say so.
                Err(fault) if fault.is_connection_lost() => SOON,
                Err(fault) => {
                    tracing::warn!(table, error = %fault.answer(), "a table that has grown too large could not be written anew");
                    LATER
                }
            };
            *not_before = Instant::now() + wait;
        }
    }
}

/// Writes a table anew if it is too large; nothing if it is not.
async fn shrink(pool: &Pool, table: &str, bytes_max: u64) -> Result<Option<Done>, Fault> {
    let (session, mut held) = pool.alone().await?;
    let before = size(&session, table).await?;
    if before <= bytes_max {
        return Ok(None);
    }
    session.begin().await?;
    let done = write_anew(&session, table, before).await;
    let end = if let Ok(Done::Anew { .. }) = done { "COMMIT" } else { "ROLLBACK" };
    let ended = session.run(end).await;
    if ended.is_err() {
        *held = None;
    }
    match done {
        Ok(done) => ended.map(|()| Some(done)),
        // Somebody uses the table for long, such as a report: there is another time.
        Err(fault) if fault.is_passing() => Ok(Some(Done::Busy)),
        Err(fault) => Err(fault),
    }
}

async fn write_anew(session: &Session, table: &str, before: u64) -> Result<Done, Fault> {
    let alone = format!("SELECT pg_try_advisory_xact_lock({LOCK})::integer::bigint");
    if session.count(&alone).await? == 0 {
        return Ok(Done::Busy);
    }
    // All of it is read, and not by way of an index that leads to every version. What is read here is in memory when it counts.
    let look = format!(
        "SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off;
         SET LOCAL enable_bitmapscan = off; SET LOCAL statement_timeout = {}",
        LOOK_MAX.as_millis()
    );
    session.run(&look).await?;
    let live = format!("SELECT coalesce(sum(pg_column_size(kept)), 0)::bigint FROM punctual.{table} AS kept");
    let live = session.count(&live).await?;
    let worth = live.saturating_mul(WORTH);
    if worth > before {
        return Ok(Done::NotWorth { until: worth });
    }
    if live > LIVE_MAX {
        return Ok(Done::NotWorth { until: before.saturating_mul(2) });
    }
    if !vacuum_is_over(session, table).await? {
        return Ok(Done::Busy);
    }
    session.run(&format!("SET LOCAL lock_timeout = {}", LOCK_MAX.as_millis())).await?;
    let begun = Instant::now();
    let copy = [
        format!("LOCK TABLE punctual.{table} IN ACCESS EXCLUSIVE MODE"),
        format!(
            "CREATE TEMPORARY TABLE punctual_kept (LIKE punctual.{table} INCLUDING STORAGE) ON COMMIT DROP"
        ),
        format!("INSERT INTO punctual_kept SELECT * FROM punctual.{table} ORDER BY 1"),
        format!("TRUNCATE punctual.{table}"),
        format!("INSERT INTO punctual.{table} SELECT * FROM punctual_kept"),
    ];
    for statement in copy {
        // The bound is for all of them together.
        let left = HELD_UP_MAX.saturating_sub(begun.elapsed()).as_millis().max(1);
        session.run(&format!("SET LOCAL statement_timeout = {left}")).await?;
        session.run(&statement).await?;
    }
    Ok(Done::Anew { before, live, held_up: begun.elapsed() })
}

/// A vacuum in vain holds the table, or what is too large for its pages, for seconds, again and again. It would give way to us,
/// but only after a second in which all others wait behind us.
async fn vacuum_is_over(session: &Session, table: &str) -> Result<bool, Fault> {
    let sql = format!(
        "SELECT count(*) FROM pg_locks, pg_class AS kept
         WHERE kept.oid = 'punctual.{table}'::regclass AND relation IN (kept.oid, kept.reltoastrelid)
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
         AND locktype = 'relation' AND mode = 'ShareUpdateExclusiveLock'"
    );
    let begun = Instant::now();
    while session.count(&sql).await? > 0 {
        if begun.elapsed() > VACUUM_MAX {
            return Ok(false);
        }
        tokio::time::sleep(VACUUM_PAUSE).await;
    }
    Ok(true)
}

async fn size(session: &Session, table: &str) -> Result<u64, Fault> {
    session.count(&format!("SELECT pg_total_relation_size('punctual.{table}')")).await
}
