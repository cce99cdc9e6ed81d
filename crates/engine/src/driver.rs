//! The loop of one shard, on a thread of its own: waits for events and for the next timer, and performs effects.
//!
//! The thread sleeps on its inbox with a time limit, which the operating system ends within a tenth of a millisecond;
//! database calls run beside it and come back as events.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Answer, Dispatched, Seen, Sighting};
use punctual_store::{Keeper, Queue, Store, TreeKey};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::outlet::Outlet;
use crate::places::Places;
use crate::shard::{Assignment, Effect, Event, Refusal, Shard, Target, Ticket};
use crate::verb::{Verb, Work};

/// Whoever waits for the answer to a assignment.
pub(crate) type Waiter = oneshot::Sender<Result<Answer, Refusal>>;

/// What arrives in the inbox of a driver.
pub(crate) enum Message {
    /// A assignment, and who waits for it.
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

/// The longest sleep without a look at the clock, which may have been set or have run on while the machine slept.
const WAIT_MAX: Duration = Duration::from_secs(1);

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

/// Everything that one driver needs.
pub(crate) struct Driver {
    pub(crate) shard: Shard,
    pub(crate) keeper: Keeper,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) runtime: Handle,
    pub(crate) inbox: Receiver<Message>,
    pub(crate) sender: Sender<Message>,
    pub(crate) outlet: Arc<Outlet>,
    pub(crate) places: Arc<Places>,
}

impl Driver {
    /// Runs until it is told to stop or loses the shard.
    pub(crate) fn run(mut self) -> Ended {
        let places = self.places.clone();
        let mut waiters: HashMap<Ticket, Waiter> = HashMap::new();
        let mut effects = Vec::new();
        let (mut tickets, mut on_its_way) = (0, 0usize);
        let (mut stopping, mut size) = (false, (0, 0));
        loop {
            let mut message = self.wait(stopping);
            let _place = places.take();
            for _ in 0..EVENTS_MAX {
                let Some(arrived) = message.take() else { break };
                let now = self.clock.now();
                match arrived {
                    Message::Stop => stopping = true,
                    Message::Die => return Ended::Died,
                    Message::Recheck(stored, waiter) => drop(waiter.send(self.shard.recheck(&stored))),
                    Message::Submit(_, waiter) if stopping => refuse(waiter),
                    Message::Submit(mut assignment, waiter) => {
                        tickets += 1;
                        assignment.ticket = waiter.is_some().then_some(Ticket(tickets));
                        waiters.extend(assignment.ticket.zip(waiter));
                        self.shard.handle(now, Event::Submit(*assignment), &mut effects);
                    }
                    Message::Event(event) => {
                        let answers = matches!(event, Event::Committed { .. });
                        on_its_way -= usize::from(answers);
                        self.shard.handle(now, event, &mut effects);
                    }
                }
                message = self.inbox.try_recv().ok();
            }
            if !stopping {
                self.shard.flush(self.clock.now(), &mut effects);
            }
            let mut fenced = false;
            for effect in effects.drain(..) {
                match effect {
                    Effect::Reply { ticket, answer } => {
                        if let Some(waiter) = waiters.remove(&ticket) {
                            // Whoever asked may have gone.
                            let _ = waiter.send(answer);
                        }
                    }
                    Effect::Fenced => fenced = true,
                    Effect::Commit { batch, mut units } => {
                        on_its_way += 1;
                        units.keeper = self.keeper;
                        let (store, sender) = (self.store.clone(), self.sender.clone());
                        self.runtime.spawn(async move {
                            let answer = store.commit(units).await;
                            let _ = sender.send(Message::Event(Event::Committed { batch, answer }));
                        });
                    }
                    other => self.perform(other),
                }
            }
            let ended = match (fenced, stopping && on_its_way == 0) {
                (true, _) => Some(Ended::Fenced),
                (false, true) => Some(Ended::Stopped),
                (false, false) => None,
            };
            let size_now = if ended.is_some() { (0, 0) } else { self.shard.size() };
            self.outlet.metrics.timers.shift(size.0, size_now.0);
            self.outlet.metrics.trees.shift(size.1, size_now.1);
            size = size_now;
            if let Some(ended) = ended {
                // What becomes of them is for the next owner to say.
                self.outlet.forget_quarantined(self.shard.quarantined());
                waiters.into_values().for_each(|waiter| refuse(Some(waiter)));
                return ended;
            }
        }
    }

    /// Sleeps until something arrives or a timer comes.
    fn wait(&self, stopping: bool) -> Option<Message> {
        let next = self.shard.next_time().filter(|_| !stopping);
        let Some(next) = next else { return self.inbox.recv().ok().or(Some(Message::Stop)) };
        let now = self.clock.now();
        if next <= now {
            // Something is due, or waits for room; a short wait keeps the latter from spinning.
            return self.inbox.recv_timeout(spin_guard(next, now)).ok();
        }
        // The wait is measured by a clock that stands still while the machine sleeps, and knows nothing of corrections.
        let wait = self.clock.real(next.duration_since(now)).min(WAIT_MAX);
        match self.inbox.recv_timeout(wait) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Message::Stop),
        }
    }

    fn perform(&self, effect: Effect) {
        let (store, sender) = (self.store.clone(), self.sender.clone());
        match effect {
            Effect::Load(trees) => {
                self.runtime.spawn(async move {
                    let answer = store.load(trees.clone()).await;
                    let _ = sender.send(Message::Event(Event::Loaded { trees, answer }));
                });
            }
            Effect::Reserve { count } => {
                self.runtime.spawn(async move {
                    let event = match store.reserve(count).await {
                        Ok(first) => Event::Reserved { keys: first..first + i64::from(count) },
                        Err(_) => {
                            tokio::time::sleep(ASK_AGAIN).await;
                            Event::ReserveFailed
                        }
                    };
                    let _ = sender.send(Message::Event(event));
                });
            }
            Effect::ListQueues => {
                self.runtime.spawn(async move {
                    let queues = loop {
                        match store.queues(None).await {
                            Ok(queues) => break queues,
                            Err(_) => tokio::time::sleep(ASK_AGAIN).await,
                        }
                    };
                    let events = queues.iter().map(declared).chain([Event::QueuesListed]);
                    events.for_each(|event| drop(sender.send(Message::Event(event))));
                });
            }
            Effect::Start { tree, dispatch, .. } => {
                // No kind of action outside the database exists yet: whoever asks for one is told so, for good.
                let work = Work::Change(Verb::Record(vec![(dispatch.start, Dispatched::Refused)]));
                let assignment =
                    Assignment { ticket: None, target: Target::Tree(tree), work, runs: Vec::new(), tries: 0 };
                let _ = sender.send(Message::Submit(Box::new(assignment), None));
            }
            Effect::Check { tree, start, run: None } => {
                // A start on a queue becomes a run in the transition that starts it: without a run, nothing was started.
                let sighting = Sighting { start, seen: Seen::Gone };
                let work = Work::Change(Verb::Reconcile(vec![sighting]));
                let target = Target::Tree(tree);
                let told = Assignment { ticket: None, target, work, runs: Vec::new(), tries: 0 };
                let _ = sender.send(Message::Submit(Box::new(told), None));
            }
            other => self.outlet.take(other, self.clock.now()),
        }
    }
}

/// Nothing at all when work has just become due, else a moment that costs nobody anything.
fn spin_guard(next: Timestamp, now: Timestamp) -> Duration {
    let late = now.duration_since(next);
    if late < SignedDuration::from_millis(1) { Duration::ZERO } else { Duration::from_micros(200) }
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
