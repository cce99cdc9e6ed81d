//! The polls that wait, by the worker that made them: a worker that shuts down has them answered.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Workers that have shut down and are remembered: a poll of theirs may have been on its way.
const GONE_MAX: usize = 1_000;

/// The polls that wait, by the key of their worker.
#[derive(Default)]
pub(crate) struct Polls(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    waiting: BTreeMap<Arc<str>, Worker>,
    gone: VecDeque<Arc<str>>,
}

#[derive(Default)]
struct Worker {
    polls: usize,
    end: Arc<Notify>,
}

impl Polls {
    /// A poll of a worker waits until its place is dropped; it is told to end when the worker shuts down. Workers without a key
    /// are not told apart, so none of theirs is ended.
    pub(super) fn enter(&self, key: &str) -> (Place<'_>, impl Future<Output = ()> + use<>) {
        let (key, mut inner) = (Arc::<str>::from(key), self.inner());
        let is_gone = inner.gone.contains(&key);
        let worker = inner.waiting.entry(key.clone()).or_default();
        worker.polls += 1;
        // Made under the lock, so that it hears of every end from now on.
        let heard = worker.end.clone().notified_owned();
        let ended = async move {
            if !is_gone {
                heard.await;
            }
        };
        (Place { polls: self, key }, ended)
    }

    /// A worker shuts down: its polls are answered with nothing.
    pub(super) fn end(&self, key: &str) {
        if key.is_empty() {
            return;
        }
        let mut inner = self.inner();
        if inner.gone.len() == GONE_MAX {
            inner.gone.pop_front();
        }
        inner.gone.push_back(key.into());
        if let Some(worker) = inner.waiting.get(key) {
            worker.end.notify_waiters();
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A poll that waits.
pub(super) struct Place<'a> {
    polls: &'a Polls,
    key: Arc<str>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut inner = self.polls.inner();
        if let Some(worker) = inner.waiting.get_mut(&self.key) {
            worker.polls -= 1;
            if worker.polls == 0 {
                inner.waiting.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_worker_that_shuts_down_has_its_polls_ended_and_no_others() {
        let polls = Polls::default();
        let ((one, ended), (other, goes_on), (nameless, waits)) =
            (polls.enter("a"), polls.enter("b"), polls.enter(""));
        polls.end("a");
        polls.end("");
        assert!(ended.now_or_never().is_some());
        assert!(goes_on.now_or_never().is_none());
        assert!(waits.now_or_never().is_none());
        let (late, ended) = polls.enter("a");
        assert!(ended.now_or_never().is_some(), "a poll that was on its way ends too");
        drop((one, other, nameless, late));
        assert!(polls.inner().waiting.is_empty());
        (0..2 * GONE_MAX).for_each(|key| polls.end(&key.to_string()));
        assert_eq!(polls.inner().gone.len(), GONE_MAX);
    }
}
