//! What happened to one schedule, as the oracle is told it.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::{
    Definition, Dispatched, OnResume, Outcome, OverlapPolicy, Policies, RequestKey, StartId,
};

/// One committed event of a schedule.
#[derive(Clone, Debug)]
pub enum Event {
    /// Time has passed, nothing else.
    Wake,
    /// It was paused.
    Pause {
        /// Until this time, if it has an end.
        until: Option<Timestamp>,
    },
    /// It was resumed.
    Resume {
        /// What becomes of the time spent paused; nothing means the schedule's policy.
        on_resume: Option<OnResume>,
    },
    /// One start was asked for.
    Trigger {
        /// By this request.
        key: RequestKey,
        /// With a policy of its own.
        overlap: Option<OverlapPolicy>,
    },
    /// A range was asked for; both ends are included.
    Backfill {
        /// By this request.
        key: RequestKey,
        /// The first nominal time.
        from: Timestamp,
        /// The last nominal time.
        through: Timestamp,
        /// With a policy of its own.
        overlap: Option<OverlapPolicy>,
    },
    /// One coming occurrence should not happen.
    Skip(Timestamp),
    /// The policies changed, the spec did not.
    UpdatePolicies(Policies),
    /// The spec is another one.
    UpdateSpec(Arc<Definition>),
    /// The limit of starts changed.
    SetRemaining(Option<u32>),
    /// It was deleted.
    Delete,
    /// The dispatcher answered.
    Dispatched(StartId, Dispatched),
    /// A run ended.
    Completed {
        /// Which one.
        start: StartId,
        /// How.
        outcome: Outcome,
    },
    /// Somebody looked whether a start runs.
    Sighted {
        /// Which one.
        start: StartId,
        /// Whether it does.
        running: bool,
    },
}
