//! The contract as tests: every store passes them, so all stores mean the same, and the simulator is honest.
//!
//! A store's own tests implement [`Subject`] and call [`exercise`]. Each file is one theme; [`model`] compares a store with
//! [`Memory`](crate::memory::Memory) operation by operation, from a seed.

mod support;
mod commit;
mod names;
mod lease;
mod timers;
mod ledger;
mod runs;
mod claims;
mod queues;
mod query;
mod retention;
mod recovery;
mod concurrency;
pub mod model;

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

/// Seeds of the comparison with the reference store that [`exercise`] runs.
const SEEDS: u64 = 8;

/// Tries everything. A store that does not keep the contract panics with the sentence that it broke.
pub async fn exercise(subject: &impl Subject) {
    commit::exercise(subject).await;
    names::exercise(subject).await;
    lease::exercise(subject).await;
    timers::exercise(subject).await;
    ledger::exercise(subject).await;
    runs::exercise(subject).await;
    claims::exercise(subject).await;
    queues::exercise(subject).await;
    query::exercise(subject).await;
    retention::exercise(subject).await;
    recovery::exercise(subject).await;
    concurrency::exercise(subject).await;
    for seed in 0..SEEDS {
        model::exercise(subject, seed).await;
    }
}
