//! Nodes, clocks, a store, a dispatcher and workers, one event after the other, all from one seed.
//!
//! A node that owns the schedules drives them with the engine's own [`Shard`]; what the shard asks for travels through
//! this world, where everything may go wrong: the node dies, its clock is off, a load or a commit fails or its answer is
//! lost, another node takes over. What a node believes (its epoch) may be old; only the store's comparison decides.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use punctual_core::{BufferedStart, Limits, Phase, StartId};
use punctual_engine::shard::{Shard, Ticket};
use punctual_store::{NewQueue, QueueKey, RunKey, Store, TreeKey};

use crate::checker::Violation;
use crate::chronicle::Chronicle;
use crate::dispatcher::Dispatcher;
use crate::random::Random;
use crate::store::{SimulatedStore, at_once};
use crate::swarm::{self, Knobs};
use crate::workload::{QUEUE, Workload, key};

mod agenda;
mod node;
mod effects;
mod clients;
mod outside;
mod workers;

use agenda::{Agenda, Happening};
use clients::Asked;
use node::{Node, Process, Role};

/// The world.
pub struct World {
    /// The true time.
    pub now: Timestamp,
    /// The bounds in force.
    pub limits: Limits,
    /// What is durable.
    pub store: SimulatedStore,
    /// What was committed.
    pub chronicle: Chronicle,
    /// What runs.
    pub dispatcher: Dispatcher,
    /// When the faults ended.
    pub healed_at: Option<Timestamp>,
    /// The starts that were in doubt then.
    pub doubtful: BTreeSet<(TreeKey, StartId)>,
    /// Units committed so far.
    pub commits: u64,
    knobs: Knobs,
    random: Random,
    workload: Workload,
    nodes: Vec<Node>,
    queue: QueueKey,
    /// The runs on the queue, by key.
    runs: BTreeMap<RunKey, (TreeKey, StartId)>,
    waiting: BTreeMap<Ticket, Asked>,
    tickets: u64,
    agenda: Agenda,
    /// The first promise that a node itself found broken.
    broken: Option<Violation>,
}

impl World {
    /// A world in which every node is up and clients are about to create its schedules.
    pub fn new(knobs: Knobs) -> World {
        let mut random = Random::new(knobs.seed ^ 0x5eed);
        let limits = swarm::limits(&mut random, &knobs);
        let now = swarm::beginning(&mut random);
        let workload = Workload::new(random.fork(), knobs.beat_seconds > 60);
        let store = SimulatedStore::new(1, now);
        let (namespace, settings) = (key(0).namespace, Default::default());
        let queue = NewQueue { namespace, name: QUEUE.into(), settings, created_at: now };
        let queue = at_once(store.create_queue(queue)).queue;
        let mut world = World {
            now,
            limits,
            store,
            chronicle: Chronicle::default(),
            dispatcher: Dispatcher::default(),
            healed_at: None,
            doubtful: BTreeSet::new(),
            commits: 0,
            random,
            workload,
            nodes: (0..knobs.nodes).map(|_| Node::new()).collect(),
            queue,
            runs: BTreeMap::new(),
            waiting: BTreeMap::new(),
            tickets: 0,
            agenda: Agenda::default(),
            broken: None,
            knobs,
        };
        for index in 0..world.knobs.schedules {
            let order = world.workload.create(index);
            world.at(0, Happening::Ask(Box::new(Asked::order(order))));
        }
        world.at(0, Happening::Elect);
        world.at(0, Happening::Beat);
        world
    }

    /// Lets the world run, with its faults, for as long as its knobs say, and then without faults until it is quiet.
    pub fn run(&mut self) -> Result<(), Violation> {
        let end = self.now + self.knobs.length;
        self.run_until(end)?;
        self.heal();
        // Long enough for every retry, every silent run and every buffered start.
        let quiet = self.now + SignedDuration::from_hours(3);
        self.run_until(quiet)?;
        crate::checker::check_quiet(self)
    }

    fn run_until(&mut self, end: Timestamp) -> Result<(), Violation> {
        while let Some((time, happening)) = self.agenda.take(end) {
            self.now = self.now.max(time);
            self.happen(happening)?;
            if let Some(violation) = self.broken.take() {
                return Err(violation);
            }
        }
        self.now = end;
        Ok(())
    }

    fn heal(&mut self) {
        self.knobs = self.knobs.healed();
        self.healed_at = Some(self.now);
        for (tree, tale) in self.chronicle.tales.iter().filter(|(_, tale)| tale.is_open()) {
            let doubtful = |start: &BufferedStart| matches!(start.phase, Phase::Doubtful { .. });
            let starts = tale.snapshot().starts.into_iter().filter(doubtful);
            self.doubtful.extend(starts.map(|start| (*tree, start.id)));
        }
        for node in &mut self.nodes {
            node.die();
            (node.up, node.skew) = (true, SignedDuration::ZERO);
        }
        self.acquire(0);
    }

    fn at(&mut self, seconds: i64, happening: Happening) {
        self.at_time(self.now + SignedDuration::from_secs(seconds), happening);
    }

    fn at_time(&mut self, time: Timestamp, happening: Happening) {
        self.agenda.add(time, happening);
    }

    fn happen(&mut self, happening: Happening) -> Result<(), Violation> {
        match happening {
            Happening::Beat => self.beat(),
            Happening::Revive { node } => self.revive(node),
            Happening::Elect => self.elect(),
            Happening::Tick { by } => self.tick(by),
            Happening::Load { by, trees } => self.load(by, trees),
            Happening::Reserve { by, count } => self.reserve(by, count),
            Happening::Arrive(letter) => return self.arrive(*letter),
            Happening::Hear { by, event } => self.tell_shard(by, *event),
            Happening::Gap { by } => self.gap(by),
            Happening::Ask(asked) => self.ask(*asked),
            Happening::LosePatience(ticket) => self.lose_patience(ticket),
            Happening::Start { by, tree, dispatch } => return self.start(by, tree, dispatch),
            Happening::RunEnds { tree, start } => self.run_ends(tree, start),
            Happening::Stop { by, tree, start, run, kind } => self.stop(by, tree, start, run, kind),
            Happening::Look { by, tree, start } => self.look(by, tree, start),
            Happening::Claim => self.claim(),
            Happening::AttemptEnds { run, attempt, outcome } => self.attempt_ends(run, attempt, outcome),
            Happening::Release { run } => self.release(run),
        }
        Ok(())
    }

    /// At every beat the world may be unkind, and clients may want something.
    fn beat(&mut self) {
        self.at(self.knobs.beat_seconds, Happening::Beat);
        for index in 0..self.nodes.len() {
            if self.random.chance(self.knobs.crash) {
                match self.nodes[index].up {
                    true => self.nodes[index].die(),
                    false => self.nodes[index].up = true,
                }
            }
            let most = self.knobs.skew_seconds_max;
            if most > 0 && self.random.chance(100) {
                self.nodes[index].skew = SignedDuration::from_secs(self.random.between(-most, most));
                for role in [Role::Owner, Role::Guest] {
                    let by = self.process(index, role);
                    self.settle(by);
                }
            }
        }
        self.elect();
        if self.random.chance(self.knobs.takeover) {
            self.take_over();
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

    fn shard(&mut self, by: Process) -> Option<&mut Shard> {
        let seat = self.nodes[by.node].seat(by.role);
        seat.shard.as_mut().filter(|_| seat.life == by.life)
    }

    fn clock(&self, node: usize) -> Timestamp {
        self.now + self.nodes[node].skew
    }

    /// How many schedules clients keep.
    pub fn schedules(&self) -> usize {
        self.knobs.schedules
    }
}
