//! Lines of a schedule's event log, as data: the engine turns each into a log line, a trace event and a counter.

use jiff::Timestamp;

use crate::id::{RequestKey, StartId};
use crate::start::Outcome;

/// One line of the event log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The schedule was created.
    Created,
    /// Its definition or state was changed.
    Updated,
    /// It was paused, by a person or by failures.
    Paused {
        /// How many failures in a row caused it, if any did.
        after_failures: Option<u32>,
    },
    /// It was resumed, by a person or because its time came.
    Resumed,
    /// A start was accepted as ready to be dispatched.
    StartReadied(StartId),
    /// A run began.
    RunStarted(StartId),
    /// A start failed and will be tried again.
    StartRetried {
        /// Which one.
        start: StartId,
        /// How many attempts have failed.
        attempts: u32,
        /// When the next one may be.
        not_before: Timestamp,
    },
    /// A run ended.
    RunCompleted {
        /// Which one.
        start: StartId,
        /// How.
        outcome: Outcome,
    },
    /// A run was asked to stop.
    StopRequested(StartId),
    /// A backfill began.
    BackfillStarted(RequestKey),
    /// A backfill is through, or was cancelled.
    BackfillEnded(RequestKey),
    /// Nothing is left to do, for now or for good.
    Completed,
    /// The schedule was deleted.
    Deleted,
}
