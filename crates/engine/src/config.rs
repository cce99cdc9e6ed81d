//! What an operator can set about the engine.

use std::sync::Arc;

use jiff::SignedDuration;
use punctual_core::Limits;

use crate::shard::Settings;

/// What an operator can set about the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// This process, among those that share a database.
    pub node: String,
    /// Bounds of a schedule.
    pub limits: Limits,
    /// Bounds of a shard.
    pub shard: Settings,
    /// How long the right to drive a shard lasts without being renewed; 5 s.
    pub shard_lease: SignedDuration,
    /// Fire by the database's clock, so that all nodes agree, whatever their own clocks say; no.
    pub follow_database_clock: bool,
    /// How long a worker may be silent, unless it or its run says otherwise; 30 s, at least 1 s.
    pub worker_lease: SignedDuration,
    /// How long ended runs are kept; 7 days.
    pub run_retention: SignedDuration,
    /// How long verdicts of occurrences that did not start are kept; 30 days.
    pub ledger_retention: SignedDuration,
    /// Ended runs that are kept at most, whatever their age; no bound.
    pub runs_kept_max: Option<u64>,
    /// Verdicts that are kept at most, whatever their age; no bound.
    pub ledger_kept_max: Option<u64>,
    /// How often retention looks; 1 minute.
    pub retention_pause: SignedDuration,
    /// Requests that may wait for an answer at a time; beyond it callers are told to come back later.
    pub requests_max: usize,
    /// The last bytes of a run's log that are kept.
    pub log_tail_bytes_max: usize,
    /// The queues of this name have runs that stand for something that goes on elsewhere. One that is asked to stop is taken
    /// over all the same if its worker is lost, so that the wish is passed on and its end awaited; none.
    pub followed_queue: Option<Arc<str>>,
}

impl Default for EngineConfig {
    fn default() -> EngineConfig {
        EngineConfig {
            node: "node-1".into(),
            limits: Limits::default(),
            shard: Settings::default(),
            shard_lease: SignedDuration::from_secs(5),
            follow_database_clock: false,
            worker_lease: SignedDuration::from_secs(30),
            run_retention: SignedDuration::from_hours(7 * 24),
            ledger_retention: SignedDuration::from_hours(30 * 24),
            runs_kept_max: None,
            ledger_kept_max: None,
            retention_pause: SignedDuration::from_mins(1),
            requests_max: 20_000,
            log_tail_bytes_max: 16_384,
            followed_queue: None,
        }
    }
}
