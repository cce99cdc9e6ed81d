//! Who does it, when: shards, timers, leases and the one clock.

mod error;
pub mod shard;
mod timers;
mod verb;

mod clock;
mod config;
pub mod cluster;
mod driver;
mod inbox;
mod outlet;
mod watchers;
pub mod relay;
mod router;
mod threads;
mod desk;
mod engine;
mod metrics;

pub use clock::{Clock, SystemClock};
pub use config::EngineConfig;
pub use desk::{
    AttemptEnd, CALLBACK_WORKER, CallbackEnd, Claimed, Directive, Pulse, PulseAnswer, QUIET_WORKER, Recorded,
    Report, Sighting,
};
pub use engine::{
    Described, Engine, Enqueued, Health, Listed, NewSchedule, OnDuplicate, RunOrder, RunPage, RunSearch,
    RunView, StrandedQueue, TimerCheck, WhyAnswer,
};
pub use error::EngineError;
pub use metrics::{Counter, Histogram, Metrics, Spread};
pub use outlet::Happened;
pub use timers::Timers;
pub use verb::{Verb, Work};
pub use watchers::Elsewhere;
