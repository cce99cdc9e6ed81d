//! What the writer knows without asking: it is the only one that writes, so what it remembers is what is stored.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use punctual_store::{Epoch, QueueSettings, ShardId};
use rusqlite::Connection;

use super::counts::SharedCounts;
use super::queue::read_settings;
use crate::value;

/// What the writer knows. It is taken back if a transaction is.
#[derive(Clone)]
pub(crate) struct Known {
    /// The next key of a schedule, a run or a queue.
    pub(crate) next_key: i64,
    /// No run has a higher key, so a run with a higher one is new.
    pub(crate) run_max: i64,
    /// Who may drive what.
    pub(crate) leases: BTreeMap<ShardId, Held>,
    /// What is set about each queue. It is copied when it changes, which is seldom.
    pub(crate) queues: Arc<HashMap<i64, Arc<QueueSettings>>>,
    /// How many runs that have ended are kept.
    pub(crate) closed: i64,
    /// How many ledger entries are kept.
    pub(crate) ledger: i64,
    /// How much is in each queue, as everybody may see it.
    pub(crate) counts: SharedCounts,
}

/// A shard's epoch, and who holds it.
#[derive(Clone, Default)]
pub(crate) struct Held {
    pub(crate) epoch: Epoch,
    pub(crate) holder: Option<(Arc<str>, Timestamp)>,
}

/// What holds for a queue that nobody has declared.
static UNDECLARED: LazyLock<Arc<QueueSettings>> = LazyLock::new(Arc::default);

impl Known {
    /// Reads it from the file. The counts are those that everybody looks at; they are counted anew.
    pub(crate) fn read(connection: &Connection, counts: SharedCounts) -> rusqlite::Result<Known> {
        let one = |sql: &str| connection.query_row(sql, (), |row| row.get::<_, i64>(0));
        let live_max = one("SELECT coalesce(max(run), 0) FROM run_live")?;
        let closed_max = one("SELECT coalesce(max(run), 0) FROM run_closed")?;
        let queues = Arc::new(read_queues(connection)?);
        counts.count(connection, &queues)?;
        Ok(Known {
            next_key: one("SELECT value FROM meta WHERE name = 'next_key'")?,
            run_max: live_max.max(closed_max),
            leases: read_leases(connection)?,
            queues,
            closed: one("SELECT count(*) FROM run_closed")?,
            ledger: one("SELECT count(*) FROM ledger")?,
            counts,
        })
    }

    /// What is set about a queue.
    pub(crate) fn settings(&self, queue: i64) -> &Arc<QueueSettings> {
        self.queues.get(&queue).unwrap_or(&UNDECLARED)
    }
}

fn read_leases(connection: &Connection) -> rusqlite::Result<BTreeMap<ShardId, Held>> {
    let mut leases = BTreeMap::new();
    let mut rows = connection.prepare("SELECT shard, epoch, node, expires_at FROM lease")?;
    let mut rows = rows.query(())?;
    while let Some(row) = rows.next()? {
        let node: Option<Arc<str>> = row.get(2)?;
        let holder = node.zip(value::optional_time(row, 3)?);
        leases.insert(ShardId(row.get(0)?), Held { epoch: Epoch(row.get::<_, i64>(1)? as u64), holder });
    }
    Ok(leases)
}

fn read_queues(connection: &Connection) -> rusqlite::Result<HashMap<i64, Arc<QueueSettings>>> {
    let mut rows = connection.prepare("SELECT queue, settings FROM queue")?;
    let queues = rows.query_map((), |row| Ok((row.get(0)?, Arc::new(read_settings(row, 1)?))))?;
    queues.collect()
}

/// Forgets who held what: nobody else can have the file, so whoever held a lease is gone, and nobody has to wait for it.
/// The epochs stay.
pub(crate) fn forget_holders(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("UPDATE lease SET node = NULL, expires_at = NULL WHERE node IS NOT NULL", ())?;
    Ok(())
}
