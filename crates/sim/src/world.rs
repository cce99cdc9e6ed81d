//! Nodes, clocks, a store and a dispatcher, one event after the other, all from one seed.
//!
//! A node loads a schedule, makes one change at its own time, and commits by comparison. Everything between two
//! events may go wrong: the node dies, its clock is off, the commit fails or its answer is lost, another node is
//! faster. What a node believes (its epoch) may be old; only the store's comparison decides.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{
    Completion, Dispatch, Dispatched, Effects, Limits, ScheduleTree, Seen, Sighting, StartId, StopKind,
    Target,
};

use crate::checker::Violation;
use crate::dispatcher::{Dispatcher, Ended};
use crate::random::Random;
use crate::store::{Commit, Refused, Store};
use crate::story::Event;
use crate::swarm::Knobs;
use crate::workload::{Order, Workload, apply};

/// One process.
#[derive(Clone, Debug)]
struct Node {
    up: bool,
    /// Its clock minus the true time.
    skew: SignedDuration,
    /// The epoch it believes in, if it believes to be the owner.
    epoch: Option<u64>,
}

/// Something a node wants to do to one schedule.
#[derive(Clone, Debug)]
pub enum Work {
    /// The timer came.
    Wake,
    /// A client asked.
    Order(Order),
    /// The dispatcher answered.
    Record(StartId, Dispatched),
    /// A run ended.
    Complete(Completion),
    /// A request to stop arrived.
    StopDelivered(StartId),
    /// Somebody looked after a silent run.
    Sight(Sighting),
}

/// What happens at a time.
#[derive(Clone, Debug)]
enum Happening {
    Beat,
    Sweep,
    /// A timer of this schedule is near: whoever believes to be the owner should look.
    Timer {
        schedule: usize,
    },
    Begin {
        node: usize,
        schedule: usize,
        work: Work,
        tries: u32,
    },
    Arrive {
        node: usize,
        work: Work,
        tries: u32,
        commit: Box<Commit>,
    },
    Start {
        node: usize,
        schedule: usize,
        dispatch: Dispatch,
    },
    RunEnds {
        schedule: usize,
        start: StartId,
    },
    Stop {
        node: usize,
        schedule: usize,
        start: StartId,
        kind: StopKind,
    },
    Look {
        node: usize,
        schedule: usize,
        start: StartId,
    },
}

/// The world.
pub struct World {
    /// The true time.
    pub now: Timestamp,
    /// The bounds in force.
    pub limits: Limits,
    /// What is durable.
    pub store: Store,
    /// What runs.
    pub dispatcher: Dispatcher,
    knobs: Knobs,
    random: Random,
    workload: Workload,
    nodes: Vec<Node>,
    queue: BinaryHeap<Reverse<(Timestamp, u64)>>,
    happenings: std::collections::BTreeMap<u64, Happening>,
    ticket: u64,
    /// Transitions committed so far.
    pub commits: u64,
}

impl World {
    /// A world with its schedules created and every node up.
    pub fn new(knobs: Knobs) -> World {
        let mut random = Random::new(knobs.seed ^ 0x5eed);
        let limits = crate::swarm::limits(&mut random);
        let now = crate::swarm::beginning(&mut random);
        let mut workload = Workload::new(random.fork(), knobs.beat_seconds > 60);
        let schedules = (0..knobs.schedules).map(|index| workload.create(index, now, &limits)).collect();
        let nodes = (0..knobs.nodes).map(|index| Node {
            up: true,
            skew: SignedDuration::ZERO,
            epoch: (index == 0).then_some(0),
        });
        let mut world = World {
            now,
            limits,
            store: Store { schedules, ..Store::default() },
            dispatcher: Dispatcher::default(),
            random,
            workload,
            nodes: nodes.collect(),
            queue: BinaryHeap::new(),
            happenings: Default::default(),
            ticket: 0,
            commits: 0,
            knobs,
        };
        world.at(0, Happening::Beat);
        world.at(0, Happening::Sweep);
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
        while let Some(Reverse((time, ticket))) = self.queue.peek().copied() {
            if time > end {
                break;
            }
            self.queue.pop();
            self.now = self.now.max(time);
            if let Some(happening) = self.happenings.remove(&ticket) {
                self.happen(happening)?;
            }
        }
        self.now = end;
        Ok(())
    }

    fn heal(&mut self) {
        self.knobs = self.knobs.healed();
        self.store.epoch += 1;
        for (index, node) in self.nodes.iter_mut().enumerate() {
            *node = Node {
                up: true,
                skew: SignedDuration::ZERO,
                epoch: (index == 0).then_some(self.store.epoch),
            };
        }
        self.at(0, Happening::Sweep);
    }

    fn at(&mut self, seconds: i64, happening: Happening) {
        self.at_time(self.now + SignedDuration::from_secs(seconds), happening);
    }

    fn at_time(&mut self, time: Timestamp, happening: Happening) {
        self.ticket += 1;
        self.queue.push(Reverse((time, self.ticket)));
        self.happenings.insert(self.ticket, happening);
    }

    fn happen(&mut self, happening: Happening) -> Result<(), Violation> {
        match happening {
            Happening::Beat => self.beat(),
            Happening::Sweep => self.sweep(),
            Happening::Timer { schedule } => self.look_at_timer(schedule),
            Happening::Begin { node, schedule, work, tries } => self.begin(node, schedule, work, tries),
            Happening::Arrive { node, work, tries, commit } => {
                return self.arrive(node, work, tries, *commit);
            }
            Happening::Start { node, schedule, dispatch } => return self.start(node, schedule, dispatch),
            Happening::RunEnds { schedule, start } => self.run_ends(schedule, start),
            Happening::Stop { node, schedule, start, kind } => self.stop(node, schedule, start, kind),
            Happening::Look { node, schedule, start } => self.look(node, schedule, start),
        }
        Ok(())
    }

    /// At every beat the world may be unkind, and clients may want something.
    fn beat(&mut self) {
        self.at(self.knobs.beat_seconds, Happening::Beat);
        for index in 0..self.nodes.len() {
            if self.random.chance(self.knobs.crash) {
                self.nodes[index].up = !self.nodes[index].up;
                self.nodes[index].epoch = None;
            }
            let most = self.knobs.skew_seconds_max;
            if most > 0 && self.random.chance(100) {
                self.nodes[index].skew = SignedDuration::from_secs(self.random.between(-most, most));
            }
        }
        let owned = self.nodes.iter().any(|node| node.up && node.epoch == Some(self.store.epoch));
        if !owned || self.random.chance(self.knobs.takeover) {
            self.take_over();
        }
        for schedule in 0..self.store.schedules.len() {
            if self.random.chance(self.knobs.command) {
                let stored = &self.store.schedules[schedule];
                if let Some(order) = self.workload.order(schedule, stored, self.now, &self.limits) {
                    let (node, delay) =
                        (self.any_node(), self.random.between(0, self.knobs.beat_seconds / 2));
                    self.at(delay, Happening::Begin { node, schedule, work: Work::Order(order), tries: 0 });
                }
            }
        }
    }

    /// Another node becomes the owner; the old one may go on believing that it is.
    fn take_over(&mut self) {
        let ups: Vec<usize> = (0..self.nodes.len()).filter(|index| self.nodes[*index].up).collect();
        if ups.is_empty() {
            return;
        }
        self.store.epoch += 1;
        let owner = *self.random.pick(&ups);
        self.nodes[owner].epoch = Some(self.store.epoch);
        // An owner that has just come hands everything to the dispatcher again: who knows what its predecessor did.
        for schedule in 0..self.store.schedules.len() {
            self.hand_over(owner, schedule);
        }
    }

    fn hand_over(&mut self, node: usize, schedule: usize) {
        let now = self.clock(node);
        let planned = self.store.schedules[schedule].tree.plan_execute(now, &self.limits);
        for dispatch in planned {
            self.at(0, Happening::Start { node, schedule, dispatch });
        }
    }

    /// A slow look at everything, for timers whose news was lost.
    fn sweep(&mut self) {
        let next = self.knobs.beat_seconds.min(1_800) / 2 + self.random.between(1, 30);
        self.at(next, Happening::Sweep);
        for schedule in 0..self.store.schedules.len() {
            self.look_at_timer(schedule);
        }
    }

    /// Whoever believes to be the owner wakes a schedule whose time has come by its own clock.
    fn look_at_timer(&mut self, schedule: usize) {
        let tree = &self.store.schedules[schedule].tree;
        // What is over needs no timer here; a real store removes it.
        let Some(timer) = tree.next_time(&self.limits).filter(|_| tree.is_open()) else { return };
        let mut early = i64::MAX;
        for node in 0..self.nodes.len() {
            if !self.nodes[node].up || self.nodes[node].epoch.is_none() {
                continue;
            }
            if timer <= self.clock(node) {
                self.begin(node, schedule, Work::Wake, 0);
            } else {
                early = early.min(timer.duration_since(self.clock(node)).as_secs() + 1);
            }
        }
        // A clock that is behind finds it too early; one more look is enough, and never more than one.
        if early < 60 {
            self.at(early, Happening::Timer { schedule });
        }
    }

    /// A node loads a schedule and computes its next state; the commit is on its way.
    fn begin(&mut self, node: usize, schedule: usize, work: Work, tries: u32) {
        if !self.nodes[node].up {
            // Clients and reports try another node; timers are found by the next owner. What a queue reports is durable.
            let durable = matches!(work, Work::Complete(_))
                && self.tree(schedule).definition().schedule().action.target == Target::Queue;
            if !matches!(work, Work::Wake) && (tries < 10 || durable) {
                let node = self.any_node();
                let tries = if durable { tries } else { tries + 1 };
                self.at(5, Happening::Begin { node, schedule, work, tries });
            }
            return;
        }
        let now = self.clock(node);
        let stored = &self.store.schedules[schedule];
        let (mut tree, expected) = (stored.tree.clone(), stored.sequence);
        let mut effects = Effects::default();
        // What is refused leaves nothing behind.
        let Some(event) = apply(&mut tree, now, &self.limits, &mut effects, &work) else { return };
        if effects.changed == Default::default() && matches!(work, Work::Wake) {
            return;
        }
        let epoch = if matches!(work, Work::Wake) { self.nodes[node].epoch } else { None };
        let commit = Box::new(Commit { schedule, expected, epoch, tree, effects, event });
        let delay = self.random.between(0, self.knobs.commit_seconds_max);
        self.at(delay, Happening::Arrive { node, work, tries, commit });
    }

    fn arrive(&mut self, node: usize, work: Work, tries: u32, commit: Commit) -> Result<(), Violation> {
        let schedule = commit.schedule;
        let failed = self.random.chance(self.knobs.commit_fails);
        let outcome = if failed { Err(Refused::Conflict) } else { self.store.commit(&commit) };
        match outcome {
            // The node learns that it is no longer the owner, unless it has become it again since.
            Err(Refused::Fenced) if self.nodes[node].epoch == commit.epoch => self.nodes[node].epoch = None,
            Err(Refused::Fenced) => {}
            Err(Refused::Conflict) if matches!(work, Work::Wake) => {}
            Err(Refused::Conflict) if tries < 1_000 => {
                let delay = self.random.between(0, 2);
                self.at(delay, Happening::Begin { node, schedule, work, tries: tries + 1 });
            }
            Err(Refused::Conflict) => {}
            Ok(()) => {
                self.commits += 1;
                if let (Work::Order(order), false) = (&work, matches!(commit.event.1, Event::Wake)) {
                    crate::checker::check_obeyed_once(&mut self.store.schedules[schedule], order)?;
                }
                self.insert_queued(schedule, &commit.effects)?;
                if let Some(timer) = commit.effects.timer {
                    let (soon, delay) = (self.now, SignedDuration::from_secs(self.random.between(0, 3)));
                    self.at_time(timer.max(soon) + delay, Happening::Timer { schedule });
                }
                if self.random.chance(self.knobs.reply_lost) {
                    // The node does not know; whoever asked, asks again.
                    if !matches!(work, Work::Wake) && tries < 1_000 {
                        self.at(3, Happening::Begin { node, schedule, work, tries: tries + 1 });
                    }
                    // What was to be dispatched is found by the next owner.
                    return Ok(());
                }
                if self.nodes[node].up {
                    self.perform(node, schedule, commit.effects);
                }
            }
        }
        Ok(())
    }

    /// Runs on a queue begin with the commit itself.
    fn insert_queued(&mut self, schedule: usize, effects: &Effects) -> Result<(), Violation> {
        for dispatch in effects.dispatches.iter().filter(|dispatch| dispatch.target == Target::Queue) {
            self.begin_run(schedule, dispatch.start)?;
        }
        Ok(())
    }

    fn begin_run(&mut self, schedule: usize, start: StartId) -> Result<(), Violation> {
        if self.dispatcher.knows(schedule, start) {
            return Ok(());
        }
        let seconds = self.random.between(1, self.knobs.run_seconds_max);
        self.dispatcher.begin(schedule, start, self.now);
        crate::checker::check_run_began(self, schedule, start)?;
        self.at(seconds, Happening::RunEnds { schedule, start });
        Ok(())
    }

    fn perform(&mut self, node: usize, schedule: usize, effects: Effects) {
        for dispatch in effects.dispatches.into_iter().filter(|dispatch| dispatch.target == Target::Outside) {
            let delay = self.random.between(0, 1);
            self.at(delay, Happening::Start { node, schedule, dispatch });
        }
        for stop in effects.stops {
            self.at(0, Happening::Stop { node, schedule, start: stop.start, kind: stop.kind });
        }
        for start in effects.checks {
            self.at(0, Happening::Look { node, schedule, start });
        }
    }

    /// A start call reaches the dispatcher; its answer may not come back.
    fn start(&mut self, node: usize, schedule: usize, dispatch: Dispatch) -> Result<(), Violation> {
        if dispatch.target == Target::Queue {
            return Ok(());
        }
        let start = dispatch.start;
        let known = self.dispatcher.knows(schedule, start);
        let answer = if known {
            Dispatched::Started { started_at: self.now }
        } else if self.random.chance(self.knobs.start_fails) {
            Dispatched::Failed
        } else if self.random.chance(self.knobs.start_refused) {
            self.dispatcher.refuse(schedule, start);
            Dispatched::Refused
        } else if self.dispatcher.refused(schedule, start) {
            Dispatched::Refused
        } else {
            self.begin_run(schedule, start)?;
            Dispatched::Started { started_at: self.now }
        };
        if !self.random.chance(self.knobs.start_silent) {
            self.at(0, Happening::Begin { node, schedule, work: Work::Record(start, answer), tries: 0 });
        }
        Ok(())
    }

    fn run_ends(&mut self, schedule: usize, start: StartId) {
        let outcome = self.workload.outcome();
        let Some(ended) = self.dispatcher.end(schedule, start, self.now, outcome) else { return };
        // A run on a queue reports in the transaction that ends it, so its report cannot be lost.
        let queued =
            self.store.schedules[schedule].tree.describe(&self.limits).definition.schedule().action.target
                == Target::Queue;
        if !queued && self.random.chance(self.knobs.completion_lost) {
            return;
        }
        let copies = 1 + usize::from(self.random.chance(self.knobs.completion_twice));
        for _ in 0..copies {
            let (node, delay) = (self.any_node(), self.random.between(0, 10));
            let work = Work::Complete(report(start, ended));
            self.at(delay, Happening::Begin { node, schedule, work, tries: 0 });
        }
    }

    fn stop(&mut self, node: usize, schedule: usize, start: StartId, kind: StopKind) {
        let lost = self.random.chance(self.knobs.start_silent);
        if lost {
            return;
        }
        let heeds = kind == StopKind::Terminate || self.random.chance(700);
        if heeds && self.dispatcher.is_running(schedule, start) {
            self.at(2, Happening::RunEnds { schedule, start });
        }
        self.at(0, Happening::Begin { node, schedule, work: Work::StopDelivered(start), tries: 0 });
    }

    fn look(&mut self, node: usize, schedule: usize, start: StartId) {
        let seen = match self.dispatcher.ended(schedule, start) {
            Some(ended) => Seen::Ended(report(start, ended)),
            None if self.dispatcher.is_running(schedule, start) => Seen::Running,
            None => Seen::Gone,
        };
        let work = Work::Sight(Sighting { start, seen });
        self.at(0, Happening::Begin { node, schedule, work, tries: 0 });
    }

    fn clock(&self, node: usize) -> Timestamp {
        self.now + self.nodes[node].skew
    }

    fn any_node(&mut self) -> usize {
        self.random.between(0, self.nodes.len() as i64 - 1) as usize
    }

    /// How far clocks may be off.
    pub fn skew_max(&self) -> SignedDuration {
        SignedDuration::from_secs(self.knobs.skew_seconds_max)
    }

    /// The stored tree of a schedule.
    pub fn tree(&self, schedule: usize) -> &ScheduleTree {
        &self.store.schedules[schedule].tree
    }

    /// The committed changes of a schedule.
    pub fn log(&self, schedule: usize) -> &[(Timestamp, Event)] {
        &self.store.schedules[schedule].log
    }
}

fn report(start: StartId, ended: Ended) -> Completion {
    Completion { start, outcome: ended.outcome, payload: None, completed_at: ended.at }
}
