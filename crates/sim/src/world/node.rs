//! Nodes, how they die, and who owns the schedules then.
//!
//! A node may die wherever it waits: before its commit leaves, before it hears of it, between two effects, before an
//! answer is recorded. It comes back as another process, which remembers nothing.

use jiff::{SignedDuration, Timestamp};
use punctual_engine::shard::{Event, Shard};
use punctual_store::{Epoch, NodeId, ShardId, Store};

use super::World;
use super::agenda::Happening;
use crate::store::at_once;
use crate::workload::{QUEUE, key};

/// The only shard.
const SHARD: ShardId = ShardId(0);

/// A machine.
pub(super) struct Node {
    pub(super) up: bool,
    /// Counts its processes, and within them its shards, so that none hears what another one asked for.
    pub(super) life: u64,
    /// When it last died at a point where it waited.
    died_at: Option<Timestamp>,
    /// Its clock minus the true time.
    pub(super) skew: SignedDuration,
    /// What it drives, if it believes to be the owner.
    pub(super) shard: Option<Shard>,
    epoch: Epoch,
    /// When it is going to look at its shard.
    pub(super) tick_time: Option<Timestamp>,
}

/// One process: a node between two deaths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pub(super) node: usize,
    pub(super) life: u64,
}

impl Node {
    pub(super) fn new() -> Node {
        Node {
            up: true,
            life: 0,
            died_at: None,
            skew: SignedDuration::ZERO,
            shard: None,
            epoch: Epoch(0),
            tick_time: None,
        }
    }

    /// Everything in its memory is gone.
    pub(super) fn die(&mut self) {
        self.up = false;
        self.lose_shard();
    }

    /// It drives nothing any more, and nobody listens to what its shard asked for.
    pub(super) fn lose_shard(&mut self) {
        (self.shard, self.tick_time) = (None, None);
        self.life += 1;
    }
}

impl World {
    pub(super) fn process(&self, node: usize) -> Process {
        Process { node, life: self.nodes[node].life }
    }

    /// Whom a client or a worker turns to: any node that believes to be the owner.
    pub(super) fn any_owner(&mut self) -> Option<Process> {
        let owners: Vec<usize> =
            (0..self.nodes.len()).filter(|node| self.nodes[*node].shard.is_some()).collect();
        (!owners.is_empty()).then(|| *self.random.pick(&owners)).map(|node| self.process(node))
    }

    pub(super) fn lives(&self, process: Process) -> bool {
        let node = &self.nodes[process.node];
        node.up && node.life == process.life
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
        let owned = self.nodes.iter().any(|node| node.shard.is_some() && Some(node.epoch) == latest);
        if !owned {
            self.take_over();
        }
    }

    /// Another node becomes the owner; the old one may go on believing that it is.
    pub(super) fn take_over(&mut self) {
        let ups: Vec<usize> = (0..self.nodes.len()).filter(|index| self.nodes[*index].up).collect();
        if !ups.is_empty() {
            let node = *self.random.pick(&ups);
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
        let (namespace, name, queue) = (key(0).namespace, QUEUE.into(), self.queue);
        shard.handle(now, Event::QueueDeclared { namespace, name, queue }, &mut effects);
        let timers = at_once(self.store.timers(SHARD, None, usize::MAX));
        shard.handle(now, Event::Timers(timers), &mut effects);
        let owner = &mut self.nodes[node];
        owner.lose_shard();
        (owner.shard, owner.epoch) = (Some(shard), lease.epoch);
        let by = self.process(node);
        self.perform(by, effects);
        self.settle(by);
    }
}
