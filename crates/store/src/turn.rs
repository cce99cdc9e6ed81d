//! Queues that serve each key in turn, and rates: the arithmetic that every database shares.
//!
//! One row for each key says all that a claim needs, and an index finds the next one. A key that nobody waits for, that has
//! no run, and whose window is over, has no row.

use std::sync::Arc;

use jiff::Timestamp;

use crate::queue::{QueueSettings, Rate};

/// A key may be claimed.
pub const OPEN: i64 = 1;
/// It waits for its rate.
pub const HELD: i64 = 2;
/// Only its window is left.
pub const IDLE: i64 = 3;
/// It has as much as it may have, or nothing that waits.
pub const BUSY: i64 = 0;

/// A place in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Lower first.
    pub rank: i64,
    /// And by key among equals.
    pub run: i64,
}

/// One key of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// Which one.
    pub key: Arc<str>,
    /// Runs of it that workers have.
    pub running: i64,
    /// How much its queue had handed out when it was last served, or began to wait.
    pub turn: i64,
    /// Who is first in line.
    pub first: Option<Place>,
    /// The number of its last start.
    pub starts: i64,
    /// When its rate lets the next one go; it may have passed.
    pub next_time: Option<Timestamp>,
    /// When its window is over.
    pub end_time: Option<Timestamp>,
}

/// How far a queue is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Runs that it has handed out.
    pub handed_out: i64,
    /// The windows of all keys that are forgotten were over then.
    pub forgotten_time: Option<Timestamp>,
}

impl Key {
    /// A key that is not stored. If the clock went back, it might be one whose window was forgotten too early; so it waits
    /// until all forgotten windows are over, which is in the past unless the clock went back.
    pub fn new(key: Arc<str>, settings: &QueueSettings, round: Round) -> Key {
        Key { key, next_time: settings.key_rate.and(round.forgotten_time), ..Key::default() }
    }

    /// Whether it may be claimed; without a time, only a key without a rate or with a window that is not full.
    pub fn place(&self, settings: &QueueSettings, now: Option<Timestamp>) -> i64 {
        let full = settings.key_concurrency_max.is_some_and(|bound| self.running >= bound.into());
        let held = self.next_time.is_some_and(|next| now.is_none_or(|now| next > now));
        match self.first {
            None if self.running == 0 => IDLE,
            None => BUSY,
            Some(_) if full => BUSY,
            Some(_) if held => HELD,
            Some(_) => OPEN,
        }
    }
}

/// The number of the start that decides about the next one.
pub fn first_of(rate: Rate, last: i64) -> i64 {
    last - i64::from(rate.starts_max.max(1)) + 1
}

/// When a window that began then is over.
pub fn after(start: Timestamp, rate: Rate) -> Timestamp {
    start.checked_add(rate.per).unwrap_or(Timestamp::MAX)
}
