//! One backfill: a past range that a person asked for, taken at a pace that leaves room for the schedule itself.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::mutant::{self, Mutant};
use crate::schedule::OverlapPolicy;

mod backfill;

/// A range that is being taken, occurrence by occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backfiller {
    /// What was asked.
    pub request: BackfillRequest,
    /// Every occurrence up to here was taken.
    pub(crate) watermark: Timestamp,
    /// How many were taken.
    pub(crate) taken: u64,
    /// The next pass is not before this.
    pub(crate) not_before: Timestamp,
    /// Passes that found no room, one after another.
    pub(crate) blocked_passes: u32,
}

/// A range to start again, or for the first time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillRequest {
    /// The first nominal time, included.
    pub from: Timestamp,
    /// The last one, included.
    pub through: Timestamp,
    /// A policy of its own; nothing means the schedule's.
    pub overlap: Option<OverlapPolicy>,
    /// The least time between two of its starts.
    pub pace: Option<SignedDuration>,
    /// For people.
    pub note: Arc<str>,
}

impl Backfiller {
    pub(crate) fn new(request: BackfillRequest, now: Timestamp) -> Backfiller {
        // Both ends are included, and ranges are open on the left.
        let before = request.from.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(request.from);
        let watermark = if mutant::is(Mutant::BackfillLeavesOutItsFirst) { request.from } else { before };
        Backfiller { request, watermark, taken: 0, not_before: now, blocked_passes: 0 }
    }
}
