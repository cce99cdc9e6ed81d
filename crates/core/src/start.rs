//! One occurrence on its way to a run, and the life of that run.

use jiff::Timestamp;

use crate::id::{Origin, RequestKey, StartId};
use crate::ledger::NotStarted;
use crate::mutant::{self, Mutant};
use crate::schedule::{OverlapPolicy, Payload};
use crate::snapshot::RecentSnapshot;

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

/// A run that ended, as describe remembers it: small, since every schedule keeps a few.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecentRun {
    nominal_ms: i64,
    /// The key of the request, or 0 for a start of the spec.
    request: u64,
    /// The outcome, the delay before the start and the length of the run; see [`pack`].
    packed: u64,
}

const OUTCOMES: [Outcome; 5] =
    [Outcome::Succeeded, Outcome::Failed, Outcome::TimedOut, Outcome::Cancelled, Outcome::Terminated];

impl RecentRun {
    pub(crate) fn new(
        id: StartId,
        started_at: Timestamp,
        completed_at: Timestamp,
        outcome: Outcome,
    ) -> RecentRun {
        let request = match id.origin {
            Origin::Spec => 0,
            Origin::Request(key) => key.0,
        };
        // A clock that was behind may have seen the start before its time; that is told as on time.
        let delay_ms = (started_at.as_millisecond() - id.nominal_ms).max(0);
        let length_ms = completed_at.as_millisecond() - started_at.as_millisecond().max(id.nominal_ms);
        let place = OUTCOMES.iter().position(|known| *known == outcome).unwrap_or(0) as u64;
        let packed = place | pack(delay_ms) << 3 | pack(length_ms.max(0)) << 33;
        RecentRun { nominal_ms: id.nominal_ms, request, packed }
    }

    /// As stores keep it.
    pub fn snapshot(&self) -> RecentSnapshot {
        RecentSnapshot { nominal_ms: self.nominal_ms, request: self.request, packed: self.packed }
    }

    /// What a store has kept.
    pub fn restore(snapshot: RecentSnapshot) -> RecentRun {
        let RecentSnapshot { nominal_ms, request, packed } = snapshot;
        RecentRun { nominal_ms, request, packed }
    }

    /// Which start it was.
    pub fn id(&self) -> StartId {
        let origin = if self.request == 0 { Origin::Spec } else { Origin::Request(RequestKey(self.request)) };
        StartId { nominal_ms: self.nominal_ms, origin }
    }

    /// How it ended.
    pub fn outcome(&self) -> Outcome {
        OUTCOMES[(self.packed & 7) as usize % OUTCOMES.len()]
    }

    /// When it began: to the millisecond, or to the second if it began more than six days after its time.
    pub fn started_at(&self) -> Timestamp {
        moment(self.nominal_ms + unpack(self.packed >> 3))
    }

    /// When it ended: as exact as its start, and to the second if it ran for more than six days.
    pub fn completed_at(&self) -> Timestamp {
        moment(self.nominal_ms + unpack(self.packed >> 3) + unpack(self.packed >> 33))
    }
}

const SMALL_MAX: i64 = (1 << 29) - 1;

/// A length of time in thirty bits: milliseconds while they fit into twenty-nine, else seconds, up to 17 years.
fn pack(millis: i64) -> u64 {
    if millis <= SMALL_MAX { millis as u64 } else { 1 << 29 | (millis / 1_000).min(SMALL_MAX) as u64 }
}

fn unpack(bits: u64) -> i64 {
    let small = (bits & SMALL_MAX as u64) as i64;
    if bits >> 29 & 1 == 1 { small * 1_000 } else { small }
}

fn moment(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recent_run_gives_back_what_it_was_made_of() {
        let at = |seconds: i64| Timestamp::from_second(1_700_000_000 + seconds).unwrap();
        let origins = [Origin::Spec, Origin::Request(RequestKey(7))];
        for (delay, length) in [(0, 0), (1, 3_600), (500_000, 700_000), (86_400 * 300, 86_400 * 400)] {
            for (origin, outcome) in
                origins.into_iter().flat_map(|origin| OUTCOMES.map(|outcome| (origin, outcome)))
            {
                let id = StartId::new(at(0), origin);
                let run = RecentRun::new(id, at(delay), at(delay + length), outcome);
                assert_eq!((run.id(), run.outcome()), (id, outcome));
                assert_eq!((run.started_at(), run.completed_at()), (at(delay), at(delay + length)));
            }
        }
        assert_eq!(size_of::<RecentRun>(), 24);
    }
}
