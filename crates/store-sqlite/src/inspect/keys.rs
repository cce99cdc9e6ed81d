//! Whether the rows of keys say what the rows of runs say.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use punctual_store::QueueSettings;
use rusqlite::Connection;

use super::ITEMS_MAX;
use crate::fault::Fault;
use crate::value;

/// What is known of one key: runs that workers have, and rank and key of the first in line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Key {
    running: i64,
    first: Option<(i64, i64)>,
}

/// Where rows of keys, or the marks of runs whose keys count, are not what they should be.
pub(super) fn mismatches(
    connection: &Connection,
    queues: &HashMap<i64, Arc<QueueSettings>>,
) -> Result<Vec<String>, Fault> {
    let mut mismatches = Vec::new();
    let mut expected: BTreeMap<(i64, Arc<str>), Key> = BTreeMap::new();
    let mut rows = connection.prepare("SELECT queue, keyed, key, state, rank, run FROM run_live")?;
    let mut rows = rows.query(())?;
    while let Some(row) = rows.next()? {
        let (queue, keyed): (i64, bool) = (row.get(0)?, row.get(1)?);
        let should = queues.get(&queue).is_some_and(|queue| queue.is_keyed());
        if keyed != should && mismatches.len() < ITEMS_MAX {
            mismatches.push(format!("run {}: whether its key counts is wrong", row.get::<_, i64>(5)?));
        }
        if !should {
            continue;
        }
        let place = (row.get(4)?, row.get(5)?);
        let key = expected.entry((queue, row.get(2)?)).or_default();
        match row.get(3)? {
            value::RUNNING => key.running += 1,
            value::READY => key.first = Some(key.first.map_or(place, |first| first.min(place))),
            _ => {}
        }
    }
    expected.retain(|_, key| *key != Key::default());
    let mut rows = connection.prepare("SELECT queue, key, running, rank, run, place FROM queue_key")?;
    let mut rows = rows.query(())?;
    while let Some(row) = rows.next()? {
        let name: (i64, Arc<str>) = (row.get(0)?, row.get(1)?);
        let (rank, run): (Option<i64>, Option<i64>) = (row.get(3)?, row.get(4)?);
        let stored = Key { running: row.get(2)?, first: rank.zip(run) };
        let runs = expected.remove(&name).unwrap_or_default();
        let may_go = |bound: u32| stored.running < bound.into();
        let bound = queues.get(&name.0).and_then(|queue| queue.key_concurrency_max);
        let waits = stored.first.is_some() && bound.is_none_or(may_go);
        let place: i64 = row.get(5)?;
        if (stored != runs || waits != matches!(place, 1 | 2)) && mismatches.len() < ITEMS_MAX {
            let (queue, key) = name;
            mismatches.push(format!("queue {queue}, key {key:?}: {stored:?} at {place}, runs say {runs:?}"));
        }
    }
    let missing = expected.into_iter().map(|((queue, key), runs)| {
        format!("queue {queue}, key {key:?}: nothing is stored, runs say {runs:?}")
    });
    mismatches.extend(missing.take(ITEMS_MAX));
    Ok(mismatches)
}
