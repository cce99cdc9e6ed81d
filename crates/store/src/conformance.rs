//! The contract as tests: every store passes them, so all stores mean the same, and the simulator is honest.
//!
//! A store's own tests implement [`Subject`] and call [`exercise`]. Each file is one theme; [`model`] compares a store with
//! [`Memory`](crate::memory::Memory) operation by operation, from a seed, and [`chaos`] changes limits at random.

mod support;
mod commit;
mod names;
mod lease;
mod roster;
mod timers;
mod ledger;
mod runs;
mod claims;
mod limits;
mod priority;
mod keys;
mod dedup;
mod requests;
mod dead_letters;
mod queues;
mod settings;
mod query;
mod retention;
mod recovery;
mod concurrency;
pub mod model;
pub mod chaos;

use std::future::Future;
use std::sync::Arc;

use jiff::SignedDuration;

use crate::Store;

/// A kind of store to try.
pub trait Subject {
    /// An empty store with four shards.
    fn create(&self) -> impl Future<Output = Arc<dyn Store>>;

    /// Lets time pass by the clock of the store that was made last: moves it, or waits. It is asked for milliseconds.
    fn advance(&self, by: SignedDuration) -> impl Future<Output = ()>;

    /// Whether a store that has ended has forgotten everything, so that there is nothing to open again.
    fn forgets(&self) -> bool {
        false
    }

    /// Ends a store and opens what it has kept; one that forgets is not asked.
    fn reopen(&self, store: Arc<dyn Store>) -> impl Future<Output = Arc<dyn Store>>;
}

/// Seeds of the comparison with the reference store, and of the random limits, that [`exercise`] runs.
const SEEDS: u64 = 8;

/// Tries everything. A store that does not keep the contract panics with the sentence that it broke.
pub async fn exercise(subject: &impl Subject) {
    commit::exercise(subject).await;
    names::exercise(subject).await;
    lease::exercise(subject).await;
    roster::exercise(subject).await;
    timers::exercise(subject).await;
    ledger::exercise(subject).await;
    runs::exercise(subject).await;
    claims::exercise(subject).await;
    limits::exercise(subject).await;
    priority::exercise(subject).await;
    keys::exercise(subject).await;
    dedup::exercise(subject).await;
    requests::exercise(subject).await;
    dead_letters::exercise(subject).await;
    queues::exercise(subject).await;
    settings::exercise(subject).await;
    query::exercise(subject).await;
    retention::exercise(subject).await;
    recovery::exercise(subject).await;
    concurrency::exercise(subject).await;
    for seed in 0..SEEDS {
        model::exercise(subject, seed).await;
        chaos::exercise(subject, seed).await;
    }
}
