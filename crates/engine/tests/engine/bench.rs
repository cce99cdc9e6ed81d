//! One shard on a bench: virtual time, the reference store, and effects performed at once or held back by the test.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{
    Action, Answer, Command, Create, Definition, InitialPatch, Limits, Policies, RequestId, RetryPolicy,
    RunAction, Schedule, ScheduleKey, Target as Place, Timeouts,
};
use punctual_engine::shard::{Assignment, BatchId, Effect, Event, Refusal, Settings, Shard, Target, Ticket};
use punctual_engine::{Verb, Work};
use punctual_spec::{Environment, Interval, Spec};
use punctual_store::memory::Memory;
use punctual_store::record::encode_action;
use punctual_store::{Batch, Claim, LiveRun, NewQueue, QueueKey, ShardId, Store, StoredTree, TreeRef};

/// One shard, its store, and what came out of it.
pub struct Bench {
    pub now: Timestamp,
    pub shard: Shard,
    pub store: Arc<Memory>,
    pub queue: QueueKey,
    pub answers: BTreeMap<Ticket, Result<Answer, Refusal>>,
    /// Batches that were not written yet, when the test holds them back.
    pub held: Vec<(BatchId, Batch)>,
    pub holds_batches: bool,
    pub batches: Vec<usize>,
    pub effects: Vec<String>,
    pub fenced: bool,
    tickets: u64,
}

pub fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Waits for an answer that is there.
pub fn now_or_never<T>(future: impl Future<Output = T>) -> T {
    let mut future = Box::pin(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("the reference store answers at once"),
    }
}

pub fn key(name: &str) -> ScheduleKey {
    ScheduleKey::new("default", name)
}

/// A schedule that starts a run on the queue "q" every so often.
pub fn every(seconds: i64, name: &str, policies: Policies) -> Box<Create> {
    every_on("q", seconds, name, policies)
}

/// The same on another queue.
pub fn every_on(queue: &str, seconds: i64, name: &str, policies: Policies) -> Box<Create> {
    let action = RunAction {
        queue: queue.into(),
        handler: "h".into(),
        input: b"in".as_slice().into(),
        retry: RetryPolicy::default(),
        timeouts: Timeouts::default(),
        ..RunAction::default()
    };
    let schedule = Schedule {
        spec: Spec::new().interval(Interval::every(SignedDuration::from_secs(seconds))),
        action: Action { target: Place::Queue, run_id_base: name.into(), payload: encode_action(&action) },
        policies,
        attachment: [].into(),
    };
    let definition = Definition::new(schedule, &key(name), &Environment::default()).unwrap();
    let (remaining_actions, initial) = (None, InitialPatch::default());
    Box::new(Create { key: key(name), definition, remaining_actions, initial, request: RequestId::new(name) })
}

impl Bench {
    pub fn new() -> Bench {
        let now = at("2026-01-01T00:00:00.5Z");
        Bench::on(Arc::new(Memory::new(1, now)), now, Settings::default())
    }

    /// A new owner of the shard of a store.
    pub fn on(store: Arc<Memory>, now: Timestamp, settings: Settings) -> Bench {
        let node = punctual_store::NodeId("n".into());
        let lease =
            now_or_never(store.acquire(ShardId(0), node, SignedDuration::from_secs(5))).unwrap().unwrap();
        let queue = NewQueue {
            namespace: "default".into(),
            name: "q".into(),
            settings: Default::default(),
            created_at: now,
        };
        let queue = now_or_never(store.create_queue(queue)).unwrap();
        let mut shard = Shard::new(ShardId(0), lease.epoch, Limits::default(), settings);
        let timers = now_or_never(store.timers(ShardId(0), None, usize::MAX)).unwrap();
        shard.handle(now, Event::Timers(timers), &mut Vec::new());
        Bench::with(shard, store, now, queue.queue)
    }

    /// Somebody who serves the schedules of a store without owning them.
    pub fn guest(owner: &Bench) -> Bench {
        let shard = Shard::guest(1, Limits::default(), Settings::default());
        Bench::with(shard, owner.store.clone(), owner.now, owner.queue)
    }

    fn with(mut shard: Shard, store: Arc<Memory>, now: Timestamp, queue: QueueKey) -> Bench {
        let declared = Event::QueueDeclared { namespace: "default".into(), name: "q".into(), queue };
        shard.handle(now, declared, &mut Vec::new());
        Bench {
            now,
            shard,
            store,
            queue,
            answers: BTreeMap::new(),
            held: Vec::new(),
            holds_batches: false,
            batches: Vec::new(),
            effects: Vec::new(),
            fenced: false,
            tickets: 0,
        }
    }

    /// Hands work in and lets the shard settle.
    pub fn ask(&mut self, name: &str, work: Work) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let target = Target::Name(key(name));
        let assignment = Assignment { ticket: Some(ticket), target, work, runs: Vec::new(), tries: 0 };
        self.event(Event::Submit(assignment));
        ticket
    }

    pub fn create(&mut self, create: Box<Create>) -> Ticket {
        let name = create.key.schedule.to_string();
        self.ask(&name, Work::Create(create))
    }

    pub fn pause(&mut self, name: &str, request: &str) -> Ticket {
        let body = punctual_core::Pause { note: "".into(), until: None };
        self.ask(name, Work::Change(Verb::Pause(Command { request: RequestId::new(request), body })))
    }

    pub fn answer(&self, ticket: Ticket) -> &Result<Answer, Refusal> {
        self.answers.get(&ticket).expect("an answer has come")
    }

    /// Lets time pass to the end of a length, stopping at every timer.
    pub fn advance(&mut self, seconds: i64) {
        let end = self.now + SignedDuration::from_secs(seconds);
        while let Some(next) = self.shard.next_time().filter(|next| *next <= end) {
            self.now = self.now.max(next);
            self.store.set_now(self.now);
            self.settle();
        }
        self.now = end;
        self.store.set_now(end);
    }

    pub fn event(&mut self, event: Event) {
        let mut effects = Vec::new();
        self.shard.handle(self.now, event, &mut effects);
        self.perform(effects);
        self.settle();
    }

    pub fn settle(&mut self) {
        for _ in 0..10_000 {
            let mut effects = Vec::new();
            self.shard.flush(self.now, &mut effects);
            if effects.is_empty() {
                return;
            }
            self.perform(effects);
        }
        panic!("the shard does not come to rest");
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let event = match effect {
                Effect::Load(trees) => {
                    let answer = Ok(self.store.load_now(&trees));
                    Event::Loaded { trees, answer }
                }
                Effect::Reserve { count } => {
                    let first = now_or_never(self.store.reserve(count)).unwrap();
                    Event::Reserved { keys: first..first + i64::from(count) }
                }
                Effect::Commit { batch, units } if self.holds_batches => {
                    self.held.push((batch, units));
                    continue;
                }
                Effect::Commit { batch, units } => {
                    self.batches.push(units.units.len());
                    Event::Committed { batch, answer: Ok(self.store.commit_now(&units)) }
                }
                Effect::Reply { ticket, answer } => {
                    self.answers.insert(ticket, answer);
                    continue;
                }
                Effect::Fenced => {
                    self.fenced = true;
                    continue;
                }
                other => {
                    self.effects.push(format!("{other:?}"));
                    continue;
                }
            };
            let mut effects = Vec::new();
            self.shard.handle(self.now, event, &mut effects);
            self.perform(effects);
        }
    }

    pub fn claim(&self, runs_max: usize) -> Vec<LiveRun> {
        let claim = Claim {
            queue: self.queue,
            worker: "w".into(),
            runs_max,
            now: self.now,
            keeper: Default::default(),
        };
        now_or_never(self.store.claim(claim)).unwrap().runs
    }

    pub fn stored(&self, name: &str) -> Option<StoredTree> {
        self.store.load_now(&[TreeRef::Name(key(name))]).remove(0)
    }
}
