//! The simulated store keeps the contract that every store keeps, so what holds in worlds holds on them.

use std::cell::RefCell;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use jiff::{SignedDuration, Timestamp};
use punctual_sim::store::{SimulatedStore, at_once};
use punctual_store::Store;
use punctual_store::conformance::{Subject, exercise};

/// The store that was made last.
#[derive(Default)]
struct Simulated(RefCell<Option<Arc<SimulatedStore>>>);

impl Subject for Simulated {
    async fn create(&self) -> Arc<dyn Store> {
        let store = Arc::new(SimulatedStore::new(4, Timestamp::UNIX_EPOCH));
        *self.0.borrow_mut() = Some(store.clone());
        store
    }

    async fn advance(&self, by: SignedDuration) {
        let store = self.0.borrow().clone().expect("a store was made");
        store.set_now(at_once(store.now()) + by);
    }

    fn forgets(&self) -> bool {
        true
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        store
    }
}

#[test]
fn the_simulated_store_keeps_the_contract() {
    let subject = Simulated::default();
    let suite = pin!(exercise(&subject));
    let answer = suite.poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(answer, Poll::Ready(()), "the simulated store made somebody wait");
}
