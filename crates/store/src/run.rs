//! A run as a store keeps it: made, claimed, tried again, closed. Live and closed runs are kept apart.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::{Outcome, StartId, StopKind};

use crate::Bytes;
use crate::key::{Keeper, QueueKey, RunKey, TreeKey};

/// A run that does not exist yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    /// Its key, from a reserved block.
    pub run: RunKey,
    /// The queue that workers claim it from.
    pub queue: QueueKey,
    /// The schedule and the start that it is for; nothing for a run on its own.
    pub origin: Option<(TreeKey, StartId)>,
    /// When it should begin.
    pub due_time: Timestamp,
    /// When it was made.
    pub created_at: Timestamp,
    /// Lower ones are claimed sooner; see [`QueueSettings::rank`](crate::QueueSettings::rank).
    pub priority: i16,
    /// What the limits of one key apply to; empty for none, which is a key like any other.
    pub key: Arc<str>,
    /// While it is live, no other run of its queue has the same one.
    pub dedup: Option<Arc<str>>,
    /// Not to be claimed before this: it begins as one that backs off.
    pub not_before: Option<Timestamp>,
    /// What it is to do, as a record; it never changes.
    pub body: Bytes,
}

/// A run that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveRun {
    /// What it was made with.
    pub made: NewRun,
    /// Attempts begun so far; the number of the attempt while it runs.
    pub attempt: u32,
    /// Where it is.
    pub state: LiveState,
    /// Whether somebody wants it to stop.
    pub stop: Option<StopKind>,
    /// The failure record of the attempt before.
    pub failure: Option<Bytes>,
    /// Who looks after it.
    pub keeper: Keeper,
}

/// Where a live run is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiveState {
    /// It may be claimed.
    Ready,
    /// It may be claimed later.
    BackingOff {
        /// Not before this.
        not_before: Timestamp,
    },
    /// A worker has it.
    Running {
        /// Which one.
        worker: Arc<str>,
        /// Since when.
        started_at: Timestamp,
    },
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing {
    /// The word for it.
    pub outcome: Outcome,
    /// When.
    pub closed_at: Timestamp,
    /// The result, or the failure record.
    pub payload: Option<Bytes>,
}

/// A run, live or closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRun {
    /// The run; of a closed one, as it was when it closed.
    pub run: LiveRun,
    /// Its end, if it has ended.
    pub closing: Option<Closing>,
    /// It failed or timed out, and nobody has dealt with it yet.
    pub is_dead_letter: bool,
}

/// A worker that wants runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// From which queue.
    pub queue: QueueKey,
    /// Who.
    pub worker: Arc<str>,
    /// At most this many.
    pub runs_max: usize,
    /// The moment at which the attempts begin.
    pub now: Timestamp,
    /// Who looks after them from then on.
    pub keeper: Keeper,
}

/// What a worker got.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The runs, in the order of their claim.
    pub runs: Vec<LiveRun>,
    /// When a rate lets the next one go, if a rate is what holds it back.
    pub next_time: Option<Timestamp>,
}

/// What the worker told on its way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunDetails {
    /// How far it is.
    pub progress: Option<Bytes>,
    /// The last lines of its log.
    pub log_tail: Option<Bytes>,
}
