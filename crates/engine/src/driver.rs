//! Drives one shard, a turn at a time: takes in what arrived and what is due, and performs what follows from it.
//!
//! Database calls run beside it and come back as events. Which thread gives it its turns, and when, is for `threads` to say.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use punctual_core::{Answer, Dispatched, Seen, Sighting};
use punctual_store::{Batch, Keeper, Queue, Store, TreeKey};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::inbox::{Address, Inbox};
use crate::outlet::{Outlet, RunNews};
use crate::shard::{Assignment, BatchId, Effect, Event, Refusal, Shard, Target, Ticket};
use crate::verb::{Verb, Work};

/// Whoever waits for the answer to an assignment.
pub(crate) type Waiter = oneshot::Sender<Result<Answer, Refusal>>;

/// What arrives in the inbox of a driver.
pub(crate) enum Message {
    /// An assignment, and who waits for it.
    Submit(Box<Assignment>, Option<Waiter>),
    /// Something happened.
    Event(Event),
    /// Compare these stored timers with those in memory, mend, and say how many were missing.
    Recheck(Vec<(TreeKey, Option<Timestamp>)>, oneshot::Sender<u64>),
    /// Finish what is on its way, then stop.
    Stop,
    /// Stop here and now, as if the process had died.
    Die,
}

/// Events taken in before effects leave; bounds how long timers wait for a flood of requests.
const EVENTS_MAX: usize = 10_000;

/// How long a driver waits before it asks again what the database did not answer.
const ASK_AGAIN: Duration = Duration::from_millis(200);

/// Why a driver stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was told to.
    Stopped,
    /// The shard belongs to somebody else.
    Fenced,
    /// It was told to let everything lie.
    Died,
}

/// What a driver has to do with.
pub(crate) struct Surroundings {
    pub(crate) keeper: Keeper,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) runtime: Handle,
    pub(crate) outlet: Arc<Outlet>,
}

/// Drives one shard.
pub(crate) struct Driver {
    shard: Shard,
    around: Arc<Surroundings>,
    inbox: Inbox,
    /// The way to itself.
    address: Address,
    waiters: HashMap<Ticket, Waiter>,
    tickets: u64,
    effects: Vec<Effect>,
    /// Batches that have no answer yet.
    on_its_way: usize,
    stopping: bool,
    /// What the metrics count of it.
    size: (usize, usize),
    /// Hears how it ended.
    ended: oneshot::Sender<Ended>,
}

/// What comes after a turn.
pub(crate) enum Turn {
    /// Another one: at this time, if nothing arrives before.
    Next(Option<Timestamp>),
    /// Nothing.
    Last(Ended),
}

/// A batch that is to be written, and who hears what became of it.
pub(crate) struct Outgoing {
    pub(crate) address: Address,
    pub(crate) batch: BatchId,
    pub(crate) units: Batch,
}

impl Driver {
    pub(crate) fn new(
        shard: Shard,
        around: Arc<Surroundings>,
        (address, inbox): (Address, Inbox),
        ended: oneshot::Sender<Ended>,
    ) -> Driver {
        Driver {
            shard,
            around,
            inbox,
            address,
            waiters: HashMap::new(),
            tickets: 0,
            effects: Vec::new(),
            on_its_way: 0,
            stopping: false,
            size: (0, 0),
            ended,
        }
    }

    /// What it drives.
    pub(crate) fn shard(&self) -> &Shard {
        &self.shard
    }

    /// Does what follows from what was taken in and from what is due.
    pub(crate) fn turn(&mut self, outgoing: &mut Vec<Outgoing>) -> Turn {
        if !self.stopping {
            self.shard.is_followed(self.around.outlet.is_followed());
            self.shard.flush(self.around.clock.now(), &mut self.effects);
        }
        let (mut fenced, mut made) = (false, Vec::new());
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Reply { ticket, answer } => {
                    if let Some(waiter) = self.waiters.remove(&ticket) {
                        // Whoever asked may have gone.
                        let _ = waiter.send(answer);
                    }
                }
                Effect::Fenced => fenced = true,
                Effect::RunsMade { queue, runs } => RunNews::add(&mut made, queue, runs),
                Effect::Commit { batch, mut units } => {
                    self.on_its_way += 1;
                    units.keeper = self.around.keeper;
                    outgoing.push(Outgoing { address: self.address.clone(), batch, units });
                }
                other => self.perform(other),
            }
        }
        self.effects = effects;
        if !made.is_empty() {
            self.around.outlet.made(made, self.around.clock.now());
        }
        let ended = match (fenced, self.stopping && self.on_its_way == 0) {
            (true, _) => Some(Ended::Fenced),
            (false, true) => Some(Ended::Stopped),
            (false, false) => None,
        };
        self.count(if ended.is_some() { (0, 0) } else { self.shard.size() });
        match ended {
            Some(ended) => Turn::Last(ended),
            None => Turn::Next(self.shard.next_time().filter(|_| !self.stopping)),
        }
    }

    /// Takes in what arrived, and says what time it is; an error if it was told to let everything lie.
    pub(crate) fn take_in(&mut self) -> Result<Timestamp, Ended> {
        let mut now = self.around.clock.now();
        for _ in 0..EVENTS_MAX {
            let Some(arrived) = self.inbox.take() else { return Ok(now) };
            now = self.around.clock.now();
            match arrived {
                Message::Stop => self.stopping = true,
                Message::Die => return Err(Ended::Died),
                Message::Recheck(stored, waiter) => drop(waiter.send(self.shard.recheck(&stored))),
                Message::Submit(_, waiter) if self.stopping => refuse(waiter),
                Message::Submit(mut assignment, waiter) => {
                    self.tickets += 1;
                    assignment.ticket = waiter.is_some().then_some(Ticket(self.tickets));
                    self.waiters.extend(assignment.ticket.zip(waiter));
                    self.shard.handle(now, Event::Submit(*assignment), &mut self.effects);
                }
                Message::Event(event) => {
                    self.on_its_way -= usize::from(matches!(event, Event::Committed { .. }));
                    self.shard.handle(now, event, &mut self.effects);
                }
            }
        }
        // There may be more.
        self.address.ring();
        Ok(now)
    }

    fn count(&mut self, size: (usize, usize)) {
        let metrics = &self.around.outlet.metrics;
        metrics.timers.shift(self.size.0, size.0);
        metrics.trees.shift(self.size.1, size.1);
        self.size = size;
    }

    /// Says how it ended. What becomes of its schedules is for the next owner to say.
    pub(crate) fn end(mut self, ended: Ended) {
        if ended != Ended::Died {
            self.around.outlet.forget_quarantined(self.shard.quarantined());
            self.waiters.drain().for_each(|(_, waiter)| refuse(Some(waiter)));
        }
        let _ = self.ended.send(ended);
    }

    /// It has panicked: nobody hears how it ended, and it counts no more.
    pub(crate) fn abandon(mut self) {
        self.count((0, 0));
        self.around.outlet.forget_quarantined(self.shard.quarantined());
    }

    fn perform(&self, effect: Effect) {
        let (store, sender) = (self.around.store.clone(), self.address.clone());
        match effect {
            Effect::Load(trees) => {
                self.around.runtime.spawn(async move {
                    let answer = store.load(trees.clone()).await;
                    sender.send(Message::Event(Event::Loaded { trees, answer }));
                });
            }
            Effect::Reserve { count } => {
                self.around.runtime.spawn(async move {
                    let event = match store.reserve(count).await {
                        Ok(first) => Event::Reserved { keys: first..first + i64::from(count) },
                        Err(_) => {
                            tokio::time::sleep(ASK_AGAIN).await;
                            Event::ReserveFailed
                        }
                    };
                    sender.send(Message::Event(event));
                });
            }
            Effect::ListQueues => {
                self.around.runtime.spawn(async move {
                    let queues = loop {
                        match store.queues(None).await {
                            Ok(queues) => break queues,
                            Err(_) => tokio::time::sleep(ASK_AGAIN).await,
                        }
                    };
                    let events = queues.iter().map(declared).chain([Event::QueuesListed]);
                    events.for_each(|event| sender.send(Message::Event(event)));
                });
            }
            Effect::Start { tree, dispatch, .. } => {
                // No kind of action outside the database exists yet: whoever asks for one is told so, for good.
                let work = Work::Change(Verb::Record(vec![(dispatch.start, Dispatched::Refused)]));
                let assignment =
                    Assignment { ticket: None, target: Target::Tree(tree), work, runs: Vec::new(), tries: 0 };
                sender.send(Message::Submit(Box::new(assignment), None));
            }
            Effect::Check { tree, start, run: None } => {
                // A start on a queue becomes a run in the transition that starts it: without a run, nothing was started.
                let sighting = Sighting { start, seen: Seen::Gone };
                let work = Work::Change(Verb::Reconcile(vec![sighting]));
                let target = Target::Tree(tree);
                let told = Assignment { ticket: None, target, work, runs: Vec::new(), tries: 0 };
                sender.send(Message::Submit(Box::new(told), None));
            }
            other => self.around.outlet.take(other),
        }
    }
}

/// What a shard is told of a queue.
pub(crate) fn declared(queue: &Queue) -> Event {
    let (namespace, name) = (queue.made.namespace.clone(), queue.made.name.clone());
    Event::QueueDeclared { namespace, name, queue: queue.queue }
}

fn refuse(waiter: Option<Waiter>) {
    if let Some(waiter) = waiter {
        let _ = waiter.send(Err(Refusal::NotOwner));
    }
}
