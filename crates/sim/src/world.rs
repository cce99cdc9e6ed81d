//! Nodes, clocks, a store, a dispatcher and workers, one event after the other, all from one seed.
//!
//! Nodes share out the shards by the engine's own [`Membership`](punctual_engine::cluster::Membership), and drive what they hold with
//! its own [`Shard`](punctual_engine::shard::Shard). What those ask for travels through this world, where everything may go wrong: the
//! node dies or stands still, its clock is off, a call fails or its answer is lost, another node takes over. What a node believes may
//! be old; only the store's comparison decides.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use punctual_core::{BufferedStart, Limits, Phase, StartId};
use punctual_engine::shard::Ticket;
use punctual_store::{Epoch, Listener, NewQueue, QueueKey, RunKey, ShardId, Store, TreeKey};

use crate::checker::Violation;
use crate::chronicle::Chronicle;
use crate::dispatcher::Dispatcher;
use crate::random::Random;
use crate::store::{SimulatedStore, at_once};
use crate::swarm::{self, Knobs};
use crate::workload::{QUEUE, Workload, key};

mod agenda;
mod node;
mod rounds;
mod drive;
mod trouble;
mod effects;
mod news;
mod clients;
mod outside;
mod workers;

use agenda::{Agenda, Happening};
use clients::Asked;
use node::Node;

/// Deliberate faults of all nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Careless {
    /// What is over its share is not given up.
    pub clings: bool,
    /// Nothing is taken after the first round.
    pub sits_still: bool,
    /// What was lost is driven on.
    pub outlives_leases: bool,
}

/// How often worlds met what is rare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Met {
    /// Shards that were taken.
    pub taken: u64,
    /// Drivers that learned from a write that the shard was not theirs any more.
    pub fenced: u64,
    /// Ends of runs that were told to an owner elsewhere.
    pub told: u64,
    /// Of those, the ones that the owner answered for.
    pub answered: u64,
    /// And the ones that it could not write.
    pub refused: u64,
    /// Moments at which it could be judged who drives what.
    pub judged: u64,
}

impl Met {
    /// Adds another world.
    pub fn add(&mut self, other: Met) {
        self.taken += other.taken;
        self.fenced += other.fenced;
        self.told += other.told;
        self.answered += other.answered;
        self.refused += other.refused;
        self.judged += other.judged;
    }
}

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
    /// What its nodes do wrong.
    pub careless: Careless,
    /// What it met so far.
    pub met: Met,
    knobs: Knobs,
    random: Random,
    workload: Workload,
    nodes: Vec<Node>,
    /// Counts processes and what they drive.
    lives: u64,
    /// When something last happened to a node or to the database.
    disturbed_at: Timestamp,
    /// The database is away.
    down_until: Option<Timestamp>,
    /// What the store tells.
    listener: Listener,
    /// Who wrote as the owner of a shard, by epoch.
    writers: BTreeMap<(ShardId, Epoch), u64>,
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
        let store = SimulatedStore::new(knobs.shards, now);
        let (namespace, settings) = (key(0).namespace, Default::default());
        let queue = NewQueue { namespace, name: QUEUE.into(), settings, created_at: now };
        let queue = at_once(store.create_queue(queue)).queue;
        let listener = store.listen().expect("the reference store has news");
        let mut world = World {
            now,
            limits,
            store,
            chronicle: Chronicle::default(),
            dispatcher: Dispatcher::default(),
            healed_at: None,
            doubtful: BTreeSet::new(),
            commits: 0,
            careless: Careless::default(),
            met: Met::default(),
            random,
            workload,
            nodes: (0..knobs.nodes).map(|_| Node::default()).collect(),
            lives: 0,
            disturbed_at: now,
            down_until: None,
            listener,
            writers: BTreeMap::new(),
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
        for node in 0..world.nodes.len() {
            world.at(0, Happening::Boot { node });
        }
        world.at(0, Happening::Beat);
        world
    }

    /// Lets the world run, with its faults, for as long as its knobs say, and then without faults until it is quiet.
    pub fn run(&mut self) -> Result<(), Violation> {
        let end = self.now + self.knobs.length;
        self.run_until(end)?;
        self.heal();
        // Long enough for every lease of a node that is gone, every retry, every silent run and every buffered start.
        let quiet = self.now + self.knobs.lease() * 3 + SignedDuration::from_hours(3);
        self.run_until(quiet)?;
        crate::checker::check_quiet(self)
    }

    fn run_until(&mut self, end: Timestamp) -> Result<(), Violation> {
        while let Some((time, happening)) = self.agenda.take(end) {
            if self.now < time {
                self.now = time;
                self.store.set_now(time);
            }
            self.happen(happening)?;
            self.spread_news();
            if let Some(violation) = self.broken.take() {
                return Err(violation);
            }
        }
        self.now = end;
        self.store.set_now(end);
        Ok(())
    }

    fn heal(&mut self) {
        self.knobs = self.knobs.healed();
        self.healed_at = Some(self.now);
        for (tree, tale) in self.chronicle.tales.iter().filter(|(_, tale)| tale.is_open()) {
            let doubtful = |start: &BufferedStart| matches!(start.phase, Phase::Doubtful { .. });
            let starts = tale.snapshot().starts.into_owned().into_iter().filter(doubtful);
            self.doubtful.extend(starts.map(|start| (*tree, start.id)));
        }
        self.heal_nodes();
    }

    fn at(&mut self, seconds: i64, happening: Happening) {
        self.at_time(self.now + SignedDuration::from_secs(seconds), happening);
    }

    fn at_time(&mut self, time: Timestamp, happening: Happening) {
        self.agenda.add(time, happening);
    }

    fn happen(&mut self, happening: Happening) -> Result<(), Violation> {
        if let Some(late) = happening.place().and_then(|node| self.nodes[node].stopped.as_mut()) {
            late.push(happening);
            return Ok(());
        }
        if let Some(until) = self.down_until.filter(|_| happening.needs_database()) {
            self.at_time(until, happening);
            return Ok(());
        }
        match happening {
            Happening::Beat => {
                self.beat();
                self.met.judged += u64::from(crate::checker::check_owners(self)?);
            }
            Happening::Boot { node } => self.boot(node),
            Happening::Round { who, round } => self.round(who, round),
            Happening::Answer { who, heard } => self.heard(who, *heard),
            Happening::Adopt { who, orphans } => self.adopt(who, *orphans),
            Happening::ReadTimers { who, shard, life } => self.read_timers(who, shard, life),
            Happening::Drive { by, shard, timers } => self.drive(by, shard, timers),
            Happening::GoOn { node } => self.go_on(node),
            Happening::CutMended { node } => self.mend_cut(node),
            Happening::DatabaseBack => self.database_back(),
            Happening::News { who, news } => self.hear_news(who, *news),
            Happening::CheckTimers { who } => self.check_timers(who),
            Happening::Serve { who, shard, work } => self.serve(who, shard, *work),
            Happening::LosePatienceWithOwner { who, ticket } => self.lose_patience_with_owner(who, ticket),
            Happening::Tick { by } => self.tick(by),
            Happening::Load { by, trees } => self.load(by, trees),
            Happening::Reserve { by, count } => self.reserve(by, count),
            Happening::Arrive(letter) => return self.arrive(*letter),
            Happening::Hear { by, event } => self.tell_shard(by, *event),
            Happening::Gap { who } => self.gap(who),
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

    fn clock(&self, node: usize) -> Timestamp {
        self.now + self.nodes[node].skew
    }

    /// How many schedules clients keep.
    pub fn schedules(&self) -> usize {
        self.knobs.schedules
    }
}
