//! Machines, the processes on them, and how those die.
//!
//! A process may die wherever it waits: before its commit leaves, before it hears of it, between two effects, before an
//! answer is recorded. What comes back is another process, with another number, which remembers nothing. A process that stands
//! still remembers everything, and hears afterwards, all at once, what it should have heard.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use punctual_engine::cluster::Membership;
use punctual_engine::relay::Told;
use punctual_engine::shard::{Assignment, BatchId, Event, Shard};
use punctual_store::{Keeper, Lease, NodeId, ShardId, Store, TreeKey};

use super::World;
use super::agenda::Happening;
use crate::store::at_once;
use crate::workload::{QUEUE, key};

/// A machine.
#[derive(Default)]
pub(super) struct Node {
    /// What runs on it, while it is up.
    pub(super) member: Option<Member>,
    /// When it last died at a point where it waited.
    died_at: Option<Timestamp>,
    /// The database's clock as it believes it to be, minus the true one.
    pub(super) skew: SignedDuration,
    /// What has come for it since it stands still; nothing while it does not.
    pub(super) stopped: Option<Vec<Happening>>,
    /// The way to the database is cut.
    pub(super) cut: Option<Cut>,
}

/// How a node is cut from the database.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) until: Timestamp,
    /// What it asks arrives; only the answers do not.
    pub(super) deaf: bool,
}

/// A process among those that share the database.
pub(super) struct Member {
    pub(super) life: u64,
    pub(super) id: NodeId,
    pub(super) keeper: Keeper,
    pub(super) membership: Membership,
    /// Ends of runs that it has told to owners elsewhere.
    pub(super) told: Told<Assignment>,
    /// What it believes to own.
    pub(super) owners: BTreeMap<ShardId, Seat>,
    /// What it serves other nodes' schedules with, once somebody asked.
    guest: Option<Seat>,
    /// The number of its next round.
    pub(super) round: u64,
    pub(super) in_round: bool,
    /// Another round is wanted right after this one.
    pub(super) rung: bool,
    /// It takes no more, and goes when it has given everything up.
    pub(super) leaving: bool,
}

/// Where a shard sits, as a driver holds it.
pub(super) struct Seat {
    /// No two have the same, so that none hears what another one asked for.
    pub(super) life: u64,
    /// Nothing until its timers are read.
    pub(super) shard: Option<Shard>,
    /// What came before.
    pub(super) inbox: Vec<Word>,
    /// When it is going to be looked at.
    pub(super) tick_time: Option<Timestamp>,
    pub(super) lease: Option<Lease>,
    /// It finishes what is on its way, and ends.
    pub(super) stopping: bool,
    /// Batches that it waits for, and when they left.
    pub(super) on_its_way: BTreeMap<BatchId, Timestamp>,
}

/// What a driver is told.
pub(super) enum Word {
    Event(Event),
    Recheck(Vec<(TreeKey, Option<Timestamp>)>),
}

impl Seat {
    pub(super) fn new(life: u64, shard: Option<Shard>, lease: Option<Lease>) -> Seat {
        let (inbox, on_its_way) = Default::default();
        Seat { life, shard, inbox, tick_time: None, lease, stopping: false, on_its_way }
    }

    /// Whether it is driven, and goes on to be.
    pub(super) fn drives(&self) -> bool {
        self.shard.is_some() && !self.stopping
    }
}

/// In what right a shard of a node writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Owner(ShardId),
    Guest,
}

/// One shard of one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pub(super) node: usize,
    pub(super) role: Role,
    pub(super) life: u64,
}

/// One process as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Who {
    pub(super) node: usize,
    pub(super) life: u64,
}

impl Node {
    pub(super) fn seat(&mut self, role: Role) -> Option<&mut Seat> {
        let member = self.member.as_mut()?;
        match role {
            Role::Owner(shard) => member.owners.get_mut(&shard),
            Role::Guest => member.guest.as_mut(),
        }
    }

    /// Whether it drives a shard, as far as it knows.
    pub(super) fn drives(&self, shard: ShardId) -> bool {
        let seat = self.member.as_ref().and_then(|member| member.owners.get(&shard));
        seat.is_some_and(|seat| !seat.stopping)
    }
}

impl World {
    /// A process begins: it gets a number that nobody had before, and looks who else is there.
    pub(super) fn boot(&mut self, node: usize) {
        if self.nodes[node].member.is_some() {
            return;
        }
        if !self.reaches(node) {
            let soon = self.random.between(1, 10);
            return self.at(soon, Happening::Boot { node });
        }
        let keeper = Keeper(at_once(self.store.reserve(1)));
        let id = NodeId(format!("node-{node}#{keeper}").into());
        let membership = Membership::new(id.clone(), keeper, self.knobs.shards, self.knobs.lease());
        let life = self.new_life();
        self.nodes[node].member = Some(Member {
            life,
            id,
            keeper,
            membership,
            told: Told::default(),
            owners: BTreeMap::new(),
            guest: None,
            round: 0,
            in_round: false,
            rung: false,
            leaving: false,
        });
        self.disturbed();
        self.plan_round(node, SignedDuration::ZERO);
    }

    /// Everything in its memory is gone.
    pub(super) fn die(&mut self, node: usize) {
        self.nodes[node].member = None;
        self.nodes[node].stopped = None;
        self.disturbed();
    }

    pub(super) fn new_life(&mut self) -> u64 {
        self.lives += 1;
        self.lives
    }

    /// A process, if it is still the same.
    pub(super) fn member(&mut self, who: Who) -> Option<&mut Member> {
        self.nodes[who.node].member.as_mut().filter(|member| member.life == who.life)
    }

    pub(super) fn who(&self, node: usize) -> Option<Who> {
        self.nodes[node].member.as_ref().map(|member| Who { node, life: member.life })
    }

    pub(super) fn process(&mut self, node: usize, role: Role) -> Option<Process> {
        self.nodes[node].seat(role).map(|seat| Process { node, role, life: seat.life })
    }

    /// Everything that a node drives or serves with.
    pub(super) fn processes(&mut self, node: usize) -> Vec<Process> {
        let Some(member) = &self.nodes[node].member else { return Vec::new() };
        let owners = member.owners.iter().map(|(shard, seat)| (Role::Owner(*shard), seat.life));
        let all = owners.chain(member.guest.iter().map(|seat| (Role::Guest, seat.life)));
        all.map(|(role, life)| Process { node, role, life }).collect()
    }

    /// The shard of a process, if it is still there.
    pub(super) fn seat(&mut self, by: Process) -> Option<&mut Seat> {
        self.nodes[by.node].seat(by.role).filter(|seat| seat.life == by.life)
    }

    pub(super) fn lives(&mut self, by: Process) -> bool {
        self.seat(by).is_some()
    }

    /// Whether a process is dead, or dies here.
    pub(super) fn dies(&mut self, by: Process) -> bool {
        !self.lives(by) || self.dies_here(by.node)
    }

    /// Whether whatever runs on a node dies where it waits.
    pub(super) fn dies_here(&mut self, node: usize) -> bool {
        // Between two deaths a node gets something done: one that dies of every crowd it finds would never end it.
        let rest = SignedDuration::from_secs(self.knobs.beat_seconds / 2);
        let rested = self.nodes[node].died_at.is_none_or(|died_at| died_at + rest < self.now);
        if !rested || !self.random.chance(self.knobs.crash_at_await) {
            return false;
        }
        self.die(node);
        self.nodes[node].died_at = Some(self.now);
        let back = self.random.between(1, 300);
        self.at(back, Happening::Boot { node });
        true
    }

    /// Whom a client or a worker turns to: any node that believes to own the shard, or any at all.
    pub(super) fn any_server(&mut self, shard: ShardId) -> Option<Who> {
        let guest = self.random.chance(self.knobs.guests);
        let node = match guest.then(|| self.pick(|node| node.member.is_some())) {
            Some(node) => node,
            None => self.pick(|node| node.drives(shard)),
        };
        self.who(node?)
    }

    pub(super) fn pick(&mut self, fits: impl Fn(&Node) -> bool) -> Option<usize> {
        let fitting: Vec<usize> = (0..self.nodes.len()).filter(|node| fits(&self.nodes[*node])).collect();
        (!fitting.is_empty()).then(|| *self.random.pick(&fitting))
    }

    /// What a node serves other nodes' schedules with.
    pub(super) fn guest(&mut self, node: usize) -> Option<Process> {
        if self.nodes[node].member.as_ref()?.guest.is_none() {
            let (limits, settings) = (self.limits.clone(), self.knobs.settings.clone());
            let mut guest = Shard::guest(self.knobs.shards, limits, settings);
            self.declare_queue(node, &mut guest);
            let life = self.new_life();
            self.nodes[node].member.as_mut()?.guest = Some(Seat::new(life, Some(guest), None));
        }
        self.process(node, Role::Guest)
    }

    pub(super) fn declare_queue(&self, node: usize, shard: &mut Shard) {
        let (namespace, name, queue) = (key(0).namespace, QUEUE.into(), self.queue);
        let declared = Event::QueueDeclared { namespace, name, queue };
        shard.handle(self.clock(node), declared, &mut Vec::new());
    }
}
