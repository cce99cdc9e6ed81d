//! Rates: the starts of the last window, and when they let another one go.
//!
//! As many starts are kept as the rate allows in one window, each numbered. Another one may begin when the first of these is
//! so long ago as the window is long. So each start is at least a window after the one so many places before it, and no
//! window has too many, even if the clock goes back.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_store::Rate;
use punctual_store::turn::{after, first_of};
use rusqlite::OptionalExtension;

use super::Writer;
use crate::fault::Fault;
use crate::value::{self, Time};

/// The window of a queue as a whole, during one claim.
pub(super) struct Window {
    queue: i64,
    rate: Rate,
    /// The number of the last start.
    last: i64,
}

impl Writer<'_> {
    /// The window of a queue.
    pub(super) fn window(&mut self, queue: i64, rate: Rate) -> Result<Window, Fault> {
        let last = self.statements.last_start.query_row([queue], |row| row.get(0)).optional()?;
        Ok(Window { queue, rate, last: last.unwrap_or(0) })
    }

    /// When the window lets another one go, if not now.
    pub(super) fn opens(&mut self, window: &Window, now: Timestamp) -> Result<Option<Timestamp>, Fault> {
        let first = (window.queue, first_of(window.rate, window.last));
        let first = self.statements.start.query_row(first, |row| value::time(row, 0)).optional()?;
        Ok(first.map(|first| after(first, window.rate)).filter(|opens| *opens > now))
    }

    /// How many may begin now, at most so many, and when the window lets the one after these go.
    pub(super) fn allowance(
        &mut self,
        window: &Window,
        now: Timestamp,
        most: usize,
    ) -> Result<(usize, Option<Timestamp>), Fault> {
        // From then on a start of this moment would decide about the next.
        let starts_max = usize::try_from(window.rate.starts_max.max(1)).unwrap_or(usize::MAX);
        for count in 0..most.min(starts_max) {
            let last = window.last + value::count(count);
            let opens = self.opens(&Window { last, ..*window }, now)?;
            if opens.is_some() {
                return Ok((count, opens));
            }
        }
        let opens = after(now, window.rate);
        Ok(if most > starts_max && opens > now { (starts_max, Some(opens)) } else { (most, None) })
    }

    /// Another one begins.
    pub(super) fn add_start(&mut self, window: &mut Window, now: Timestamp) -> Result<(), Fault> {
        window.last += 1;
        self.statements.insert_start.execute((window.queue, window.last, Time(now)))?;
        let forgotten = first_of(window.rate, window.last) - 1;
        self.statements.forget_starts.execute((window.queue, forgotten))?;
        Ok(())
    }

    /// Another one of a key begins, with this number.
    pub(super) fn add_start_of_key(
        &mut self,
        queue: i64,
        key: &Arc<str>,
        rate: Rate,
        (number, now): (i64, Timestamp),
    ) -> Result<(), Fault> {
        self.statements.insert_start_of_key.execute((queue, &key[..], number, Time(now)))?;
        let forgotten = first_of(rate, number) - 1;
        self.statements.forget_starts_of_key.execute((queue, &key[..], forgotten))?;
        Ok(())
    }

    /// When the window of a key lets another one go, if it is full; the last start has this number.
    pub(super) fn key_opens(
        &mut self,
        queue: i64,
        key: &Arc<str>,
        rate: Rate,
        last: i64,
    ) -> Result<Option<Timestamp>, Fault> {
        let first = (queue, &key[..], first_of(rate, last));
        let first = self.statements.start_of_key.query_row(first, |row| value::time(row, 0)).optional()?;
        Ok(first.map(|first| after(first, rate)))
    }
}
