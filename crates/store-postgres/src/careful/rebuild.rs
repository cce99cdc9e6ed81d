//! New settings of a queue that has runs: what limits count is counted anew, in the same transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use punctual_store::QueueSettings;
use punctual_store::turn::{Key, Place, Round, after};

use super::Careful;
use crate::fault::Fault;
use crate::value::{self, READY, RUNNING, at};

impl Careful<'_> {
    /// Makes what is stored about a queue fit its new settings; the queue is held.
    pub(crate) async fn rebuild(
        &self,
        queue: i64,
        before: &QueueSettings,
        settings: &QueueSettings,
    ) -> Result<(), Fault> {
        // Whatever runs is counted from now on, if anything is.
        let sql =
            "UPDATE punctual.run_live SET limited = true WHERE queue = $1 AND state = 2 AND NOT limited";
        self.session.execute(sql, &[&queue]).await?;
        if settings.rate.is_none() && before.rate.is_some() {
            self.session.execute("DELETE FROM punctual.queue_start WHERE queue = $1", &[&queue]).await?;
        }
        if settings.key_rate.is_none() && before.key_rate.is_some() {
            self.session.execute("DELETE FROM punctual.key_start WHERE queue = $1", &[&queue]).await?;
        }
        let keyed = "UPDATE punctual.run_live SET keyed = $2 WHERE queue = $1 AND keyed <> $2";
        match (before.is_keyed(), settings.is_keyed()) {
            (false, true) => {
                self.session.execute(keyed, &[&queue, &true]).await?;
                self.make_keys(queue, settings).await
            }
            (true, false) => {
                self.session.execute(keyed, &[&queue, &false]).await?;
                self.session.execute("DELETE FROM punctual.queue_key WHERE queue = $1", &[&queue]).await?;
                Ok(())
            }
            (true, true)
                if (before.key_concurrency_max, before.key_rate)
                    != (settings.key_concurrency_max, settings.key_rate) =>
            {
                self.judge_keys(queue, settings).await
            }
            (true, true) | (false, false) => Ok(()),
        }
    }

    /// From now on each key is served in turn; they all begin at the same point of the round.
    async fn make_keys(&self, queue: i64, settings: &QueueSettings) -> Result<(), Fault> {
        let round = self.round(queue).await?;
        let mut keys: BTreeMap<Arc<str>, Key> = BTreeMap::new();
        let sql = "SELECT key, state, rank, run FROM punctual.run_live WHERE queue = $1";
        for row in self.session.query(sql, &[&queue]).await? {
            let (key, state) = (value::text(row.get(0)), i64::from(row.get::<_, i16>(1)));
            let place = Place { rank: row.get(2), run: row.get(3) };
            let new = || Key { turn: round.handed_out, ..Key::new(key.clone(), settings, round) };
            let key = keys.entry(key.clone()).or_insert_with(new);
            match state {
                READY => key.first = Some(key.first.map_or(place, |first| first.min(place))),
                RUNNING => key.running += 1,
                _ => {}
            }
        }
        for key in keys.values() {
            self.save_key(queue, key, settings, None).await?;
        }
        Ok(())
    }

    /// Bounds of keys are others now: some may go that could not, or the other way round.
    async fn judge_keys(&self, queue: i64, settings: &QueueSettings) -> Result<(), Fault> {
        let round = self.round(queue).await?;
        let sql = "SELECT key FROM punctual.queue_key WHERE queue = $1";
        for found in self.session.query(sql, &[&queue]).await? {
            let key = value::text(found.get(0));
            let Some(row) = self.load_key(queue, &key).await? else { continue };
            let row = self.judge_key(queue, row, settings, round).await?;
            self.save_key(queue, &row, settings, None).await?;
        }
        Ok(())
    }

    async fn judge_key(
        &self,
        queue: i64,
        row: Key,
        settings: &QueueSettings,
        round: Round,
    ) -> Result<Key, Fault> {
        let Some(rate) = settings.key_rate else {
            return Ok(Key { starts: 0, next_time: None, end_time: None, ..row });
        };
        let next_time = self.next_time_of(queue, &row, rate, round).await?;
        let sql = "SELECT max(started_at) FROM punctual.key_start WHERE queue = $1 AND key = $2";
        let latest = self.session.find(sql, &[&queue, &row.key.as_bytes()]).await?;
        let latest: Option<i64> = latest.and_then(|row| row.get(0));
        Ok(Key { next_time, end_time: latest.map(|latest| after(at(latest), rate)), ..row })
    }
}
