//! A schedule as a store gives it back.

use jiff::Timestamp;
use punctual_core::ScheduleKey;

use crate::Bytes;
use crate::key::{Sequence, ShardId, TreeKey};

/// Which schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeRef {
    /// By its key.
    Key(TreeKey),
    /// By its name: the one that holds the name now.
    Name(ScheduleKey),
}

/// A schedule as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTree {
    /// Its key.
    pub tree: TreeKey,
    /// The shard that it belongs to.
    pub shard: ShardId,
    /// Its name.
    pub key: ScheduleKey,
    /// Counts its transitions.
    pub sequence: Sequence,
    /// When it wants to be woken.
    pub due_time: Option<Timestamp>,
    /// What the user asked for.
    pub definition: Bytes,
    /// Everything that moves with each start.
    pub state: Bytes,
    /// The result and failure of the last run.
    pub completion: Option<Bytes>,
}
