//! How those who wait for runs are woken: by the arrival of one, and where a queue has limits, by room for one.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use punctual_store::{QueueKey, QueueSettings};
use tokio::sync::Notify;

use super::Desk;

/// The bells of all queues.
#[derive(Default)]
pub(crate) struct Bells(HashMap<QueueKey, Bell>);

#[derive(Clone, Default)]
struct Bell {
    bell: Arc<Notify>,
    /// Whoever is woken may not be allowed to take what there is, so all are woken.
    limited: bool,
}

impl Desk {
    /// Takes note of a queue's settings.
    pub(crate) fn learn(&self, queue: QueueKey, settings: &QueueSettings) {
        let limited = settings.is_keyed()
            || settings.concurrency_max.is_some()
            || settings.worker_concurrency_max.is_some()
            || settings.rate.is_some();
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        bells.0.entry(queue).or_default().limited = limited;
    }

    /// The bell of a queue.
    pub(super) fn bell(&self, queue: QueueKey) -> Arc<Notify> {
        self.any_bell(queue).bell
    }

    fn any_bell(&self, queue: QueueKey) -> Bell {
        let mut bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
        bells.0.entry(queue).or_default().clone()
    }

    /// Something has become ready, or the settings have changed.
    pub(crate) fn ring(&self, queue: QueueKey) {
        let Bell { bell, limited } = self.any_bell(queue);
        if limited {
            bell.notify_waiters();
        } else {
            bell.notify_one();
        }
    }

    /// A worker has room again: where there are limits, somebody may have waited for that.
    pub(super) fn ring_for_room(&self, queue: QueueKey) {
        let Bell { bell, limited } = self.any_bell(queue);
        if limited {
            bell.notify_waiters();
        }
    }
}
