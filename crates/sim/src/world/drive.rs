//! Drivers of shards, as the engine has them: started with the timers of their shard, and given up in good order.

use punctual_engine::shard::{Event, Shard};
use punctual_store::{News, ShardId, Store};

use super::World;
use super::agenda::{Happening, Timers};
use super::node::{Member, Node, Process, Role, Who, Word};
use super::rounds::Call;
use crate::checker::Ownership;
use crate::store::at_once;

impl World {
    /// Whoever took a shard reads its timers. If it cannot, it gives the shard up.
    pub(super) fn read_timers(&mut self, who: Who, shard: ShardId, life: u64) {
        let by = Process { node: who.node, role: Role::Owner(shard), life };
        if self.dies(by) {
            return;
        }
        match self.call(who.node) {
            Call::Answered => {
                let timers = self.stored_timers(shard);
                let delay = self.random.between(0, 1);
                self.at(delay, Happening::Drive { by, shard, timers });
            }
            Call::Unheard | Call::Failed => self.driver_ends(by),
        }
    }

    fn stored_timers(&self, shard: ShardId) -> Timers {
        at_once(self.store.timers(shard, None, usize::MAX))
    }

    /// The driver begins. What came since the shard was taken is heard after the timers.
    pub(super) fn drive(&mut self, by: Process, shard: ShardId, timers: Timers) {
        let (limits, settings) = (self.limits.clone(), self.knobs.settings.clone());
        let now = self.clock(by.node);
        let Some(epoch) = self.seat(by).and_then(|seat| seat.lease.as_ref()).map(|lease| lease.epoch) else {
            return;
        };
        let mut driven = Shard::new(shard, epoch, limits, settings);
        self.declare_queue(by.node, &mut driven);
        driven.handle(now, Event::Timers(timers), &mut Vec::new());
        let Some(seat) = self.seat(by) else { return };
        seat.shard = Some(driven);
        for word in std::mem::take(&mut seat.inbox) {
            match word {
                Word::Event(event) => self.tell_shard(by, event),
                Word::Recheck(timers) => self.recheck(by, timers),
            }
        }
        self.settle(by);
    }

    /// Whoever drives a shard is to stop. One that has not begun hears of it when it does.
    pub(super) fn stop_driving(&mut self, who: Who, shard: ShardId) {
        let Some(by) = self.process(who.node, Role::Owner(shard)) else { return };
        if let Some(seat) = self.seat(by) {
            seat.stopping = true;
            self.settle(by);
        }
    }

    /// A driver has finished what was on its way: the shard is free, if that can be told.
    pub(super) fn driver_ends(&mut self, by: Process) {
        if self.dies(by) {
            return;
        }
        let Some(lease) = self.seat(by).and_then(|seat| seat.lease.clone()) else { return };
        if self.call(by.node) != Call::Failed {
            at_once(self.store.release(lease));
            self.store.tell(News::Roster);
        }
        self.driver_gone(by);
    }

    /// Nothing is driven there any more, and nobody listens to what it asked for.
    pub(super) fn driver_gone(&mut self, by: Process) {
        let (Role::Owner(shard), true) = (by.role, self.lives(by)) else { return };
        let Some(member) = &mut self.nodes[by.node].member else { return };
        member.owners.remove(&shard);
        member.membership.ended(shard);
        let who = Who { node: by.node, life: member.life };
        match member.leaving {
            true => self.maybe_gone(who),
            false => self.ring(by.node),
        }
    }

    /// Who drives what among nodes that can do something; nothing while nobody can, or while nobody can tell.
    pub(crate) fn ownership(&self) -> Option<Ownership> {
        let deaf = |node: &Node| node.cut.is_some_and(|cut| cut.deaf);
        let able = |node: &&Node| node.stopped.is_none() && node.cut.is_none();
        let members: Vec<&Member> =
            self.nodes.iter().filter(able).filter_map(|node| node.member.as_ref()).collect();
        if self.is_down() || self.nodes.iter().any(deaf) || members.iter().all(|member| member.leaving) {
            return None;
        }
        let drivers = (0..self.knobs.shards).map(|shard| {
            let seats =
                members.iter().filter_map(|member| Some((member, member.owners.get(&ShardId(shard))?)));
            let drives = seats.filter(|(_, seat)| seat.drives());
            let epochs =
                drives.filter_map(|(member, seat)| Some((member.id.clone(), seat.lease.as_ref()?.epoch)));
            epochs.collect::<Vec<_>>()
        });
        Some(Ownership {
            calm: self.now.duration_since(self.disturbed_at),
            lease: self.knobs.lease(),
            drivers: drivers.collect(),
            roster: at_once(self.store.roster()),
        })
    }

    /// News were missed: a node trusts nothing that it remembers, and looks at the stored timers.
    pub(super) fn gap(&mut self, who: Who) {
        if self.member(who).is_none() {
            return;
        }
        self.give_up_told(who);
        self.ring(who.node);
        for by in self.processes(who.node) {
            self.tell_shard(by, Event::MissedNews);
        }
        self.check_timers(who);
    }

    /// Compares what a node remembers with what is stored, as soon as the store answers.
    pub(super) fn check_timers(&mut self, who: Who) {
        if self.member(who).is_none() {
            return;
        }
        if self.call(who.node) != Call::Answered {
            let soon = self.random.between(1, 5);
            return self.at(soon, Happening::CheckTimers { who });
        }
        for by in self.processes(who.node) {
            if let Role::Owner(shard) = by.role {
                let timers = self.stored_timers(shard);
                self.recheck(by, timers);
            }
        }
    }

    fn recheck(&mut self, by: Process, timers: Timers) {
        let Some(seat) = self.seat(by) else { return };
        match &mut seat.shard {
            Some(shard) => {
                shard.recheck(&timers);
                self.settle(by);
            }
            None => seat.inbox.push(Word::Recheck(timers)),
        }
    }
}
