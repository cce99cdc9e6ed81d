//! Who holds which shard, and since which epoch.

use jiff::SignedDuration;

use super::Inner;
use crate::{Lease, NodeId, ShardId, StoreError};

impl Inner {
    pub(super) fn acquire(&mut self, shard: ShardId, node: NodeId, ttl: SignedDuration) -> Option<Lease> {
        let (now, (epoch, held)) = (self.now, self.leases.entry(shard).or_default());
        if held.as_ref().is_some_and(|lease| lease.node != node && lease.expires_at > now) {
            return None;
        }
        epoch.0 += 1;
        let lease = Lease { shard, node, epoch: *epoch, expires_at: now + ttl };
        *held = Some(lease.clone());
        Some(lease)
    }

    pub(super) fn renew(&mut self, lease: Lease, ttl: SignedDuration) -> Result<Lease, StoreError> {
        let (now, (epoch, held)) = (self.now, self.leases.entry(lease.shard).or_default());
        if *epoch != lease.epoch || held.is_none() {
            return Err(StoreError::Fenced { epoch: lease.epoch });
        }
        let lease = Lease { expires_at: now + ttl, ..lease };
        *held = Some(lease.clone());
        Ok(lease)
    }

    pub(super) fn release(&mut self, lease: &Lease) {
        let (epoch, held) = self.leases.entry(lease.shard).or_default();
        if *epoch == lease.epoch {
            *held = None;
        }
    }
}
