//! Who drives what: nothing stays without an owner, nothing has two, and shares are fair, once nodes had the time to see to it.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use punctual_store::{Epoch, NodeId, Roster};

use super::{Violation, broken};
use crate::world::World;

/// What calls, batches on their way and the reading of timers take, beside leases and rounds.
const SLACK: SignedDuration = SignedDuration::from_secs(45);

/// Who drives what at a moment, in truth.
pub struct Ownership {
    /// Since when nothing has happened to a node, to the database, or to a call of a round.
    pub calm: SignedDuration,
    /// How long the right to drive a shard lasts.
    pub lease: SignedDuration,
    /// Whoever drives each shard, among nodes that can do something, and in which epoch.
    pub drivers: Vec<Vec<(NodeId, Epoch)>>,
    /// What the database knows.
    pub roster: Roster,
}

impl Ownership {
    /// A dead node's lease is over after its length; others see that in their next round.
    fn failover(&self) -> SignedDuration {
        self.lease + self.lease / 3 + SLACK
    }
}

/// Each shard is driven by one node, after a lease and a round without trouble; after as much again the shares are fair.
/// Says whether that could be judged.
pub fn check_owners(world: &World) -> Result<bool, Violation> {
    let Some(ownership) = world.ownership().filter(|found| found.calm > found.failover()) else {
        return Ok(false);
    };
    let current = |shard: usize| ownership.roster.leases.iter().find(|lease| lease.shard.0 as usize == shard);
    for (shard, drivers) in ownership.drivers.iter().enumerate() {
        let epoch = current(shard).map(|lease| lease.epoch);
        match &drivers[..] {
            [] => broken("nothing stays without an owner", format!("nobody drives shard {shard}"))?,
            [(_, driven)] if Some(*driven) == epoch => {}
            others => {
                let seen = format!("shard {shard} in {epoch:?} is driven by {others:?}");
                broken("nothing has two owners for long", seen)?;
            }
        }
    }
    if ownership.calm > ownership.failover() * 2 {
        check_shares(&ownership)?;
    }
    Ok(true)
}

/// No two of those who take part drive numbers of shards that differ by more than one.
fn check_shares(ownership: &Ownership) -> Result<(), Violation> {
    let Roster { now, nodes, .. } = &ownership.roster;
    let mut active: Vec<_> = nodes.iter().filter(|seen| seen.expires_at > *now).collect();
    if active.iter().any(|seen| !seen.draining) {
        active.retain(|seen| !seen.draining);
    }
    let mut shares: BTreeMap<&NodeId, usize> = active.iter().map(|seen| (&seen.node, 0)).collect();
    for (node, _) in ownership.drivers.iter().flatten() {
        *shares.entry(node).or_default() += 1;
    }
    let (least, most) = (shares.values().min(), shares.values().max());
    let fair = shares.len() == active.len() && least.zip(most).is_some_and(|(least, most)| most - least <= 1);
    if fair { Ok(()) } else { broken("shares are fair", format!("{shares:?} of {} nodes", active.len())) }
}
