//! One occurrence on its way to a run, and the life of that run.

use jiff::Timestamp;

use crate::id::StartId;
use crate::ledger::NotStarted;
use crate::mutant::{self, Mutant};
use crate::schedule::{OverlapPolicy, Payload};

/// One occurrence on its way to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferedStart {
    /// Which one; never changes.
    pub id: StartId,
    /// When it should start, after jitter.
    pub due_time: Timestamp,
    /// The policy it was asked for under.
    pub overlap: OverlapPolicy,
    /// Where it is.
    pub phase: Phase,
    /// Input of its own, for manual starts.
    pub input: Option<Payload>,
}

/// Where a start is between "the spec said so" and "the run ended".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// For the overlap policy.
    Waiting,
    /// Until a run completes.
    Deferred,
    /// It may be dispatched, or is being.
    Ready {
        /// Counted from one.
        attempt: u32,
        /// Not before this instant.
        not_before: Timestamp,
        /// When this attempt was handed to the dispatcher, if it was.
        sent_at: Option<Timestamp>,
    },
    /// It should not start any more, but a call may still be in flight: its keeper is asked before the verdict falls.
    Doubtful {
        /// What its verdict will be, unless it runs after all.
        verdict: NotStarted,
        /// Its keeper is asked, or asked again, at this time.
        ask_at: Timestamp,
    },
    /// A worker has it.
    Running {
        /// Since when.
        started_at: Timestamp,
        /// When it was last known to run.
        seen_at: Timestamp,
        /// Whether and how it was asked to stop.
        stop: Option<Stop>,
    },
}

/// A request that a run stop, repeated until it was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// How hard.
    pub kind: StopKind,
    /// Requests made so far.
    pub attempts: u32,
    /// The next request is not before this instant; nothing when it was delivered.
    pub not_before: Option<Timestamp>,
}

/// How hard a run is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopKind {
    /// Please.
    Cancel,
    /// At once.
    Terminate,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Well.
    Succeeded,
    /// With a failure.
    Failed,
    /// Its time ran out.
    TimedOut,
    /// It was asked to stop, and did.
    Cancelled,
    /// It was ended.
    Terminated,
}

impl Outcome {
    /// Whether pause-on-failure counts it: not when somebody stopped it on purpose.
    pub fn is_failure(self) -> bool {
        match self {
            Outcome::Failed | Outcome::TimedOut => true,
            Outcome::Succeeded | Outcome::Cancelled | Outcome::Terminated => false,
        }
    }
}

impl BufferedStart {
    /// Whether it holds a place under the overlap policy: it runs, is being started, or will be tried again.
    pub fn holds_place(&self) -> bool {
        match self.phase {
            Phase::Ready { .. } => !mutant::is(Mutant::ReadyHoldsNoPlace),
            Phase::Doubtful { .. } | Phase::Running { .. } => true,
            Phase::Waiting | Phase::Deferred => false,
        }
    }
}

/// A run that ended, as describe remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecentRun {
    /// Which start it was.
    pub id: StartId,
    started_ms: i64,
    completed_ms: i64,
    /// How it ended.
    pub outcome: Outcome,
}

impl RecentRun {
    pub(crate) fn new(
        id: StartId,
        started_at: Timestamp,
        completed_at: Timestamp,
        outcome: Outcome,
    ) -> RecentRun {
        let (started_ms, completed_ms) = (started_at.as_millisecond(), completed_at.as_millisecond());
        RecentRun { id, started_ms, completed_ms, outcome }
    }

    /// When it began, to the millisecond.
    pub fn started_at(&self) -> Timestamp {
        Timestamp::from_millisecond(self.started_ms).unwrap_or(Timestamp::MAX)
    }

    /// When it ended, to the millisecond.
    pub fn completed_at(&self) -> Timestamp {
        Timestamp::from_millisecond(self.completed_ms).unwrap_or(Timestamp::MAX)
    }
}
