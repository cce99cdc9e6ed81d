//! What became of every occurrence: one verdict each, long stretches as ranges.

use jiff::Timestamp;

use crate::id::{Origin, StartId};

/// What became of an occurrence, or of a range of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The first nominal time.
    pub from: Timestamp,
    /// The last nominal time; equal to the first for a single occurrence.
    pub through: Timestamp,
    /// How many occurrences.
    pub count: u64,
    /// The count is a lower bound: there were too many to count.
    pub at_least: bool,
    /// Who asked for them.
    pub origin: Origin,
    /// What became of them.
    pub verdict: Verdict,
    /// When that was decided.
    pub decided_at: Timestamp,
}

/// What became of an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It became a run.
    Started,
    /// It did not, and why.
    NotStarted(NotStarted),
}

/// Why an occurrence became no run. The reasons exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotStarted {
    /// By the overlap policy, or because the user marked it.
    Skipped(Skip),
    /// Too late.
    Missed(Miss),
    /// The buffer was full.
    Dropped,
    /// The schedule was paused.
    Paused,
    /// The schedule had no actions left.
    Exhausted,
    /// Something else took its place.
    Superseded(Supersede),
}

/// Who skipped it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
    /// A run was in progress.
    Overlap,
    /// The user marked this one occurrence.
    User,
}

/// Why it was too late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Miss {
    /// Its catch-up window had passed.
    Window,
    /// Later ones of the same backlog were preferred.
    Count,
    /// Starting it failed until its catch-up deadline.
    StartFailed,
    /// The dispatcher refused it for good.
    Refused,
}

/// What took its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Supersede {
    /// A new spec.
    Update,
    /// A later start under cancel_other or terminate_other.
    LaterStart,
    /// The backfill that asked for it was cancelled.
    BackfillCancelled,
    /// The schedule was deleted.
    Delete,
}

impl Entry {
    pub(crate) fn single(start: StartId, verdict: Verdict, decided_at: Timestamp) -> Entry {
        let nominal = start.nominal_time();
        Entry {
            from: nominal,
            through: nominal,
            count: 1,
            at_least: false,
            origin: start.origin,
            verdict,
            decided_at,
        }
    }

    /// Whether this entry speaks of an occurrence of the spec.
    pub fn covers(&self, nominal_time: Timestamp) -> bool {
        self.origin == Origin::Spec && self.from <= nominal_time && nominal_time <= self.through
    }
}
