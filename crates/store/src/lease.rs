//! The right to drive a shard, for a while.

use jiff::Timestamp;

use crate::key::{Epoch, NodeId, ShardId};

/// The right of a node to drive a shard. It saves work; no promise rests on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Which shard.
    pub shard: ShardId,
    /// Who.
    pub node: NodeId,
    /// The fencing number: every commit of the driver carries it.
    pub epoch: Epoch,
    /// Until when, by the database's clock.
    pub expires_at: Timestamp,
}
