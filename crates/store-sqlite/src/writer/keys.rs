//! The keys of a queue that serves each key in turn: who waits, who runs, whose turn it is.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_store::turn::{IDLE, Key, Place, Round, after};
use punctual_store::{QueueSettings, Rate};
use rusqlite::{OptionalExtension, Row};

use super::Writer;
use crate::fault::Fault;
use crate::value::{self, Bound, Time};

fn read_key(row: &Row<'_>) -> rusqlite::Result<Key> {
    let (rank, run): (Option<i64>, Option<i64>) = (row.get(3)?, row.get(4)?);
    Ok(Key {
        key: row.get(0)?,
        running: row.get(1)?,
        turn: row.get(2)?,
        first: rank.zip(run).map(|(rank, run)| Place { rank, run }),
        starts: row.get(5)?,
        next_time: value::optional_time(row, 6)?,
        end_time: value::optional_time(row, 7)?,
    })
}

impl Writer<'_> {
    /// A run waits. If nobody of its key waited, the key goes to the end of the round.
    pub(super) fn queue_up(&mut self, queue: i64, key: &Arc<str>, place: Place) -> Result<(), Fault> {
        let settings = self.known.settings(queue).clone();
        let mut row = match self.load_key(queue, key)? {
            Some(row) => row,
            None => Key::new(key.clone(), &settings, self.round(queue)?),
        };
        match row.first {
            Some(first) if first < place => return Ok(()),
            Some(_) => {}
            None => row.turn = self.round(queue)?.handed_out,
        }
        row.first = Some(place);
        self.save_key(queue, &row, &settings, None)
    }

    /// A run of this key does not wait any more, although nobody claimed it.
    pub(super) fn key_lost_ready(&mut self, queue: i64, key: &Arc<str>, run: i64) -> Result<(), Fault> {
        let Some(mut row) = self.load_key(queue, key)? else { return Ok(()) };
        if row.first.is_none_or(|first| first.run != run) {
            return Ok(());
        }
        row.first = self.first_of_key(queue, key)?;
        let settings = self.known.settings(queue).clone();
        self.save_key(queue, &row, &settings, None)
    }

    /// A run of this key does not run any more.
    pub(super) fn key_lost_running(&mut self, queue: i64, key: &Arc<str>) -> Result<(), Fault> {
        let Some(mut row) = self.load_key(queue, key)? else { return Ok(()) };
        row.running -= 1;
        let settings = self.known.settings(queue).clone();
        self.save_key(queue, &row, &settings, None)
    }

    /// The first in line of a key begins.
    pub(super) fn key_starts(
        &mut self,
        queue: i64,
        mut row: Key,
        settings: &QueueSettings,
        (round, now): (Round, Timestamp),
    ) -> Result<(), Fault> {
        row.running += 1;
        row.turn = round.handed_out;
        row.first = self.first_of_key(queue, &row.key)?;
        if let Some(rate) = settings.key_rate {
            row.starts += 1;
            self.add_start_of_key(queue, &row.key, rate, (row.starts, now))?;
            row.end_time = row.end_time.max(Some(after(now, rate)));
            row.next_time = self.next_time_of(queue, &row, rate, round)?;
        }
        self.save_key(queue, &row, settings, Some(now))
    }

    pub(super) fn next_time_of(
        &mut self,
        queue: i64,
        row: &Key,
        rate: Rate,
        round: Round,
    ) -> Result<Option<Timestamp>, Fault> {
        let opens = self.key_opens(queue, &row.key, rate, row.starts)?;
        Ok(opens.or(round.forgotten_time))
    }

    /// Keys that a rate held back until now, or earlier, may be claimed again.
    pub(super) fn open_keys(&mut self, queue: i64, now: Timestamp) -> Result<(), Fault> {
        self.statements.open_keys.execute((queue, Bound(now)))?;
        Ok(())
    }

    /// The key whose turn it is.
    pub(super) fn next_key(
        &mut self,
        queue: i64,
        settings: &QueueSettings,
        now: Timestamp,
    ) -> Result<Option<Key>, Fault> {
        loop {
            let Some(row) = self.statements.claim_key.query_row([queue], read_key).optional()? else {
                return Ok(None);
            };
            if row.next_time.is_none_or(|next| next <= now) {
                return Ok(Some(row));
            }
            // It was opened at a later time: the clock went back.
            self.save_key(queue, &row, settings, Some(now))?;
        }
    }

    /// When a rate lets the first key go of those that it holds back.
    pub(super) fn held_until(&mut self, queue: i64) -> Result<Option<Timestamp>, Fault> {
        Ok(self.statements.held_until.query_row([queue], |row| value::time(row, 0)).optional()?)
    }

    /// Forgets some keys whose windows are over.
    pub(super) fn forget_keys(
        &mut self,
        queue: i64,
        round: &mut Round,
        now: Timestamp,
        keys_max: usize,
    ) -> Result<(), Fault> {
        let bounds = (queue, Bound(now), value::count(keys_max));
        let idle =
            self.statements.idle_keys.query_map(bounds, |row| Ok((row.get(0)?, value::time(row, 1)?)))?;
        let idle: Vec<(Arc<str>, Timestamp)> = idle.collect::<Result<_, _>>()?;
        for (key, end_time) in idle {
            round.forgotten_time = round.forgotten_time.max(Some(end_time));
            self.delete_key(queue, &key)?;
        }
        Ok(())
    }

    /// Writes a key, or removes it if there is nothing to say about it.
    pub(super) fn save_key(
        &mut self,
        queue: i64,
        row: &Key,
        settings: &QueueSettings,
        now: Option<Timestamp>,
    ) -> Result<(), Fault> {
        let place = row.place(settings, now);
        if place == IDLE && row.end_time.is_none() {
            return self.delete_key(queue, &row.key);
        }
        self.statements.save_key.execute((
            queue,
            &row.key[..],
            place,
            row.running,
            row.turn,
            row.first.map(|first| first.rank),
            row.first.map(|first| first.run),
            row.starts,
            row.next_time.map(Time),
            row.end_time.map(Time),
        ))?;
        Ok(())
    }

    fn delete_key(&mut self, queue: i64, key: &Arc<str>) -> Result<(), Fault> {
        self.statements.delete_key.execute((queue, &key[..]))?;
        self.statements.forget_starts_of_key.execute((queue, &key[..], i64::MAX))?;
        Ok(())
    }

    pub(super) fn load_key(&mut self, queue: i64, key: &str) -> Result<Option<Key>, Fault> {
        Ok(self.statements.load_key.query_row((queue, key), read_key).optional()?)
    }

    fn first_of_key(&mut self, queue: i64, key: &str) -> Result<Option<Place>, Fault> {
        let place = |row: &Row<'_>| Ok(Place { rank: row.get(0)?, run: row.get(1)? });
        Ok(self.statements.first_of_key.query_row((queue, key), place).optional()?)
    }

    pub(super) fn round(&mut self, queue: i64) -> Result<Round, Fault> {
        let round = self.statements.round.query_row([queue], |row| {
            Ok(Round { handed_out: row.get(0)?, forgotten_time: value::optional_time(row, 1)? })
        });
        Ok(round.optional()?.unwrap_or_default())
    }

    pub(super) fn set_round(&mut self, queue: i64, round: Round) -> Result<(), Fault> {
        self.statements.set_round.execute((queue, round.handed_out, round.forgotten_time.map(Time)))?;
        Ok(())
    }
}
