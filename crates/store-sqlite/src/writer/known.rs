//! What the writer knows without asking: it is the only one that writes, so what it remembers is what is stored.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use punctual_store::{Epoch, QueueDepth, QueueKey, ShardId};
use rusqlite::Connection;

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
    /// How much is in each queue, as everybody may see it.
    pub(crate) depths: SharedDepths,
}

/// A shard's epoch, and who holds it.
#[derive(Clone, Default)]
pub(crate) struct Held {
    pub(crate) epoch: Epoch,
    pub(crate) holder: Option<(Arc<str>, Timestamp)>,
}

impl Known {
    /// Reads it from the file. The depths are those that everybody looks at; they are counted anew.
    pub(crate) fn read(connection: &Connection, depths: SharedDepths) -> rusqlite::Result<Known> {
        let one = |sql: &str| connection.query_row(sql, (), |row| row.get::<_, i64>(0));
        let next_key = one("SELECT value FROM meta WHERE name = 'next_key'")?;
        let live_max = one("SELECT coalesce(max(run), 0) FROM run_live")?;
        let closed_max = one("SELECT coalesce(max(run), 0) FROM run_closed")?;
        let mut leases = BTreeMap::new();
        let mut rows = connection.prepare("SELECT shard, epoch, node, expires_at FROM lease")?;
        let mut rows = rows.query(())?;
        while let Some(row) = rows.next()? {
            let node: Option<Arc<str>> = row.get(2)?;
            let holder = node.zip(value::optional_time(row, 3)?);
            leases.insert(ShardId(row.get(0)?), Held { epoch: Epoch(row.get::<_, i64>(1)? as u64), holder });
        }
        depths.count(connection)?;
        Ok(Known { next_key, run_max: live_max.max(closed_max), leases, depths })
    }
}

/// Forgets who held what: nobody else can have the file, so whoever held a lease is gone, and nobody has to wait for it.
/// The epochs stay.
pub(crate) fn forget_holders(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("UPDATE lease SET node = NULL, expires_at = NULL WHERE node IS NOT NULL", ())?;
    Ok(())
}

/// How much is in each queue. Counting a million rows for each question would be slow, so it is counted when the file is
/// opened, and then kept.
#[derive(Clone, Default)]
pub(crate) struct SharedDepths(Arc<Mutex<HashMap<i64, [i64; 3]>>>);

impl SharedDepths {
    fn count(&self, connection: &Connection) -> rusqlite::Result<()> {
        let mut depths = Depths::default();
        let mut rows =
            connection.prepare("SELECT queue, state, count(*) FROM run_live GROUP BY queue, state")?;
        let mut rows = rows.query(())?;
        while let Some(row) = rows.next()? {
            depths.add(row.get(0)?, row.get(1)?, row.get(2)?);
        }
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = depths.0;
        Ok(())
    }

    /// Takes over changes that are durable now.
    pub(crate) fn apply(&self, changes: &mut Depths) {
        if changes.0.is_empty() {
            return;
        }
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (queue, change) in changes.0.drain() {
            let depth = shared.entry(queue).or_default();
            for (count, change) in depth.iter_mut().zip(change) {
                *count += change;
            }
        }
    }

    /// How much is in a queue.
    pub(crate) fn of(&self, queue: QueueKey) -> QueueDepth {
        let shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [ready, backing_off, running] = shared.get(&queue.0).copied().unwrap_or_default();
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        QueueDepth { ready: count(ready), backing_off: count(backing_off), running: count(running) }
    }
}

/// Changes of queues in the current transaction: ready, backing off, running.
#[derive(Default)]
pub(crate) struct Depths(HashMap<i64, [i64; 3]>);

impl Depths {
    /// So many runs more, or fewer, in a state.
    pub(crate) fn add(&mut self, queue: i64, state: i64, change: i64) {
        let place = match state {
            value::READY => 0,
            value::BACKING_OFF => 1,
            _ => 2,
        };
        self.0.entry(queue).or_default()[place] += change;
    }
}
