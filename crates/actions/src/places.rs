//! How many calls are in flight: in all, and to each target.
//!
//! A call first waits for a place at its target, and only then for one of the total. So those who wait for a dead target
//! take nothing from the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of a caller.
#[derive(Debug)]
pub(crate) struct Places {
    total: Arc<Semaphore>,
    total_max: usize,
    per_target_max: usize,
    targets: Mutex<HashMap<String, Target>>,
}

#[derive(Debug)]
struct Target {
    places: Arc<Semaphore>,
    /// Calls that wait here or are in flight; a target with none is forgotten.
    calls: usize,
}

/// The right to be in flight, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _total: OwnedSemaphorePermit,
    _target: OwnedSemaphorePermit,
    _visit: Visit,
}

impl Places {
    pub(crate) fn new(total_max: usize, per_target_max: usize) -> Arc<Places> {
        Arc::new(Places {
            total: Arc::new(Semaphore::new(total_max)),
            total_max,
            per_target_max,
            targets: Mutex::new(HashMap::new()),
        })
    }

    /// Waits for a place. Those of one target are served in the order in which they came.
    pub(crate) async fn take(self: &Arc<Places>, target: &str) -> Place {
        let (visit, places) = self.visit(target);
        let never_closed = "places are never closed";
        let target = places.acquire_owned().await.expect(never_closed);
        let total = self.total.clone().acquire_owned().await.expect(never_closed);
        Place { _total: total, _target: target, _visit: visit }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.total_max - self.total.available_permits()
    }

    pub(crate) fn targets(&self) -> usize {
        self.lock().len()
    }

    fn visit(self: &Arc<Places>, target: &str) -> (Visit, Arc<Semaphore>) {
        let mut targets = self.lock();
        let entry = targets
            .entry(target.to_owned())
            .or_insert_with(|| Target { places: Arc::new(Semaphore::new(self.per_target_max)), calls: 0 });
        entry.calls += 1;
        (Visit { places: self.clone(), target: target.to_owned() }, entry.places.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Target>> {
        self.targets.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A call that waits for a target or is in flight to it.
#[derive(Debug)]
struct Visit {
    places: Arc<Places>,
    target: String,
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut targets = self.places.lock();
        if let Some(target) = targets.get_mut(&self.target) {
            target.calls -= 1;
            if target.calls == 0 {
                targets.remove(&self.target);
            }
        }
    }
}
