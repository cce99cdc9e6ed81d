//! What happened to one schedule, as the oracle is told it.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::{Backfill, Definition, OnResume, Outcome, OverlapPolicy, RequestKey, StartId};

/// One committed event of a schedule. Its creation is told as an update of nothing.
#[derive(Clone, Debug)]
pub enum Event {
    /// Time has passed, nothing else.
    Wake,
    /// It was paused; until a time, if the pause has an end.
    Pause(Option<Timestamp>),
    /// It was resumed, and what becomes of the time spent paused; nothing means the schedule's policy.
    Resume(Option<OnResume>),
    /// One start was asked for, with a policy of its own or the schedule's.
    Trigger(StartId, Option<OverlapPolicy>),
    /// A range was asked for; both ends are included.
    Backfill(RequestKey, Backfill),
    /// One coming occurrence should not happen.
    Skip(Timestamp),
    /// The definition is another one; its spec maybe too.
    Update(Arc<Definition>, bool),
    /// The limit of starts changed.
    SetRemaining(Option<u32>),
    /// It was deleted.
    Delete,
    /// Its retention is over.
    Retire,
    /// Something was heard of a start.
    Reported(StartId, Report),
}

/// What was heard of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The dispatcher started it, or had done so before.
    Started,
    /// The dispatcher could not start it now.
    Failed,
    /// The dispatcher will never start it.
    Refused,
    /// Somebody looked, and it runs.
    Running,
    /// Somebody looked, and nobody knows it.
    Gone,
    /// Its run ended.
    Ended(Outcome),
}
