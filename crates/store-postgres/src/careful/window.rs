//! Rates: the starts of the last window, and when they let another one go. See [`punctual_store::turn`] for the arithmetic.

use jiff::Timestamp;
use punctual_store::Rate;
use punctual_store::turn::{after, first_of};

use super::Careful;
use crate::fault::Fault;
use crate::value::{self, at, time};

/// The window of a queue as a whole, during one claim.
#[derive(Clone, Copy)]
pub(super) struct Window {
    queue: i64,
    rate: Rate,
    /// The number of the last start.
    last: i64,
}

impl Careful<'_> {
    /// The window of a queue.
    pub(super) async fn window(&self, queue: i64, rate: Rate) -> Result<Window, Fault> {
        let sql = "SELECT sequence FROM punctual.queue_start WHERE queue = $1 ORDER BY sequence DESC LIMIT 1";
        let last = self.session.find(sql, &[&queue]).await?;
        Ok(Window { queue, rate, last: last.map_or(0, |row| row.get(0)) })
    }

    /// How many may begin now, at most so many, and when the window lets the one after these go.
    pub(super) async fn allowance(
        &self,
        window: &Window,
        now: Timestamp,
        most: usize,
    ) -> Result<(usize, Option<Timestamp>), Fault> {
        let starts_max = usize::try_from(window.rate.starts_max.max(1)).unwrap_or(usize::MAX);
        let first = first_of(window.rate, window.last);
        let sql = "SELECT sequence, started_at FROM punctual.queue_start
            WHERE queue = $1 AND sequence >= $2 ORDER BY sequence LIMIT $3";
        let rows =
            self.session.query(sql, &[&window.queue, &first, &value::count(most.min(starts_max))]).await?;
        for row in &rows {
            // The start of this number decides about the one so many places after it.
            let opens = after(at(row.get(1)), window.rate);
            let place = usize::try_from(row.get::<_, i64>(0) - first).unwrap_or(0);
            if opens > now && place < most {
                return Ok((place, Some(opens)));
            }
        }
        let opens = after(now, window.rate);
        Ok(if most > starts_max && opens > now { (starts_max, Some(opens)) } else { (most, None) })
    }

    /// So many more begin.
    pub(super) async fn add_starts(
        &self,
        window: &mut Window,
        now: Timestamp,
        count: usize,
    ) -> Result<(), Fault> {
        if count == 0 {
            return Ok(());
        }
        let first = window.last + 1;
        window.last += value::count(count);
        let sql = "INSERT INTO punctual.queue_start (queue, sequence, started_at)
            SELECT $1, sequence, $4 FROM generate_series($2::bigint, $3::bigint) AS sequence";
        self.session.execute(sql, &[&window.queue, &first, &window.last, &time(now)]).await?;
        let forgotten = first_of(window.rate, window.last) - 1;
        let sql = "DELETE FROM punctual.queue_start WHERE queue = $1 AND sequence <= $2";
        self.session.execute(sql, &[&window.queue, &forgotten]).await?;
        Ok(())
    }

    /// Another one of a key begins, with this number.
    pub(super) async fn add_start_of_key(
        &self,
        queue: i64,
        key: &str,
        rate: Rate,
        (number, now): (i64, Timestamp),
    ) -> Result<(), Fault> {
        let sql = "INSERT INTO punctual.key_start (queue, key, sequence, started_at) VALUES ($1, $2, $3, $4)";
        self.session.execute(sql, &[&queue, &key.as_bytes(), &number, &time(now)]).await?;
        self.forget_starts_of_key(queue, key, first_of(rate, number) - 1).await
    }

    pub(super) async fn forget_starts_of_key(
        &self,
        queue: i64,
        key: &str,
        through: i64,
    ) -> Result<(), Fault> {
        let sql = "DELETE FROM punctual.key_start WHERE queue = $1 AND key = $2 AND sequence <= $3";
        self.session.execute(sql, &[&queue, &key.as_bytes(), &through]).await?;
        Ok(())
    }

    /// When the window of a key lets another one go, if it is full; the last start has this number.
    pub(super) async fn key_opens(
        &self,
        queue: i64,
        key: &str,
        rate: Rate,
        last: i64,
    ) -> Result<Option<Timestamp>, Fault> {
        let sql = "SELECT started_at FROM punctual.key_start WHERE queue = $1 AND key = $2 AND sequence = $3";
        let row = self.session.find(sql, &[&queue, &key.as_bytes(), &first_of(rate, last)]).await?;
        Ok(row.map(|row| after(at(row.get(0)), rate)))
    }
}
