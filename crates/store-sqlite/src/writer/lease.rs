//! Who may drive a shard, by the clock of this machine, and keys that nobody else will get.

use jiff::{SignedDuration, Timestamp};
use punctual_store::{Epoch, Lease, NodeId, Roster, ShardId, StoreError};

use super::{Answer, Writer};
use crate::fault::Fault;
use crate::value::Time;

impl Writer<'_> {
    /// Takes a shard, if nobody else holds it.
    pub(crate) fn acquire(
        &mut self,
        shard: ShardId,
        node: &NodeId,
        ttl: SignedDuration,
    ) -> Result<Option<Lease>, Fault> {
        let now = Timestamp::now();
        let held = self.known.leases.entry(shard).or_default();
        if held.holder.as_ref().is_some_and(|(holder, expires_at)| *holder != node.0 && *expires_at > now) {
            return Ok(None);
        }
        let epoch = Epoch(held.epoch.0 + 1);
        let lease = Lease { shard, node: node.clone(), epoch, expires_at: later(now, ttl) };
        self.hold(&lease)?;
        Ok(Some(lease))
    }

    /// Makes a lease last longer, if it was not lost.
    pub(crate) fn renew(&mut self, lease: &Lease, ttl: SignedDuration) -> Result<Answer<Lease>, Fault> {
        let held = self.known.leases.get(&lease.shard);
        if !held.is_some_and(|held| held.epoch == lease.epoch && held.holder.is_some()) {
            return Ok(Err(StoreError::Fenced { epoch: lease.epoch }));
        }
        let lease = Lease { expires_at: later(Timestamp::now(), ttl), ..lease.clone() };
        self.hold(&lease)?;
        Ok(Ok(lease))
    }

    /// Gives a shard up; its epoch stays.
    pub(crate) fn release(&mut self, lease: &Lease) -> Result<(), Fault> {
        if let Some(held) = self.known.leases.get_mut(&lease.shard)
            && held.epoch == lease.epoch
        {
            held.holder = None;
            let row = (lease.shard.0, lease.epoch.0 as i64, None::<&str>, None::<i64>);
            self.statements.set_lease.execute(row)?;
        }
        Ok(())
    }

    /// Who holds which shard.
    pub(crate) fn roster(&self) -> Roster {
        let held = self.known.leases.iter().filter_map(|(shard, held)| {
            let (node, expires_at) = held.holder.clone()?;
            Some(Lease { shard: *shard, node: NodeId(node), epoch: held.epoch, expires_at })
        });
        Roster { now: Timestamp::now(), leases: held.collect(), ..Roster::default() }
    }

    /// The first of a block of keys.
    pub(crate) fn reserve(&mut self, count: u32) -> Result<i64, Fault> {
        let first = self.known.next_key;
        self.known.next_key =
            first.checked_add(i64::from(count)).ok_or_else(|| StoreError::unavailable("no keys are left"))?;
        self.statements.set_next_key.execute([self.known.next_key])?;
        Ok(first)
    }

    fn hold(&mut self, lease: &Lease) -> Result<(), Fault> {
        let row =
            (lease.shard.0, lease.epoch.0 as i64, Some(&lease.node.0[..]), Some(Time(lease.expires_at)));
        self.statements.set_lease.execute(row)?;
        let held = self.known.leases.entry(lease.shard).or_default();
        held.epoch = lease.epoch;
        held.holder = Some((lease.node.0.clone(), lease.expires_at));
        Ok(())
    }
}

fn later(now: Timestamp, ttl: SignedDuration) -> Timestamp {
    now.checked_add(ttl).unwrap_or(Timestamp::MAX)
}
