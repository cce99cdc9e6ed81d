//! How identities and states look in columns: the same numbers in every database, so that rows can move between them.

use punctual_core::{Origin, Outcome, RequestKey, StopKind};

use crate::key::RunKey;
use crate::query::Lifespan;

/// The request of a start; no request has the key 0.
pub fn request(origin: Origin) -> u64 {
    match origin {
        Origin::Spec => 0,
        Origin::Request(key) => key.0,
    }
}

/// Who asked for a start.
pub fn origin(request: u64) -> Origin {
    match request {
        0 => Origin::Spec,
        key => Origin::Request(RequestKey(key)),
    }
}

/// An unsigned number as a signed one that sorts alike.
pub fn sorted(number: u64) -> i64 {
    (number ^ 1 << 63) as i64
}

/// The unsigned number again.
pub fn unsorted(number: i64) -> u64 {
    number as u64 ^ 1 << 63
}

const LIFESPANS: [Lifespan; 3] = [Lifespan::Open, Lifespan::Completed, Lifespan::Deleted];
const OUTCOMES: [Outcome; 5] =
    [Outcome::Succeeded, Outcome::Failed, Outcome::TimedOut, Outcome::Cancelled, Outcome::Terminated];

/// The number of a part of a schedule's life.
pub fn lifespan_number(lifespan: Lifespan) -> i64 {
    match lifespan {
        Lifespan::Open => 0,
        Lifespan::Completed => 1,
        Lifespan::Deleted => 2,
    }
}

/// The part of a schedule's life of a number.
pub fn lifespan(number: i64) -> Option<Lifespan> {
    LIFESPANS.get(usize::try_from(number).ok()?).copied()
}

/// The number of an outcome.
pub fn outcome_number(outcome: Outcome) -> i64 {
    match outcome {
        Outcome::Succeeded => 0,
        Outcome::Failed => 1,
        Outcome::TimedOut => 2,
        Outcome::Cancelled => 3,
        Outcome::Terminated => 4,
    }
}

/// The outcome of a number.
pub fn outcome(number: i64) -> Option<Outcome> {
    OUTCOMES.get(usize::try_from(number).ok()?).copied()
}

/// The number of a request to stop; none is 0, and harder is more.
pub fn stop_number(kind: StopKind) -> i64 {
    match kind {
        StopKind::Cancel => 1,
        StopKind::Terminate => 2,
    }
}

/// The request to stop of a number; the outer nothing is a number that means nothing.
pub fn stop(number: i64) -> Option<Option<StopKind>> {
    [None, Some(StopKind::Cancel), Some(StopKind::Terminate)].get(usize::try_from(number).ok()?).copied()
}

/// Where a live run is, as its column says: it may be claimed.
pub const READY: i64 = 0;
/// It will be tried again later.
pub const BACKING_OFF: i64 = 1;
/// A worker has it.
pub const RUNNING: i64 = 2;

/// The keys of runs as bytes.
pub fn run_keys(runs: &[RunKey]) -> Vec<u8> {
    runs.iter().flat_map(|run| run.0.to_le_bytes()).collect()
}

/// The keys of runs again.
pub fn runs_of(bytes: &[u8]) -> Vec<RunKey> {
    bytes.as_chunks().0.iter().map(|bytes| RunKey(i64::from_le_bytes(*bytes))).collect()
}
