//! Nodes, how they die, and who owns the schedules then.
//!
//! A node may die wherever it waits: before its commit leaves, before it hears of it, between two effects, before an
//! answer is recorded. It comes back as another process, which remembers nothing. Every node that is up serves clients too, as a
//! guest, whoever owns the schedules.

use jiff::{SignedDuration, Timestamp};
use punctual_engine::shard::{Event, Shard};
use punctual_store::{Epoch, NodeId, ShardId, Store, TreeKey};

use super::World;
use super::agenda::Happening;
use crate::store::at_once;
use crate::workload::{QUEUE, key};

/// The only shard.
const SHARD: ShardId = ShardId(0);

/// A machine.
pub(super) struct Node {
    pub(super) up: bool,
    /// When it last died at a point where it waited.
    died_at: Option<Timestamp>,
    /// Its clock minus the true time.
    pub(super) skew: SignedDuration,
    /// What it drives, if it believes to be the owner.
    owner: Seat,
    /// What it serves clients with, once somebody asked.
    guest: Seat,
    epoch: Epoch,
}

/// Where a shard sits.
#[derive(Default)]
pub(super) struct Seat {
    /// Counts its shards, so that none hears what another one asked for.
    pub(super) life: u64,
    pub(super) shard: Option<Shard>,
    /// When it is going to be looked at.
    pub(super) tick_time: Option<Timestamp>,
}

impl Seat {
    /// It drives nothing any more, and nobody listens to what its shard asked for.
    pub(super) fn clear(&mut self) {
        *self = Seat { life: self.life + 1, ..Seat::default() };
    }
}

/// In what right a shard of a node writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Owner,
    Guest,
}

/// One shard of one process: a node between two deaths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pub(super) node: usize,
    pub(super) role: Role,
    pub(super) life: u64,
}

impl Node {
    pub(super) fn new() -> Node {
        Node {
            up: true,
            died_at: None,
            skew: SignedDuration::ZERO,
            owner: Seat::default(),
            guest: Seat::default(),
            epoch: Epoch(0),
        }
    }

    /// Everything in its memory is gone.
    pub(super) fn die(&mut self) {
        self.up = false;
        self.owner.clear();
        self.guest.clear();
    }

    pub(super) fn seat(&mut self, role: Role) -> &mut Seat {
        match role {
            Role::Owner => &mut self.owner,
            Role::Guest => &mut self.guest,
        }
    }
}

impl World {
    pub(super) fn process(&mut self, node: usize, role: Role) -> Process {
        Process { node, role, life: self.nodes[node].seat(role).life }
    }

    /// Whom a client or a worker turns to: any node that believes to be the owner, or any at all, as a guest.
    pub(super) fn any_server(&mut self) -> Option<Process> {
        if self.random.chance(self.knobs.guests)
            && let Some(node) = self.pick(|node| node.up)
        {
            self.seat_guest(node);
            return Some(self.process(node, Role::Guest));
        }
        self.pick(|node| node.owner.shard.is_some()).map(|node| self.process(node, Role::Owner))
    }

    fn pick(&mut self, fits: impl Fn(&Node) -> bool) -> Option<usize> {
        let fitting: Vec<usize> = (0..self.nodes.len()).filter(|node| fits(&self.nodes[*node])).collect();
        (!fitting.is_empty()).then(|| *self.random.pick(&fitting))
    }

    /// A node serves clients, without the shard.
    fn seat_guest(&mut self, node: usize) {
        if self.nodes[node].guest.shard.is_none() {
            let mut guest = Shard::guest(1, self.limits.clone(), self.knobs.settings.clone());
            self.declare_queue(node, &mut guest);
            self.nodes[node].guest.shard = Some(guest);
        }
    }

    fn declare_queue(&self, node: usize, shard: &mut Shard) {
        let (namespace, name, queue) = (key(0).namespace, QUEUE.into(), self.queue);
        let declared = Event::QueueDeclared { namespace, name, queue };
        shard.handle(self.clock(node), declared, &mut Vec::new());
    }

    pub(super) fn lives(&self, process: Process) -> bool {
        let node = &self.nodes[process.node];
        let seat = match process.role {
            Role::Owner => &node.owner,
            Role::Guest => &node.guest,
        };
        node.up && seat.life == process.life
    }

    /// Whether a process is dead, or dies here.
    pub(super) fn dies(&mut self, process: Process) -> bool {
        // Between two deaths a node gets something done: one that dies of every crowd it finds would never end it.
        let rest = SignedDuration::from_secs(self.knobs.beat_seconds / 2);
        let rested = self.nodes[process.node].died_at.is_none_or(|died_at| died_at + rest < self.now);
        if self.lives(process) && rested && self.random.chance(self.knobs.crash_at_await) {
            self.nodes[process.node].die();
            self.nodes[process.node].died_at = Some(self.now);
            let (back, elected) = (self.random.between(1, 300), self.random.between(5, 60));
            self.at(back, Happening::Revive { node: process.node });
            self.at(elected, Happening::Elect);
        }
        !self.lives(process)
    }

    pub(super) fn revive(&mut self, node: usize) {
        self.nodes[node].up = true;
        self.elect();
    }

    /// Somebody owns the schedules, if anybody can.
    pub(super) fn elect(&mut self) {
        let latest = self.nodes.iter().map(|node| node.epoch).max();
        let owned = self.nodes.iter().any(|node| node.owner.shard.is_some() && Some(node.epoch) == latest);
        if !owned {
            self.take_over();
        }
    }

    /// Another node becomes the owner; the old one may go on believing that it is.
    pub(super) fn take_over(&mut self) {
        if let Some(node) = self.pick(|node| node.up) {
            self.acquire(node);
        }
    }

    /// A node takes the shard, as the engine does it: a new epoch, the queues, the timers.
    pub(super) fn acquire(&mut self, node: usize) {
        let name = NodeId(format!("node-{node}").into());
        self.store.set_now(self.now);
        // The lease is over at once, so that the next one can take it whenever the world wants it.
        let Some(lease) = at_once(self.store.acquire(SHARD, name, SignedDuration::ZERO)) else { return };
        let mut shard = Shard::new(SHARD, lease.epoch, self.limits.clone(), self.knobs.settings.clone());
        let (now, mut effects) = (self.clock(node), Vec::new());
        self.declare_queue(node, &mut shard);
        let timers = at_once(self.store.timers(SHARD, None, usize::MAX));
        shard.handle(now, Event::Timers(timers), &mut effects);
        let owner = &mut self.nodes[node];
        owner.owner.clear();
        (owner.owner.shard, owner.epoch) = (Some(shard), lease.epoch);
        let by = self.process(node, Role::Owner);
        self.perform(by, effects);
        self.settle(by);
    }

    /// A guest has written a schedule: whoever believes to own it hears of it, late, or only that something was missed.
    pub(super) fn tell_owners(&mut self, tree: TreeKey, due_time: Option<Timestamp>) {
        for node in 0..self.nodes.len() {
            let by = self.process(node, Role::Owner);
            let late = self.random.between(0, self.knobs.news_seconds_max);
            if self.random.chance(self.knobs.news_lost) {
                self.at(late + 30, Happening::Gap { by });
            } else {
                let event = Box::new(Event::Moved { tree, due_time });
                self.at(late, Happening::Hear { by, event });
            }
        }
    }

    /// News were missed: an owner trusts nothing that it remembers, and looks at the stored timers.
    pub(super) fn gap(&mut self, by: Process) {
        self.tell_shard(by, Event::MissedNews);
        let timers = at_once(self.store.timers(SHARD, None, usize::MAX));
        if let Some(shard) = self.shard(by) {
            shard.recheck(&timers);
            self.settle(by);
        }
    }
}
