//! In what right trees are written: as the owner of one shard, or as a guest in all of them.
//!
//! A guest serves the verbs of clients for trees that another node drives. It carries no epoch, since it owns nothing; the
//! sequence alone decides. It wakes nobody: the store tells the owner of every tree that a guest has written.

use punctual_core::ScheduleKey;
use punctual_store::{Epoch, ShardId, shard_of};

/// In what right.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    /// As the owner, by the epoch of its lease.
    Owner { shard: ShardId, epoch: Epoch },
    /// As a guest, where there are so many shards.
    Guest { shards: u32 },
}

impl Role {
    /// What every write carries.
    pub(super) fn epoch(self) -> Option<Epoch> {
        match self {
            Role::Owner { epoch, .. } => Some(epoch),
            Role::Guest { .. } => None,
        }
    }

    /// Where a new schedule belongs.
    pub(super) fn place_of(self, key: &ScheduleKey) -> ShardId {
        match self {
            Role::Owner { shard, .. } => shard,
            Role::Guest { shards } => shard_of(key, shards),
        }
    }

    pub(super) fn is_guest(self) -> bool {
        matches!(self, Role::Guest { .. })
    }
}
