//! Queues, which are declared before anything can be put into them.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::key::QueueKey;

/// A queue to declare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewQueue {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// What can be changed later.
    pub settings: QueueSettings,
    /// When it was declared.
    pub created_at: Timestamp,
}

/// What can be set about a queue, and changed while runs are in it. A bound that is lowered stops nothing that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// For people.
    pub description: Arc<str>,
    /// Runs that workers may have at a time, all together.
    pub concurrency_max: Option<u32>,
    /// Runs that one worker may have at a time.
    pub worker_concurrency_max: Option<u32>,
    /// How many attempts may begin in any window of time.
    pub rate: Option<Rate>,
    /// Runs of one key that workers may have at a time.
    pub key_concurrency_max: Option<u32>,
    /// How many attempts of one key may begin in any window of time.
    pub key_rate: Option<Rate>,
    /// How much later a run counts as made for each step of its priority: so old runs go before new ones of a better
    /// priority in the end, and nobody waits for ever.
    pub priority_step: SignedDuration,
    /// Nothing is claimed.
    pub paused: bool,
}

impl Default for QueueSettings {
    fn default() -> QueueSettings {
        QueueSettings {
            description: "".into(),
            concurrency_max: None,
            worker_concurrency_max: None,
            rate: None,
            key_concurrency_max: None,
            key_rate: None,
            priority_step: SignedDuration::from_secs(60),
            paused: false,
        }
    }
}

impl QueueSettings {
    /// Whether keys have limits of their own; only then is each key served in turn.
    pub fn is_keyed(&self) -> bool {
        self.key_concurrency_max.is_some() || self.key_rate.is_some()
    }

    /// The place of a run among those that wait: lower first, and by key among equals.
    pub fn rank(&self, created_at: Timestamp, priority: i16) -> i64 {
        let step = i64::try_from(self.priority_step.as_millis()).unwrap_or(i64::MAX);
        created_at.as_millisecond().saturating_add(step.saturating_mul(priority.into()))
    }
}

/// So many in any window of this length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many; at least 1.
    pub starts_max: u32,
    /// The length of the window.
    pub per: SignedDuration,
}

/// A declared queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its key.
    pub queue: QueueKey,
    /// What it was declared with.
    pub made: NewQueue,
}

/// How much is in a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueDepth {
    /// May be claimed.
    pub ready: u64,
    /// Will be tried again later.
    pub backing_off: u64,
    /// Workers have them.
    pub running: u64,
    /// When the run that is first in line was made.
    pub first_made_at: Option<Timestamp>,
}
