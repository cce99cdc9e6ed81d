//! A look at the file for operators: is it whole, how large is it, and does what is counted agree with what is stored.

mod keys;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use punctual_store::{QueueSettings, Reply, RunKey, StoreError, TreeKey};
use rusqlite::Connection;

use crate::fault::Fault;
use crate::writer::{Counts, SharedCounts};
use crate::{Sqlite, reader};

/// Lists of an inspection have at most this many items.
const ITEMS_MAX: usize = 100;

/// Looks for a moment between two commits, a millisecond apart, before it gives up.
const LOOKS_MAX: usize = 5_000;

/// What an inspection found. Lists are cut after some items; a file that is fine has none in `faults`, `mismatches` and
/// `orphans`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// What SQLite's quick check says is wrong with the file.
    pub faults: Vec<String>,
    /// The size of a page.
    pub page_bytes: u64,
    /// Pages in use or free.
    pub pages: u64,
    /// Pages that will be used again before the file grows.
    pub free_pages: u64,
    /// The size of the file.
    pub file_bytes: u64,
    /// The size of the write-ahead log.
    pub log_bytes: u64,
    /// Schedules that are stored, also deleted ones that are not retired yet.
    pub schedules: u64,
    /// Live runs that may be claimed.
    pub ready: u64,
    /// Live runs that wait for a time.
    pub backing_off: u64,
    /// Live runs that workers have.
    pub running: u64,
    /// Runs that have ended.
    pub closed: u64,
    /// Runs that ended badly, and nobody has dealt with them.
    pub dead_letters: u64,
    /// Ledger entries.
    pub ledger: u64,
    /// Requests that are remembered.
    pub requests: u64,
    /// Where counts differ from rows: depths of queues, runs of workers, keys.
    pub mismatches: Vec<String>,
    /// Live runs whose schedule is gone.
    pub orphans: Vec<RunKey>,
    /// Schedules that are open and not paused, but want to be woken at no time; the engine knows whether that is right.
    pub without_timer: Vec<TreeKey>,
}

impl Sqlite {
    /// Looks at everything, at one moment. It reads the whole file, on a thread of its own; nobody waits for it.
    pub fn inspect(&self) -> Reply<'_, Inspection> {
        let counts = self.counts.clone();
        self.aside.work(move |connection, path| {
            let counted = pin(connection, &counts)?;
            inspect(connection, path, &counted).map_err(|fault| fault.answer())
        })
    }
}

/// Fixes what the connection sees at a moment at which the counts say the same.
fn pin(connection: &Connection, counts: &SharedCounts) -> Result<Counts, StoreError> {
    for _ in 0..LOOKS_MAX {
        let look = || -> rusqlite::Result<()> {
            connection.execute_batch("BEGIN")?;
            connection.query_row("SELECT count(*) FROM meta", (), |_| Ok(()))
        };
        if let Some((counts, begun)) = counts.at_one_moment(look) {
            begun.map_err(StoreError::unavailable)?;
            return Ok(counts);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err(StoreError::unavailable("there was no moment between two commits"))
}

fn inspect(connection: &Connection, path: &Path, counted: &Counts) -> Result<Inspection, Fault> {
    let number = |sql: &str| -> rusqlite::Result<u64> {
        connection.query_row(sql, (), |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
    };
    let list = |sql: &str| -> rusqlite::Result<Vec<i64>> {
        connection.prepare(sql)?.query_map([ITEMS_MAX as i64], |row| row.get(0))?.collect()
    };
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    let queues: HashMap<i64, Arc<QueueSettings>> = reader::queues(connection, None)?
        .into_iter()
        .map(|queue| (queue.queue.0, Arc::new(queue.made.settings)))
        .collect();
    let stored = Counts::read(connection, &queues)?;
    let mut mismatches = compare(counted, &stored);
    mismatches.extend(keys::mismatches(connection, &queues)?);
    mismatches.truncate(ITEMS_MAX);
    let of_state = |place: usize| {
        let queues: BTreeSet<i64> = stored.queues().collect();
        queues.into_iter().map(|queue| stored.depth(queue)[place]).sum::<i64>().unsigned_abs()
    };
    Ok(Inspection {
        faults: faults(connection)?,
        page_bytes: number("PRAGMA page_size")?,
        pages: number("PRAGMA page_count")?,
        free_pages: number("PRAGMA freelist_count")?,
        file_bytes: size(path),
        log_bytes: size(Path::new(&log)),
        schedules: number("SELECT count(*) FROM schedule")?,
        ready: of_state(0),
        backing_off: of_state(1),
        running: of_state(2),
        closed: number("SELECT count(*) FROM run_closed")?,
        dead_letters: number("SELECT count(*) FROM run_closed WHERE dead = 1")?,
        ledger: number("SELECT count(*) FROM ledger")?,
        requests: number("SELECT count(*) FROM request")?,
        mismatches,
        orphans: list(include_str!("../queries/inspect_orphans.sql"))?.into_iter().map(RunKey).collect(),
        without_timer: list(include_str!("../queries/inspect_without_timer.sql"))?
            .into_iter()
            .map(TreeKey)
            .collect(),
    })
}

fn faults(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut check = connection.prepare(&format!("PRAGMA quick_check({ITEMS_MAX})"))?;
    let said: Vec<String> = check.query_map((), |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(said.into_iter().filter(|line| line != "ok").collect())
}

/// Where the counts of the writer differ from what the rows say.
fn compare(counted: &Counts, stored: &Counts) -> Vec<String> {
    let mut mismatches = Vec::new();
    let queues: BTreeSet<i64> = counted.queues().chain(stored.queues()).collect();
    for queue in queues {
        let depths = (counted.depth(queue), stored.depth(queue));
        if depths.0 != depths.1 {
            mismatches.push(format!(
                "queue {queue}: {:?} ready, backing off and running are counted, {:?} are stored",
                depths.0, depths.1
            ));
        }
        let workers = (counted.workers(queue), stored.workers(queue));
        let sorted = |mut workers: Vec<(Arc<str>, i64)>| {
            workers.sort();
            workers
        };
        let (counted, stored) = (sorted(workers.0), sorted(workers.1));
        if counted != stored {
            mismatches.push(format!("queue {queue}: workers have {counted:?} by count, {stored:?} by row"));
        }
    }
    mismatches
}
