//! The keys of a queue that serves each key in turn: who waits, who runs, whose turn it is. Its queue is held meanwhile.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_store::turn::{IDLE, Key, Place, Round, after};
use punctual_store::{QueueSettings, Rate};
use tokio_postgres::Row;

use super::Careful;
use crate::fault::Fault;
use crate::value::{self, at, time};

/// The columns of a key, as [`read`] wants them.
macro_rules! key_columns {
    () => {
        "key, running, turn, rank, run, starts, next_time, end_time"
    };
}

fn read(row: &Row) -> Key {
    let (rank, run): (Option<i64>, Option<i64>) = (row.get(3), row.get(4));
    Key {
        key: value::text(row.get(0)),
        running: row.get(1),
        turn: row.get(2),
        first: rank.zip(run).map(|(rank, run)| Place { rank, run }),
        starts: row.get(5),
        next_time: row.get::<_, Option<i64>>(6).map(at),
        end_time: row.get::<_, Option<i64>>(7).map(at),
    }
}

impl Careful<'_> {
    /// A run waits. If nobody of its key waited, the key goes to the end of the round.
    pub(super) async fn queue_up(&self, queue: i64, key: &Arc<str>, place: Place) -> Result<(), Fault> {
        let settings = self.queue(queue).await?.settings;
        let mut row = match self.load_key(queue, key).await? {
            Some(row) => row,
            None => Key::new(key.clone(), &settings, self.round(queue).await?),
        };
        match row.first {
            Some(first) if first < place => return Ok(()),
            Some(_) => {}
            None => row.turn = self.round(queue).await?.handed_out,
        }
        row.first = Some(place);
        self.save_key(queue, &row, &settings, None).await
    }

    /// A run of this key does not wait any more, although nobody claimed it.
    pub(super) async fn key_lost_ready(&self, queue: i64, key: &Arc<str>, run: i64) -> Result<(), Fault> {
        let Some(mut row) = self.load_key(queue, key).await? else { return Ok(()) };
        if row.first.is_none_or(|first| first.run != run) {
            return Ok(());
        }
        row.first = self.first_of_key(queue, key).await?;
        let settings = self.queue(queue).await?.settings;
        self.save_key(queue, &row, &settings, None).await
    }

    /// A run of this key does not run any more.
    pub(super) async fn key_lost_running(&self, queue: i64, key: &Arc<str>) -> Result<(), Fault> {
        let Some(mut row) = self.load_key(queue, key).await? else { return Ok(()) };
        row.running -= 1;
        let settings = self.queue(queue).await?.settings;
        self.save_key(queue, &row, &settings, None).await
    }

    /// The first in line of a key begins.
    pub(super) async fn key_starts(
        &self,
        queue: i64,
        mut row: Key,
        settings: &QueueSettings,
        (round, now): (Round, Timestamp),
    ) -> Result<(), Fault> {
        row.running += 1;
        row.turn = round.handed_out;
        row.first = self.first_of_key(queue, &row.key).await?;
        if let Some(rate) = settings.key_rate {
            row.starts += 1;
            self.add_start_of_key(queue, &row.key, rate, (row.starts, now)).await?;
            row.end_time = row.end_time.max(Some(after(now, rate)));
            row.next_time = self.next_time_of(queue, &row, rate, round).await?;
        }
        self.save_key(queue, &row, settings, Some(now)).await
    }

    pub(super) async fn next_time_of(
        &self,
        queue: i64,
        row: &Key,
        rate: Rate,
        round: Round,
    ) -> Result<Option<Timestamp>, Fault> {
        let opens = self.key_opens(queue, &row.key, rate, row.starts).await?;
        Ok(opens.or(round.forgotten_time))
    }

    /// Keys that a rate held back until now, or earlier, may be claimed again.
    pub(super) async fn open_keys(&self, queue: i64, now: Timestamp) -> Result<(), Fault> {
        let sql =
            "UPDATE punctual.queue_key SET place = 1 WHERE queue = $1 AND place = 2 AND next_time <= $2";
        self.session.execute(sql, &[&queue, &time(now)]).await?;
        Ok(())
    }

    /// The key whose turn it is.
    pub(super) async fn next_key(
        &self,
        queue: i64,
        settings: &QueueSettings,
        now: Timestamp,
    ) -> Result<Option<Key>, Fault> {
        let sql = concat!(
            "SELECT ",
            key_columns!(),
            " FROM punctual.queue_key WHERE queue = $1 AND place = 1 ORDER BY turn, rank, run LIMIT 1"
        );
        loop {
            let Some(row) = self.session.find(sql, &[&queue]).await?.map(|row| read(&row)) else {
                return Ok(None);
            };
            if row.next_time.is_none_or(|next| next <= now) {
                return Ok(Some(row));
            }
            // It was opened at a later time: the clock went back.
            self.save_key(queue, &row, settings, Some(now)).await?;
        }
    }

    /// When a rate lets the first key go of those that it holds back.
    pub(super) async fn held_until(&self, queue: i64) -> Result<Option<Timestamp>, Fault> {
        let sql = "SELECT next_time FROM punctual.queue_key WHERE queue = $1 AND place = 2 ORDER BY next_time LIMIT 1";
        Ok(self.session.find(sql, &[&queue]).await?.map(|row| at(row.get(0))))
    }

    /// Forgets some keys whose windows are over.
    pub(super) async fn forget_keys(
        &self,
        queue: i64,
        round: &mut Round,
        now: Timestamp,
        keys_max: usize,
    ) -> Result<(), Fault> {
        let sql = "SELECT key, end_time FROM punctual.queue_key
            WHERE queue = $1 AND place = 3 AND end_time <= $2 ORDER BY end_time LIMIT $3";
        for row in self.session.query(sql, &[&queue, &time(now), &value::count(keys_max)]).await? {
            round.forgotten_time = round.forgotten_time.max(Some(at(row.get(1))));
            self.delete_key(queue, &value::text(row.get(0))).await?;
        }
        Ok(())
    }

    /// Writes a key, or removes it if there is nothing to say about it.
    pub(super) async fn save_key(
        &self,
        queue: i64,
        row: &Key,
        settings: &QueueSettings,
        now: Option<Timestamp>,
    ) -> Result<(), Fault> {
        let place = row.place(settings, now);
        if place == IDLE && row.end_time.is_none() {
            return self.delete_key(queue, &row.key).await;
        }
        let sql = "INSERT INTO punctual.queue_key
                (queue, key, place, running, turn, rank, run, starts, next_time, end_time)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
            ON CONFLICT (queue, key) DO UPDATE SET
                place = excluded.place, running = excluded.running, turn = excluded.turn, rank = excluded.rank,
                run = excluded.run, starts = excluded.starts, next_time = excluded.next_time,
                end_time = excluded.end_time";
        let (rank, run) = (row.first.map(|first| first.rank), row.first.map(|first| first.run));
        let (next_time, end_time) = (row.next_time.map(time), row.end_time.map(time));
        let key = row.key.as_bytes();
        self.session
            .execute(
                sql,
                &[
                    &queue,
                    &key,
                    &place,
                    &row.running,
                    &row.turn,
                    &rank,
                    &run,
                    &row.starts,
                    &next_time,
                    &end_time,
                ],
            )
            .await?;
        Ok(())
    }

    async fn delete_key(&self, queue: i64, key: &str) -> Result<(), Fault> {
        let sql = "DELETE FROM punctual.queue_key WHERE queue = $1 AND key = $2";
        self.session.execute(sql, &[&queue, &key.as_bytes()]).await?;
        self.forget_starts_of_key(queue, key, i64::MAX).await
    }

    pub(super) async fn load_key(&self, queue: i64, key: &str) -> Result<Option<Key>, Fault> {
        let sql =
            concat!("SELECT ", key_columns!(), " FROM punctual.queue_key WHERE queue = $1 AND key = $2");
        Ok(self.session.find(sql, &[&queue, &key.as_bytes()]).await?.map(|row| read(&row)))
    }

    async fn first_of_key(&self, queue: i64, key: &str) -> Result<Option<Place>, Fault> {
        let sql = "SELECT rank, run FROM punctual.run_live
            WHERE queue = $1 AND key = $2 AND state = 0 AND keyed ORDER BY rank, run LIMIT 1";
        let row = self.session.find(sql, &[&queue, &key.as_bytes()]).await?;
        Ok(row.map(|row| Place { rank: row.get(0), run: row.get(1) }))
    }

    pub(super) async fn round(&self, queue: i64) -> Result<Round, Fault> {
        let sql = "SELECT handed_out, forgotten_time FROM punctual.queue_round WHERE queue = $1";
        let row = self.session.find(sql, &[&queue]).await?;
        Ok(row.map_or_else(Round::default, |row| Round {
            handed_out: row.get(0),
            forgotten_time: row.get::<_, Option<i64>>(1).map(at),
        }))
    }

    pub(super) async fn set_round(&self, queue: i64, round: Round) -> Result<(), Fault> {
        let sql = "INSERT INTO punctual.queue_round (queue, handed_out, forgotten_time) VALUES ($1, $2, $3)
            ON CONFLICT (queue) DO UPDATE SET handed_out = excluded.handed_out,
                forgotten_time = excluded.forgotten_time";
        let forgotten_time = round.forgotten_time.map(time);
        self.session.execute(sql, &[&queue, &round.handed_out, &forgotten_time]).await?;
        Ok(())
    }
}
