//! New settings of a queue that has runs: what limits count is counted anew, in the same transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use punctual_store::QueueSettings;
use punctual_store::turn::{Key, Place, Round, after};

use super::Writer;
use crate::fault::Fault;
use crate::value::{self, Time};

impl Writer<'_> {
    /// Makes what is stored about a queue fit its new settings.
    pub(super) fn rebuild(
        &mut self,
        queue: i64,
        before: &QueueSettings,
        settings: &QueueSettings,
    ) -> Result<(), Fault> {
        if before.worker_concurrency_max.is_some() != settings.worker_concurrency_max.is_some() {
            self.count_workers(queue, settings)?;
        }
        if settings.rate.is_none() && before.rate.is_some() {
            self.statements.delete_starts.execute([queue])?;
        }
        if settings.key_rate.is_none() && before.key_rate.is_some() {
            self.statements.delete_starts_of_keys.execute([queue])?;
        }
        match (before.is_keyed(), settings.is_keyed()) {
            (false, true) => self.make_keys(queue, settings),
            (true, false) => {
                self.statements.set_keyed.execute((queue, false))?;
                self.statements.delete_keys.execute([queue])?;
                Ok(())
            }
            (true, true)
                if (before.key_concurrency_max, before.key_rate)
                    != (settings.key_concurrency_max, settings.key_rate) =>
            {
                self.judge_keys(queue, settings)
            }
            (true, true) | (false, false) => Ok(()),
        }
    }

    fn count_workers(&mut self, queue: i64, settings: &QueueSettings) -> Result<(), Fault> {
        let mut counted: Vec<(Arc<str>, i64)> = Vec::new();
        if settings.worker_concurrency_max.is_some() {
            let of_workers = &mut self.statements.workers_of_queue;
            let rows = of_workers.query_map([queue], |row| Ok((row.get(0)?, row.get(1)?)))?;
            counted = rows.collect::<Result<_, _>>()?;
        }
        self.known.counts.set_workers(&mut self.counts, queue, &counted);
        Ok(())
    }

    /// From now on each key is served in turn; they all begin at the same point of the round.
    fn make_keys(&mut self, queue: i64, settings: &QueueSettings) -> Result<(), Fault> {
        self.statements.set_keyed.execute((queue, true))?;
        let round = self.round(queue)?;
        let mut keys: BTreeMap<Arc<str>, Key> = BTreeMap::new();
        let mut rows = self.statements.live_of_queue.query([queue])?;
        while let Some(row) = rows.next()? {
            let (key, state): (Arc<str>, i64) = (row.get(0)?, row.get(1)?);
            let place = Place { rank: row.get(2)?, run: row.get(3)? };
            let new = || Key { turn: round.handed_out, ..Key::new(key.clone(), settings, round) };
            let key = keys.entry(key.clone()).or_insert_with(new);
            match state {
                value::READY => key.first = Some(key.first.map_or(place, |first| first.min(place))),
                value::RUNNING => key.running += 1,
                _ => {}
            }
        }
        drop(rows);
        for key in keys.values() {
            self.save_key(queue, key, settings, None)?;
        }
        Ok(())
    }

    /// Bounds of keys are others now: some may go that could not, or the other way round.
    fn judge_keys(&mut self, queue: i64, settings: &QueueSettings) -> Result<(), Fault> {
        let round = self.round(queue)?;
        let keys = self.statements.keys_of_queue.query_map([queue], |row| row.get(0))?;
        let keys: Vec<Arc<str>> = keys.collect::<Result<_, _>>()?;
        for key in keys {
            let Some(row) = self.load_key(queue, &key)? else { continue };
            let row = self.judge_key(queue, row, settings, round)?;
            self.save_key(queue, &row, settings, None)?;
        }
        Ok(())
    }

    fn judge_key(
        &mut self,
        queue: i64,
        row: Key,
        settings: &QueueSettings,
        round: Round,
    ) -> Result<Key, Fault> {
        let Some(rate) = settings.key_rate else {
            return Ok(Key { starts: 0, next_time: None, end_time: None, ..row });
        };
        let next_time = self.next_time_of(queue, &row, rate, round)?;
        let latest: Option<Time> =
            self.statements.latest_of_key.query_row((queue, &row.key[..]), |row| row.get(0))?;
        let end_time = latest.map(|Time(latest)| after(latest, rate));
        Ok(Key { next_time, end_time, ..row })
    }
}
