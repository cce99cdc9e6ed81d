//! Questions that lists ask, in pages.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::Outcome;

use crate::key::{QueueKey, RunKey, TreeKey};

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// In order.
    pub items: Vec<T>,
    /// Where to go on: ask again with this; nothing means that this was the last page. A page may be short, or even
    /// empty, before the end: a store looks at a bounded number of rows.
    pub next: Option<Arc<str>>,
}

/// Which schedules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleQuery {
    /// Of this namespace.
    pub namespace: Arc<str>,
    /// Whose id begins with this.
    pub prefix: Arc<str>,
    /// In this part of their life; nothing means open and completed ones.
    pub lifespan: Option<Lifespan>,
    /// Paused or not.
    pub paused: Option<bool>,
    /// Whose runs go to this queue.
    pub queue: Option<QueueKey>,
    /// Where the page before ended.
    pub after: Option<Arc<str>>,
    /// At most this many.
    pub count: usize,
}

/// The part of a schedule's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lifespan {
    /// In use.
    Open,
    /// Nothing was left to do.
    Completed,
    /// The user deleted it.
    Deleted,
}

/// Which runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// Of queues of this namespace.
    pub namespace: Arc<str>,
    /// Of this schedule.
    pub tree: Option<TreeKey>,
    /// Of this queue.
    pub queue: Option<QueueKey>,
    /// In this part of their life.
    pub filter: Option<RunFilter>,
    /// Only runs before this one; how pages go on.
    pub before: Option<RunKey>,
    /// At most this many.
    pub count: usize,
}

/// The part of a run's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunFilter {
    /// May be claimed.
    Ready,
    /// Will be tried again later.
    BackingOff,
    /// A worker has it.
    Running,
    /// Ended, in whatever way or in this one.
    Closed(Option<Outcome>),
    /// Failed or timed out, and nobody has dealt with it yet.
    DeadLetter,
}

/// How long things are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Runs that ended before this go.
    pub runs_before: Timestamp,
    /// Ledger entries decided before this go.
    pub ledger_before: Timestamp,
    /// Closed runs that are kept at most, whatever their age; the oldest go.
    pub runs_max: Option<u64>,
    /// Ledger entries that are kept at most.
    pub ledger_max: Option<u64>,
    /// At most this many rows at a time, so that nobody waits for it.
    pub rows_max: usize,
}
