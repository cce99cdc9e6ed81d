//! How many drivers work at the same time.
//!
//! Each shard has a thread. When many of them have something to do at once, they would share the processors with the threads that
//! carry their work to the database and its answers back, and with the database itself if it is on the same machine; and all of
//! them would be late. So as many work as there are processors, one after the other, and those that wait gather more to do.

use std::num::NonZero;
use std::sync::{Condvar, Mutex, PoisonError};

/// Places for drivers that work.
pub(crate) struct Places {
    free: Mutex<usize>,
    given_back: Condvar,
}

impl Places {
    /// One for each processor.
    pub(crate) fn of_this_machine() -> Places {
        Places::new(std::thread::available_parallelism().map_or(1, NonZero::get))
    }

    fn new(count: usize) -> Places {
        Places { free: Mutex::new(count), given_back: Condvar::new() }
    }

    /// Waits for a place; it is given back when this is dropped.
    pub(crate) fn take(&self) -> Place<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.given_back.wait_while(free, |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        Place(self)
    }
}

/// A place, until it is dropped.
pub(crate) struct Place<'a>(&'a Places);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.given_back.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn no_more_work_at_once_than_there_are_places() {
        let (places, working, most) = (Places::new(2), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let _place = places.take();
                        most.fetch_max(working.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        working.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!((1..=2).contains(&most.into_inner()));
        assert_eq!(*places.free.lock().unwrap(), 2, "all were given back");
    }
}
