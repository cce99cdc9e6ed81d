//! Who drives what: rounds of the engine's own membership, with calls to the store that fail, are slow, or work unheard.

use jiff::SignedDuration;
use punctual_engine::cluster::{Orphans, Turn};
use punctual_store::{Beat, Keeper, Lease, Roster, ShardId, Store, StoreError};

use super::World;
use super::agenda::Happening;
use super::node::{Seat, Who};
use crate::store::at_once;

/// Slow answers take up to a tenth of a lease, or of this: a node that waits for longer counts as dead before long.
const SLOW_MAX: SignedDuration = SignedDuration::from_secs(30);

/// What becomes of a call to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Answered,
    /// It was done, and nobody is told.
    Unheard,
    Failed,
}

/// What a process hears in a round.
#[derive(Debug)]
pub(super) enum Heard {
    Roster(Roster),
    Renewed(Roster, Vec<(ShardId, Result<Lease, StoreError>)>),
    Acquired { shard: ShardId, lease: Option<Lease>, others: Vec<ShardId> },
    Nothing,
}

impl World {
    /// Nodes may have come or gone: a round at once, or right after the one that goes on.
    pub(super) fn ring(&mut self, node: usize) {
        match &mut self.nodes[node].member {
            Some(member) if member.in_round => member.rung = true,
            Some(_) => self.plan_round(node, SignedDuration::ZERO),
            None => {}
        }
    }

    pub(super) fn plan_round(&mut self, node: usize, wait: SignedDuration) {
        let Some(member) = self.nodes[node].member.as_mut().filter(|member| !member.leaving) else { return };
        member.round += 1;
        let (who, round) = (Who { node, life: member.life }, member.round);
        self.at_time(self.now + wait, Happening::Round { who, round });
    }

    /// A beat, a renewal of what is held, and a plan.
    pub(super) fn round(&mut self, who: Who, round: u64) {
        let ttl = self.knobs.lease();
        let Some(member) = self.member(who).filter(|member| member.round == round && !member.leaving) else {
            return;
        };
        member.in_round = true;
        let (node, keeper, version) = (member.id.clone(), member.keeper, String::new());
        let beat = Beat { node, keeper, started_at: self.now, version, ttl, report: None };
        let heard = match self.call(who.node) {
            Call::Answered => Heard::Roster(at_once(self.store.beat(beat))),
            Call::Unheard => {
                at_once(self.store.beat(beat));
                Heard::Nothing
            }
            Call::Failed => Heard::Nothing,
        };
        self.answer(who, heard);
    }

    /// What becomes of a call that a node makes to the store now.
    pub(super) fn call(&mut self, node: usize) -> Call {
        let cut = self.nodes[node].cut;
        let call = if self.is_down() || cut.is_some_and(|cut| !cut.deaf) {
            Call::Failed
        } else if cut.is_some() || self.random.chance(self.knobs.reply_lost) {
            Call::Unheard
        } else if self.random.chance(self.knobs.load_fails) {
            Call::Failed
        } else {
            Call::Answered
        };
        if call != Call::Answered {
            self.disturbed();
        }
        call
    }

    /// Some answers take a while, and errors do.
    fn answer(&mut self, who: Who, heard: Heard) {
        let slow = matches!(heard, Heard::Nothing) || self.random.chance(100);
        if slow {
            let time =
                self.now + self.knobs.lease().min(SLOW_MAX) * self.random.between(1, 100) as i32 / 1_000;
            return self.at_time(time, Happening::Answer { who, heard: Box::new(heard) });
        }
        self.heard(who, heard);
    }

    pub(super) fn heard(&mut self, who: Who, heard: Heard) {
        // Rounds are many: most deaths are to meet real work.
        if self.member(who).is_none() || self.random.chance(50) && self.dies_here(who.node) {
            return;
        }
        match heard {
            Heard::Roster(roster) => self.renew(who, roster),
            Heard::Renewed(roster, answers) => {
                for (shard, answer) in answers {
                    let lost =
                        self.member(who).is_some_and(|member| member.membership.renewed(shard, &answer));
                    if lost && !self.careless.outlives_leases {
                        self.stop_driving(who, shard);
                    }
                }
                self.obey(who, &roster);
            }
            Heard::Acquired { shard, lease, others } => {
                self.acquired(who, shard, lease);
                self.take(who, others);
            }
            Heard::Nothing => self.round_over(who),
        }
    }

    fn renew(&mut self, who: Who, roster: Roster) {
        let Some(member) = self.member(who) else { return };
        let leases = member.membership.leases();
        if leases.is_empty() {
            return self.heard(who, Heard::Renewed(roster, Vec::new()));
        }
        let call = self.call(who.node);
        if call == Call::Failed {
            return self.answer(who, Heard::Nothing);
        }
        let shards: Vec<ShardId> = leases.iter().map(|lease| lease.shard).collect();
        let renewed = at_once(self.store.renew_all(leases, self.knobs.lease()));
        let heard = match call {
            Call::Answered => Heard::Renewed(roster, shards.into_iter().zip(renewed).collect()),
            Call::Unheard | Call::Failed => Heard::Nothing,
        };
        self.answer(who, heard);
    }

    /// What a roster asks of a node; it may be old by now.
    fn obey(&mut self, who: Who, roster: &Roster) {
        let careless = self.careless;
        let Some(member) = self.member(who) else { return };
        let orphans = member.membership.orphans(roster);
        let Turn { mut give_up, mut take } = member.membership.plan(roster);
        if careless.clings {
            give_up.clear();
        }
        if careless.sits_still && member.round > 1 {
            take.clear();
        }
        if let Some(orphans) = orphans {
            let delay = self.random.between(0, 3);
            self.at(delay, Happening::Adopt { who, orphans: Box::new(orphans) });
        }
        for shard in give_up {
            self.stop_driving(who, shard);
        }
        self.take(who, take);
    }

    /// Acquires one shard after the other; the first that nobody answers for ends the round.
    fn take(&mut self, who: Who, mut shards: Vec<ShardId>) {
        if shards.is_empty() {
            return self.round_over(who);
        }
        let (shard, others) = (shards.remove(0), shards);
        let Some(member) = self.member(who) else { return };
        let (id, call) = (member.id.clone(), self.call(who.node));
        if call == Call::Failed {
            return self.answer(who, Heard::Nothing);
        }
        let lease = at_once(self.store.acquire(shard, id, self.knobs.lease()));
        let heard = match call {
            Call::Answered => Heard::Acquired { shard, lease, others },
            Call::Unheard | Call::Failed => Heard::Nothing,
        };
        self.answer(who, heard);
    }

    /// A shard is driven as soon as its timers are read; what comes before waits.
    fn acquired(&mut self, who: Who, shard: ShardId, lease: Option<Lease>) {
        let life = self.new_life();
        let Some(member) = self.member(who) else { return };
        member.membership.acquired(shard, lease.clone());
        if lease.is_some() {
            member.owners.insert(shard, Seat::new(life, None, lease));
            self.met.taken += 1;
            let delay = self.random.between(0, 1);
            self.at(delay, Happening::ReadTimers { who, shard, life });
        }
    }

    fn round_over(&mut self, who: Who) {
        let Some(member) = self.member(who) else { return };
        member.in_round = false;
        let wait = match std::mem::take(&mut member.rung) {
            true => SignedDuration::ZERO,
            false => member.membership.wait(),
        };
        match member.leaving {
            true => self.give_all_up(who),
            false => self.plan_round(who.node, wait),
        }
    }

    /// Somebody looks after the runs of nodes that are gone (workers do that here), then strikes those off.
    pub(super) fn adopt(&mut self, who: Who, orphans: Orphans) {
        if self.member(who).is_none() {
            return;
        }
        let mut failed: Vec<Keeper> = Vec::new();
        for seen in orphans.gone {
            let call = self.call(who.node);
            if call != Call::Failed {
                at_once(self.store.strike(seen.node, false));
            }
            if call != Call::Answered {
                failed.push(seen.keeper);
            }
        }
        if let Some(member) = self.member(who) {
            member.membership.adopted(failed);
        }
    }

    /// A node wants to go, in good order.
    pub(super) fn leave(&mut self, who: Who) {
        let Some(member) = self.member(who) else { return };
        member.leaving = true;
        let idle = !member.in_round;
        self.disturbed();
        if idle {
            self.give_all_up(who);
        }
    }

    fn give_all_up(&mut self, who: Who) {
        let call = self.call(who.node);
        let Some(member) = self.member(who) else { return };
        let (id, shards) = (member.id.clone(), member.membership.leave());
        if call != Call::Failed {
            at_once(self.store.drain(id, true));
        }
        for shard in shards {
            self.stop_driving(who, shard);
        }
        self.maybe_gone(who);
    }

    /// Goes, if everything is given up.
    pub(super) fn maybe_gone(&mut self, who: Who) {
        let Some(member) = self.member(who).filter(|member| member.leaving && member.owners.is_empty())
        else {
            return;
        };
        if member.in_round {
            return;
        }
        let id = member.id.clone();
        if self.call(who.node) != Call::Failed {
            at_once(self.store.strike(id, true));
        }
        self.die(who.node);
        let back = self.random.between(1, 300);
        self.at(back, Happening::Boot { node: who.node });
    }
}
