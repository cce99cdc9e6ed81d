//! Who should drive which shard. Every node computes the same answer from the same roster, so nobody has to be asked.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use punctual_store::{Keeper, Lease, NodeId, NodeSeen};

/// Who should drive each shard; nobody if there is nobody.
///
/// - Each node that is alive and not draining gets its share: as many as every other one, or one more.
/// - Who holds more gets the larger share, and keeps what it holds up to that: only what is over a share, or free, moves.
/// - Where all nodes are draining it is as if none were: there is nobody else, and schedules must start.
///
/// A lease that is over counts as long as its node is alive: the node will renew it.
pub(super) fn plan(nodes: &[NodeSeen], leases: &[Lease], shards: u32, now: Timestamp) -> Vec<Option<NodeId>> {
    let mut alive: Vec<&NodeSeen> = nodes.iter().filter(|seen| seen.expires_at > now).collect();
    alive.sort_by_key(|seen| seen.keeper);
    let keepers: HashMap<&NodeId, Keeper> = alive.iter().map(|seen| (&seen.node, seen.keeper)).collect();
    let mut holders: Vec<Option<&NodeId>> = vec![None; shards as usize];
    for lease in leases.iter().filter(|lease| keepers.contains_key(&lease.node)) {
        if let Some(holder) = holders.get_mut(lease.shard.0 as usize) {
            *holder = Some(&lease.node);
        }
    }
    if alive.iter().any(|seen| !seen.draining) {
        alive.retain(|seen| !seen.draining);
    }
    if alive.is_empty() {
        return vec![None; shards as usize];
    }
    let mut room = shares(&alive, &holders);
    let mut keep = |node: &NodeId| match room.get_mut(&keepers[node]) {
        Some(room) if *room > 0 => {
            *room -= 1;
            true
        }
        _ => false,
    };
    let mut planned: Vec<Option<NodeId>> =
        holders.iter().map(|holder| holder.filter(|node| keep(node)).cloned()).collect();
    let mut takers = alive.iter().flat_map(|seen| std::iter::repeat_n(&seen.node, room[&seen.keeper]));
    for place in planned.iter_mut().filter(|place| place.is_none()) {
        *place = takers.next().cloned();
    }
    planned
}

/// Whether a node counts as alive.
pub(super) fn is_alive(nodes: &[NodeSeen], node: &NodeId, now: Timestamp) -> bool {
    nodes.iter().any(|seen| seen.node == *node && seen.expires_at > now)
}

/// How many shards each node should have.
fn shares(active: &[&NodeSeen], holders: &[Option<&NodeId>]) -> BTreeMap<Keeper, usize> {
    let held = |seen: &NodeSeen| holders.iter().flatten().filter(|holder| ***holder == seen.node).count();
    let mut by_holding: Vec<(usize, Keeper)> = active.iter().map(|seen| (held(seen), seen.keeper)).collect();
    by_holding.sort_by_key(|(held, keeper)| (std::cmp::Reverse(*held), *keeper));
    let (least, more) = (holders.len() / active.len(), holders.len() % active.len());
    let shares = by_holding.into_iter().enumerate();
    shares.map(|(place, (_, keeper))| (keeper, least + usize::from(place < more))).collect()
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use punctual_store::{Epoch, ShardId};

    use super::*;

    /// Numbers that look random, the same in every run.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % bound
        }

        fn shuffle<T>(&mut self, items: &mut [T]) {
            for last in (1..items.len()).rev() {
                items.swap(last, self.below(last as u64 + 1) as usize);
            }
        }
    }

    fn node(keeper: i64, alive: bool, draining: bool) -> NodeSeen {
        let (now, away) = (Timestamp::UNIX_EPOCH, SignedDuration::from_secs(if alive { 5 } else { 0 }));
        NodeSeen {
            node: NodeId(format!("n#{keeper}").into()),
            keeper: Keeper(keeper),
            started_at: now,
            version: String::new(),
            expires_at: now + away,
            draining,
        }
    }

    fn lease(shard: usize, node: &NodeId) -> Lease {
        let expires_at = Timestamp::UNIX_EPOCH;
        Lease { shard: ShardId(shard as u32), node: node.clone(), epoch: Epoch(1), expires_at }
    }

    fn count(planned: &[Option<NodeId>], node: &NodeId) -> usize {
        planned.iter().flatten().filter(|owner| *owner == node).count()
    }

    #[test]
    fn plans_are_fair_move_little_agree_and_come_to_rest() {
        let random = &mut Random(7);
        for _ in 0..20_000 {
            let shards = 1 + random.below(40) as usize;
            let mut nodes: Vec<NodeSeen> = (0..random.below(9) as i64)
                .map(|keeper| node(keeper, random.below(5) > 0, random.below(6) == 0))
                .collect();
            let mut leases: Vec<Lease> = Vec::new();
            let stranger = NodeId("gone#99".into());
            // Some worlds are lopsided: a few nodes hold nearly everything.
            let owners = nodes.len() as u64 / (1 + random.below(3)) + 1;
            for shard in 0..shards {
                match random.below(owners + 1) as usize {
                    0 => {}
                    owner => leases.push(lease(shard, nodes.get(owner - 1).map_or(&stranger, |n| &n.node))),
                }
            }
            let now = Timestamp::UNIX_EPOCH;
            let planned = plan(&nodes, &leases, shards as u32, now);
            assert_eq!(planned.len(), shards);

            let alive: Vec<&NodeSeen> = nodes.iter().filter(|seen| seen.expires_at > now).collect();
            let mut active: Vec<&NodeSeen> = alive.iter().copied().filter(|seen| !seen.draining).collect();
            if active.is_empty() {
                active = alive;
            }
            let held = |seen: &NodeSeen| leases.iter().filter(|lease| lease.node == seen.node).count();
            if active.is_empty() {
                assert!(planned.iter().all(Option::is_none), "there is nobody");
                continue;
            }
            // Fair: everything has an owner, and no two shares differ by more than one.
            assert!(planned.iter().flatten().all(|owner| active.iter().any(|seen| seen.node == *owner)));
            let shares: Vec<usize> = active.iter().map(|seen| count(&planned, &seen.node)).collect();
            assert_eq!(shares.iter().sum::<usize>(), shards);
            let (least, most) = (shards / active.len(), shards.div_ceil(active.len()));
            assert!(shares.iter().all(|share| (least..=most).contains(share)), "{shares:?} of {shards}");
            // Little moves: no fair division leaves more where it is.
            let stays =
                leases.iter().filter(|lease| planned[lease.shard.0 as usize].as_ref() == Some(&lease.node));
            let surplus = active.iter().filter(|seen| held(seen) > least).count();
            let at_most: usize = active.iter().map(|seen| held(seen).min(least)).sum::<usize>()
                + surplus.min(shards % active.len());
            assert_eq!(stays.count(), at_most);
            // Everybody says the same, in whatever order they were told.
            random.shuffle(&mut nodes);
            random.shuffle(&mut leases);
            assert_eq!(plan(&nodes, &leases, shards as u32, now), planned);
            // Once it is done, it stays so; and on the way there it stays fair.
            let done: Vec<Lease> = planned
                .iter()
                .enumerate()
                .filter_map(|(shard, owner)| owner.as_ref().map(|owner| lease(shard, owner)))
                .collect();
            assert_eq!(plan(&nodes, &done, shards as u32, now), planned);
        }
    }

    #[test]
    fn a_newcomer_gets_what_is_over_a_share_and_a_leaver_leaves_the_rest_alone() {
        let (one, two, three) = (node(1, true, false), node(2, true, false), node(3, true, false));
        let held: Vec<Lease> =
            (0..8).map(|shard| lease(shard, if shard < 4 { &one.node } else { &two.node })).collect();

        let joined = plan(&[one.clone(), two.clone(), three.clone()], &held, 8, Timestamp::UNIX_EPOCH);
        assert_eq!([&one, &two, &three].map(|seen| count(&joined, &seen.node)), [3, 3, 2]);
        assert_eq!(joined[3], joined[7], "one shard of each moves");

        let left = plan(std::slice::from_ref(&one), &held, 8, Timestamp::UNIX_EPOCH);
        assert_eq!(count(&left, &one.node), 8);
    }
}
