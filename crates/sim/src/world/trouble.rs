//! What goes wrong with whole machines: they die, stand still, are cut off, leave, and the database goes away for a while.

use jiff::SignedDuration;
use punctual_store::{NodeSeen, Store};

use super::World;
use super::agenda::Happening;
use super::clients::Asked;
use super::node::Cut;
use crate::store::at_once;
use crate::workload::key;

/// Seconds that the database is away at most.
const RESTART_SECONDS_MAX: i64 = 120;

impl World {
    /// At every beat the world may be unkind, and clients may want something.
    pub(super) fn beat(&mut self) {
        self.at(self.knobs.beat_seconds, Happening::Beat);
        for node in 0..self.nodes.len() {
            self.trouble(node);
        }
        if self.random.chance(self.knobs.drain)
            && let Some(seen) = self.any_listed()
        {
            at_once(self.store.drain(seen.node, !seen.draining));
            self.disturbed();
        }
        if self.random.chance(self.knobs.restart) && !self.is_down() {
            let seconds = self.random.between(5, RESTART_SECONDS_MAX);
            self.down_until = Some(self.now + SignedDuration::from_secs(seconds));
            self.disturbed();
            self.at(seconds, Happening::DatabaseBack);
        }
        for index in 0..self.knobs.schedules {
            if self.random.chance(self.knobs.command) {
                let tale = self.chronicle.current(&key(index));
                if let Some(order) = self.workload.order(index, tale, self.now, &self.limits) {
                    let delay = self.random.between(0, self.knobs.beat_seconds / 2);
                    self.at(delay, Happening::Ask(Box::new(Asked::order(order))));
                }
            }
        }
    }

    fn any_listed(&mut self) -> Option<NodeSeen> {
        let nodes = at_once(self.store.roster()).nodes;
        (!nodes.is_empty()).then(|| self.random.pick(&nodes).clone())
    }

    fn trouble(&mut self, node: usize) {
        if self.random.chance(self.knobs.crash) {
            match self.nodes[node].member.is_some() {
                true => self.die(node),
                false => self.boot(node),
            }
        }
        let lease = self.knobs.lease_seconds;
        if self.random.chance(self.knobs.stop)
            && self.nodes[node].member.is_some()
            && self.nodes[node].stopped.is_none()
        {
            self.nodes[node].stopped = Some(Vec::new());
            self.disturbed();
            let seconds = self.random.between(1, 4 * lease);
            self.at(seconds, Happening::GoOn { node });
        }
        if self.random.chance(self.knobs.cut) && self.nodes[node].cut.is_none() {
            let seconds = self.random.between(1, 3 * lease);
            let (until, deaf) = (self.now + SignedDuration::from_secs(seconds), self.random.chance(300));
            self.nodes[node].cut = Some(Cut { until, deaf });
            self.disturbed();
            self.at(seconds, Happening::CutMended { node });
        }
        if self.random.chance(self.knobs.leave)
            && let Some(who) = self.who(node).filter(|_| self.nodes[node].stopped.is_none())
        {
            self.leave(who);
        }
        let most = self.knobs.skew_seconds_max;
        if most > 0 && self.random.chance(100) {
            let skew = SignedDuration::from_secs(self.random.between(-most, most));
            self.set_clock(node, skew);
        }
    }

    fn set_clock(&mut self, node: usize, skew: SignedDuration) {
        self.nodes[node].skew = skew;
        self.look_at_all(node);
    }

    /// A driver looks at its clock often enough to notice that time has jumped.
    fn look_at_all(&mut self, node: usize) {
        for by in self.processes(node) {
            self.settle(by);
        }
    }

    /// Everything that a node should have heard, or done, happens at once; it believes that it still owns what it owned.
    pub(super) fn go_on(&mut self, node: usize) {
        let Some(late) = self.nodes[node].stopped.take() else { return };
        self.disturbed();
        for happening in late {
            self.at(0, happening);
        }
        self.look_at_all(node);
    }

    pub(super) fn mend_cut(&mut self, node: usize) {
        if self.nodes[node].cut.is_some_and(|cut| cut.until <= self.now) {
            self.nodes[node].cut = None;
            self.disturbed();
            self.listen_again(node);
        }
    }

    pub(super) fn database_back(&mut self) {
        if self.down_until.take().is_some() {
            self.disturbed();
            (0..self.nodes.len()).for_each(|node| self.listen_again(node));
        }
    }

    /// Who was cut off may have missed news.
    fn listen_again(&mut self, node: usize) {
        if let Some(who) = self.who(node) {
            let delay = self.random.between(0, 3);
            self.at(delay, Happening::Gap { who });
        }
    }

    /// The faults end. Some processes are gone with them, the others go on from where they are.
    pub(super) fn heal_nodes(&mut self) {
        self.down_until = None;
        for seen in at_once(self.store.roster()).nodes {
            at_once(self.store.drain(seen.node, false));
        }
        for node in 0..self.nodes.len() {
            self.nodes[node].cut = None;
            self.go_on(node);
            let leaves = self.nodes[node].member.as_ref().is_some_and(|member| member.leaving);
            if leaves || self.random.chance(500) {
                self.die(node);
            }
            self.set_clock(node, SignedDuration::ZERO);
            self.listen_again(node);
            self.at(0, Happening::Boot { node });
        }
        self.disturbed();
    }

    /// Something is not as it was: from now on nodes need a while to come to rest.
    pub(super) fn disturbed(&mut self) {
        self.disturbed_at = self.now;
    }

    /// Whether the database is away.
    pub(super) fn is_down(&self) -> bool {
        self.down_until.is_some()
    }

    /// Whether what a node asks of the database arrives, and is answered.
    pub(super) fn reaches(&self, node: usize) -> bool {
        !self.is_down() && self.nodes[node].cut.is_none()
    }
}
