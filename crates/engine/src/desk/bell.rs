//! How those who wait for runs are woken: by the arrival of one, and where a queue has limits, by room for one.
//!
//! Where nodes share a database, whoever begins to wait tells the others that runs are wanted. They tell of the next one that
//! becomes ready, once, when nobody waits for it at home; and always where a queue has limits: whoever waits at home may not be
//! allowed to take what there is. So busy nodes tell each other nothing, and what came in between is made up for: who hears that
//! runs are wanted tells at once if some became ready since the last word.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use punctual_store::{Keeper, News, QueueKey, QueueSettings};
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
    /// Others know that somebody waits here.
    announced: bool,
    /// Somebody waits at another node.
    wanted: bool,
    /// It rang, and others were not told.
    untold: bool,
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
        self.ring_for(queue, 1);
    }

    /// So much has become ready: as many are woken.
    pub(crate) fn ring_for(&self, queue: QueueKey, count: usize) {
        let concerns_others = self.with_bell(queue, |bell| {
            for _ in 0..count.min(bell.waiting.max(1)) {
                bell.ring();
            }
            bell.limited || bell.waiting == 0
        });
        if concerns_others {
            self.tell_ready(queue);
        }
    }

    /// Another node says so.
    pub(crate) fn ring_here(&self, queue: QueueKey) {
        self.with_bell(queue, |bell| {
            bell.announced = false;
            bell.ring();
        });
    }

    /// Another node may have said so, and was not heard.
    pub(crate) fn ring_all(&self) {
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        for bell in bells.0.values_mut() {
            bell.announced = false;
            bell.ring();
        }
    }

    /// A worker has room again: where there are limits, somebody may have waited for that.
    pub(super) fn ring_for_room(&self, queue: QueueKey) {
        if self.with_bell(queue, |bell| bell.limited) {
            self.ring(queue);
        }
    }

    fn tell_ready(&self, queue: QueueKey) {
        if !self.node.shared {
            return;
        }
        let wanted = self.with_bell(queue, |bell| {
            bell.untold = !bell.wanted;
            std::mem::take(&mut bell.wanted)
        });
        if wanted {
            self.store.tell(News::Ready(queue));
        }
    }

    /// Somebody waits at another node.
    pub(crate) fn wanted_at(&self, queue: QueueKey, at: Keeper) {
        if at == self.node.keeper {
            return;
        }
        let untold = self.with_bell(queue, |bell| {
            bell.wanted = true;
            bell.untold
        });
        if untold {
            self.tell_ready(queue);
        }
    }

    /// Somebody found nothing, and waits: others are told, unless they know.
    pub(super) fn announce(&self, queue: QueueKey) {
        if self.node.shared && !self.with_bell(queue, |bell| std::mem::replace(&mut bell.announced, true)) {
            self.store.tell(News::Wanted { queue, at: self.node.keeper });
        }
    }

    /// Others may not know who waits here.
    pub(crate) fn announce_again(&self) {
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        for (queue, bell) in &mut bells.0 {
            bell.announced = bell.waiting > 0;
            if bell.announced {
                self.store.tell(News::Wanted { queue: *queue, at: self.node.keeper });
            }
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
            let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
            for bell in bells.0.values_mut().filter(|bell| bell.waiting > 0) {
                bell.announced = false;
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
