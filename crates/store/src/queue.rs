//! Queues, which are declared before anything can be put into them.

use std::sync::Arc;

use jiff::Timestamp;

use crate::Bytes;
use crate::key::QueueKey;

/// A queue to declare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewQueue {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its settings, as a record.
    pub settings: Bytes,
    /// When it was declared.
    pub created_at: Timestamp,
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
}
