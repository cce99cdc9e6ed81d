//! How those who wait for runs are woken: by the arrival of one, and where a queue has limits, by room for one.
//!
//! Where nodes share a database, others are told when nobody waits here, and always where a queue has limits: whoever waits here
//! may not be allowed to take what there is.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use punctual_store::{News, QueueKey, QueueSettings};
use tokio::sync::Notify;

use super::Desk;

/// How often a queue is looked at while somebody waits for it, though no bell rang: news may get lost.
const SWEEP: Duration = Duration::from_secs(5);

/// The bells of all queues.
#[derive(Default)]
pub(crate) struct Bells(HashMap<QueueKey, Bell>);

#[derive(Default)]
struct Bell {
    bell: Arc<Notify>,
    /// Whoever is woken may not be allowed to take what there is, so all are woken.
    limited: bool,
    /// How many wait here.
    waiting: usize,
    /// How often it rang.
    rings: u64,
}

impl Bell {
    fn ring(&mut self) {
        self.rings += 1;
        if self.limited {
            self.bell.notify_waiters();
        } else {
            self.bell.notify_one();
        }
    }
}

impl Desk {
    /// Takes note of a queue's settings.
    pub(crate) fn learn(&self, queue: QueueKey, settings: &QueueSettings) {
        let limited = settings.is_keyed()
            || settings.concurrency_max.is_some()
            || settings.worker_concurrency_max.is_some()
            || settings.rate.is_some();
        self.with_bell(queue, |bell| bell.limited = limited);
    }

    fn with_bell<T>(&self, queue: QueueKey, act: impl FnOnce(&mut Bell) -> T) -> T {
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        act(bells.0.entry(queue).or_default())
    }

    /// Something has become ready, or the settings have changed.
    pub(crate) fn ring(&self, queue: QueueKey) {
        let concerns_others = self.with_bell(queue, |bell| {
            bell.ring();
            bell.limited || bell.waiting == 0
        });
        if concerns_others {
            self.tell_ready(queue);
        }
    }

    /// Another node says so.
    pub(crate) fn ring_here(&self, queue: QueueKey) {
        self.with_bell(queue, Bell::ring);
    }

    /// Another node may have said so, and was not heard.
    pub(crate) fn ring_all(&self) {
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        bells.0.values_mut().for_each(Bell::ring);
    }

    /// A worker has room again: where there are limits, somebody may have waited for that.
    pub(super) fn ring_for_room(&self, queue: QueueKey) {
        if self.with_bell(queue, |bell| bell.limited) {
            self.ring(queue);
        }
    }

    fn tell_ready(&self, queue: QueueKey) {
        if self.node.shared {
            self.store.tell(News::Ready(queue));
        }
    }

    /// Somebody waits for a queue, until this is dropped.
    pub(super) fn wait_at(&self, queue: QueueKey) -> Waiting<'_> {
        let bell = self.with_bell(queue, |bell| {
            bell.waiting += 1;
            bell.bell.clone()
        });
        Waiting { desk: self, queue, bell, heard: 0 }
    }

    /// Has somebody look now and then at each queue that somebody waits for.
    pub(crate) async fn sweep(self: Arc<Desk>) {
        loop {
            tokio::time::sleep(SWEEP).await;
            let bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
            for bell in bells.0.values().filter(|bell| bell.waiting > 0) {
                bell.bell.notify_one();
            }
        }
    }
}

/// Somebody who waits for a queue.
pub(super) struct Waiting<'a> {
    desk: &'a Desk,
    queue: QueueKey,
    pub(super) bell: Arc<Notify>,
    /// How often the bell had rung at the last look.
    heard: u64,
}

impl Waiting<'_> {
    /// It looks now: whatever rang before has been heard.
    pub(super) fn look(&mut self) {
        self.heard = self.desk.with_bell(self.queue, |bell| bell.rings);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let (heard, queue) = (self.heard, self.queue);
        let unheard = self.desk.with_bell(queue, |bell| {
            bell.waiting -= 1;
            bell.waiting == 0 && bell.rings != heard
        });
        // It rang for somebody who has left without another look: others may be waiting elsewhere.
        if unheard {
            self.desk.tell_ready(queue);
        }
    }
}
