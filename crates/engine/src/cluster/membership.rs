//! What a node decides about shards, without I/O: told of a roster and of answers, it says what to renew, what to give up and
//! what to take. The simulator runs this code as it is.
//!
//! A round is a beat, [`leases`](Membership::leases) to renew, and [`plan`](Membership::plan). A shard that is given up stays held
//! until its driver has [`ended`](Membership::ended): before that it is not taken again.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use punctual_store::{Keeper, Lease, NodeId, NodeSeen, Roster, ShardId, StoreError};

use super::plan::{is_alive, plan};

/// The shortest wait before a shard is tried again that was not free.
const TRY_AGAIN: SignedDuration = SignedDuration::from_millis(20);

/// Nodes that are gone and remembered; beyond it the first are left to the self-check.
const ORPHANED_MAX: usize = 1_000;

/// A node among those that share a database, and the shards that it has the leases of.
#[derive(Debug)]
pub struct Membership {
    me: NodeId,
    keeper: Keeper,
    shards: u32,
    lease_length: SignedDuration,
    held: BTreeMap<ShardId, Holding>,
    /// Shards whose owner is gone.
    abandoned: BTreeSet<ShardId>,
    /// When a shard may become free that is to be taken.
    look_again: Option<SignedDuration>,
    /// Whoever was on the roster when it was last read.
    known: BTreeSet<Keeper>,
    /// Nodes that are gone, and whose runs this node has not looked for yet.
    orphaned: BTreeSet<Keeper>,
    adopting: bool,
}

/// A shard that this node has the lease of.
#[derive(Debug)]
struct Holding {
    lease: Lease,
    leaving: bool,
}

/// What a roster asks of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Shards that are for others to drive: whoever drives them here is to stop.
    pub give_up: Vec<ShardId>,
    /// Shards to acquire, one after the other.
    pub take: Vec<ShardId>,
}

/// Nodes that are gone, and whose runs somebody has to look after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphans {
    /// Those that are to be struck off the roster then.
    pub gone: Vec<NodeSeen>,
    /// Those that are off the roster already.
    pub left: BTreeSet<Keeper>,
}

impl Membership {
    /// A node that holds nothing yet.
    pub fn new(me: NodeId, keeper: Keeper, shards: u32, lease_length: SignedDuration) -> Membership {
        Membership {
            me,
            keeper,
            shards,
            lease_length,
            held: BTreeMap::new(),
            abandoned: BTreeSet::new(),
            look_again: None,
            known: BTreeSet::new(),
            orphaned: BTreeSet::new(),
            adopting: false,
        }
    }

    /// How many shards it holds, those too that it is giving up.
    pub fn size(&self) -> usize {
        self.held.len()
    }

    /// How long to wait for the next round, if nothing happens before.
    pub fn wait(&mut self) -> SignedDuration {
        let pause = self.lease_length / 3;
        self.look_again.take().map_or(pause, |soon| soon.max(TRY_AGAIN).min(pause))
    }

    /// What is to be renewed.
    pub fn leases(&self) -> Vec<Lease> {
        self.held.values().map(|held| held.lease.clone()).collect()
    }

    /// What became of a renewal. True if the shard was lost: whoever drives it here is to stop.
    pub fn renewed(&mut self, shard: ShardId, answer: &Result<Lease, StoreError>) -> bool {
        match answer {
            Ok(lease) => {
                if let Some(held) = self.held.get_mut(&shard) {
                    held.lease = lease.clone();
                }
                false
            }
            Err(StoreError::Fenced { .. }) => self.give_up(shard),
            // The driver finds out by itself whether its writes still count.
            Err(_) => false,
        }
    }

    /// Whose runs this node is to look after now: those of all that are gone, if it is the one that has been here for longest.
    /// Says nothing more until it is told what came of it.
    pub fn orphans(&mut self, roster: &Roster) -> Option<Orphans> {
        let all: BTreeSet<Keeper> = roster.nodes.iter().map(|seen| seen.keeper).collect();
        self.orphaned.extend(self.known.difference(&all));
        self.known = all;
        while self.orphaned.len() > ORPHANED_MAX {
            self.orphaned.pop_first();
        }
        let first = roster.nodes.iter().find(|seen| seen.expires_at > roster.now);
        if self.adopting || first.is_none_or(|seen| seen.keeper != self.keeper) {
            // Whoever does it may leave too, before it is done: then it will be for this node.
            return None;
        }
        // One that was only silent for a while looks after its runs itself.
        let known = &self.known;
        self.orphaned.retain(|keeper| !known.contains(keeper));
        let gone: Vec<NodeSeen> =
            roster.nodes.iter().filter(|seen| seen.expires_at <= roster.now).cloned().collect();
        let left = std::mem::take(&mut self.orphaned);
        self.adopting = !gone.is_empty() || !left.is_empty();
        self.adopting.then_some(Orphans { gone, left })
    }

    /// The runs of nodes that are gone are looked after, except of those that failed.
    pub fn adopted(&mut self, failed: impl IntoIterator<Item = Keeper>) {
        self.adopting = false;
        self.orphaned.extend(failed);
    }

    /// What a roster asks of this node, after its leases were renewed.
    pub fn plan(&mut self, roster: &Roster) -> Turn {
        let planned = plan(&roster.nodes, &roster.leases, self.shards, roster.now);
        let mine: BTreeSet<ShardId> = (0..self.shards)
            .map(ShardId)
            .filter(|shard| planned[shard.0 as usize].as_ref() == Some(&self.me))
            .collect();
        let mut give_up: Vec<ShardId> =
            self.held.keys().filter(|shard| !mine.contains(shard)).copied().collect();
        give_up.retain(|shard| self.give_up(*shard));
        for lease in &roster.leases {
            match is_alive(&roster.nodes, &lease.node, roster.now) {
                true => self.abandoned.remove(&lease.shard),
                false => self.abandoned.insert(lease.shard),
            };
        }
        // Whoever is alive is heard of before its time is over. If one is not, that is seen at that time, not at the next round.
        let left = roster.nodes.iter().filter(|seen| seen.node != self.me && seen.expires_at > roster.now);
        if let Some(first) = left.map(|seen| seen.expires_at.duration_since(roster.now)).min() {
            self.wait_for(first);
        }
        let take = mine.into_iter().filter(|shard| self.is_free(*shard, roster)).collect();
        Turn { give_up, take }
    }

    /// What to take where nobody shares the database: everything.
    pub fn plan_alone(&self) -> Vec<ShardId> {
        (0..self.shards).map(ShardId).filter(|shard| !self.held.contains_key(shard)).collect()
    }

    /// Whether a shard can be taken now. One whose owner is gone is waited for; one that is being given up is told of.
    fn is_free(&mut self, shard: ShardId, roster: &Roster) -> bool {
        if self.held.contains_key(&shard) {
            return false;
        }
        let other = roster.leases.iter().find(|lease| lease.shard == shard && lease.node != self.me);
        let Some(other) = other.filter(|lease| lease.expires_at > roster.now) else { return true };
        if self.abandoned.contains(&shard) {
            self.wait_for(other.expires_at.duration_since(roster.now));
        }
        false
    }

    /// What became of an acquisition. True if the shard's owner was gone.
    pub fn acquired(&mut self, shard: ShardId, lease: Option<Lease>) -> bool {
        let Some(lease) = lease else {
            // Another node was faster, or its owner is in the middle of a commit, which ends soon.
            self.wait_for(self.lease_length / 20);
            return false;
        };
        self.held.insert(shard, Holding { lease, leaving: false });
        self.abandoned.remove(&shard)
    }

    /// The driver of a shard has ended, and has given up the lease if it had it.
    pub fn ended(&mut self, shard: ShardId) {
        self.held.remove(&shard);
    }

    /// What to give up when this node goes.
    pub fn leave(&mut self) -> Vec<ShardId> {
        let mut shards: Vec<ShardId> = self.held.keys().copied().collect();
        shards.retain(|shard| self.give_up(*shard));
        shards
    }

    /// True if it was not being given up already.
    fn give_up(&mut self, shard: ShardId) -> bool {
        let held = self.held.get_mut(&shard).filter(|held| !held.leaving);
        held.is_some_and(|held| !std::mem::replace(&mut held.leaving, true))
    }

    fn wait_for(&mut self, length: SignedDuration) {
        let length = length.max(SignedDuration::ZERO) + SignedDuration::from_millis(1);
        self.look_again = Some(self.look_again.map_or(length, |sooner| sooner.min(length)));
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use punctual_store::Epoch;

    use super::*;

    const LEASE: SignedDuration = SignedDuration::from_secs(6);

    fn seen(keeper: i64, seconds_left: i64) -> NodeSeen {
        let now = Timestamp::UNIX_EPOCH;
        NodeSeen {
            node: NodeId(format!("n#{keeper}").into()),
            keeper: Keeper(keeper),
            started_at: now,
            version: String::new(),
            expires_at: now + SignedDuration::from_secs(seconds_left),
            draining: false,
        }
    }

    fn lease(shard: u32, keeper: i64, seconds_left: i64) -> Lease {
        let NodeSeen { node, expires_at, .. } = seen(keeper, seconds_left);
        Lease { shard: ShardId(shard), node, epoch: Epoch(1), expires_at }
    }

    fn roster(nodes: Vec<NodeSeen>, leases: Vec<Lease>) -> Roster {
        Roster { now: Timestamp::UNIX_EPOCH, was_over: false, nodes, leases }
    }

    /// The first node, which holds both of two shards.
    fn owner_of_both() -> Membership {
        let mut membership = Membership::new(seen(1, 6).node, Keeper(1), 2, LEASE);
        let turn = membership.plan(&roster(vec![seen(1, 6)], Vec::new()));
        assert_eq!(turn, Turn { give_up: Vec::new(), take: vec![ShardId(0), ShardId(1)] });
        for shard in turn.take {
            assert!(!membership.acquired(shard, Some(lease(shard.0, 1, 6))));
        }
        membership
    }

    #[test]
    fn what_is_given_up_is_not_taken_again_before_its_driver_has_ended() {
        let mut membership = owner_of_both();
        let leases = vec![lease(0, 1, 6), lease(1, 1, 6)];

        let joined = roster(vec![seen(1, 6), seen(2, 6)], leases.clone());
        assert_eq!(membership.plan(&joined).give_up, [ShardId(1)]);
        assert_eq!(membership.plan(&joined), Turn::default(), "it is said once");

        let alone_again = roster(vec![seen(1, 6)], leases[..1].to_vec());
        assert_eq!(membership.plan(&alone_again), Turn::default());
        membership.ended(ShardId(1));
        assert_eq!(membership.plan(&alone_again).take, [ShardId(1)]);
    }

    #[test]
    fn the_lease_of_a_node_that_is_gone_is_waited_for_to_the_end() {
        let mut membership = Membership::new(seen(2, 6).node, Keeper(2), 1, LEASE);
        let turn = membership.plan(&roster(vec![seen(1, 0), seen(2, 6)], vec![lease(0, 1, 1)]));
        assert_eq!(turn, Turn::default());
        assert_eq!(membership.wait(), SignedDuration::from_millis(1_001));
        assert_eq!(membership.wait(), LEASE / 3, "once");

        let over = roster(vec![seen(1, -1), seen(2, 6)], vec![lease(0, 1, 0)]);
        assert_eq!(membership.plan(&over).take, [ShardId(0)]);
        assert!(membership.acquired(ShardId(0), Some(lease(0, 2, 6))), "its owner was gone");
    }

    #[test]
    fn a_node_that_is_silent_is_looked_at_when_its_time_is_over_not_a_round_later() {
        let mut membership = owner_of_both();
        membership.plan(&roster(vec![seen(1, 6), seen(2, 1)], vec![lease(0, 1, 6), lease(1, 2, 1)]));
        assert_eq!(membership.wait(), SignedDuration::from_millis(1_001));
        membership.plan(&roster(vec![seen(1, 6), seen(2, 6)], vec![lease(0, 1, 6), lease(1, 2, 6)]));
        assert_eq!(membership.wait(), LEASE / 3, "who is heard of costs no more rounds");
    }

    #[test]
    fn what_was_lost_is_driven_no_more_and_an_error_loses_nothing() {
        let mut membership = owner_of_both();
        assert!(!membership.renewed(ShardId(0), &Err(StoreError::unavailable("away"))));
        assert!(membership.renewed(ShardId(0), &Err(StoreError::Fenced { epoch: Epoch(1) })));
        assert!(!membership.renewed(ShardId(0), &Err(StoreError::Fenced { epoch: Epoch(1) })), "once");
        assert_eq!(membership.leave(), [ShardId(1)], "the other one is on its way out already");
    }

    #[test]
    fn the_oldest_node_looks_after_the_runs_of_those_that_are_gone_until_it_has_done_so() {
        let mut oldest = Membership::new(seen(1, 6).node, Keeper(1), 1, LEASE);
        let mut other = Membership::new(seen(3, 6).node, Keeper(3), 1, LEASE);
        let roster = roster(vec![seen(1, 6), seen(2, 0), seen(3, 6)], Vec::new());
        let orphans = Orphans { gone: vec![seen(2, 0)], left: BTreeSet::new() };
        assert_eq!(other.orphans(&roster), None);
        assert_eq!(oldest.orphans(&roster), Some(orphans.clone()));
        assert_eq!(oldest.orphans(&roster), None, "it is being done");
        oldest.adopted([]);
        assert_eq!(oldest.orphans(&roster), Some(orphans), "it is still on the roster");
    }
}
