//! The reference store keeps the contract that it defines.

use std::cell::RefCell;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use jiff::{SignedDuration, Timestamp};
use punctual_store::Store;
use punctual_store::conformance::{Subject, chaos, exercise, model};
use punctual_store::memory::Memory;

#[derive(Default)]
struct InMemory {
    last: RefCell<Option<Arc<Memory>>>,
}

impl Subject for InMemory {
    async fn create(&self) -> Arc<dyn Store> {
        let memory = Arc::new(Memory::new(4, Timestamp::UNIX_EPOCH));
        *self.last.borrow_mut() = Some(memory.clone());
        memory
    }

    async fn advance(&self, by: SignedDuration) {
        let memory = self.last.borrow().clone().expect("a store was made");
        let now = memory.now().await.expect("memory answers");
        memory.set_now(now + by);
    }

    fn forgets(&self) -> bool {
        true
    }

    async fn reopen(&self, store: Arc<dyn Store>) -> Arc<dyn Store> {
        store
    }
}

/// Memory answers at once, so nothing ever waits.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("memory made somebody wait"),
    }
}

#[test]
fn memory_keeps_the_contract() {
    at_once(exercise(&InMemory::default()));
}

#[test]
fn random_work_keeps_it_too() {
    for seed in 100..120 {
        at_once(model::exercise(&InMemory::default(), seed));
        at_once(chaos::exercise(&InMemory::default(), seed));
    }
}
