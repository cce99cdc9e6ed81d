//! What clients want: schedules of all kinds, and commands at random, each with a request id that may be repeated.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{
    Action, Backfill, Command, Create, Definition, Effects, InitialPatch, Limits, OnResume, Outcome,
    OverlapPolicy, Pause, Rejection, RequestId, Resume, Schedule, ScheduleKey, ScheduleTree, SkipOccurrence,
    Trigger, Update,
};
use punctual_spec::Environment;

use crate::random::Random;
use crate::store::Stored;
use crate::story::Event;
use crate::swarm;
use crate::world::Work;

/// A command of a client.
#[derive(Clone, Debug)]
pub struct Order {
    request: RequestId,
    wish: Wish,
}

#[derive(Clone, Debug)]
enum Wish {
    Pause(Option<Timestamp>),
    Resume(Option<OnResume>),
    Trigger(Option<OverlapPolicy>),
    Backfill(Timestamp, Timestamp),
    Skip(Timestamp),
    Define(Arc<Definition>, bool),
    Remaining(Option<u32>),
    Delete,
}

impl Order {
    /// The client's name for it.
    pub fn request(&self) -> &RequestId {
        &self.request
    }
}

/// The clients.
pub struct Workload {
    random: Random,
    long: bool,
    requests: u64,
}

impl Workload {
    /// Clients that draw from a generator of their own.
    pub fn new(random: Random, long: bool) -> Workload {
        Workload { random, long, requests: 0 }
    }

    /// A new schedule.
    pub fn create(&mut self, index: usize, now: Timestamp, limits: &Limits) -> Stored {
        let random = &mut self.random;
        let key = ScheduleKey::new("simulated", &format!("schedule-{index}"));
        let action = Action {
            target: swarm::target(random),
            run_id_base: "run".into(),
            payload: b"".as_slice().into(),
        };
        let schedule =
            Schedule { spec: swarm::spec(random, self.long), action, policies: swarm::policies(random) };
        let definition =
            Definition::new(schedule, &key, &Environment::default()).expect("simulated specs compile");
        let remaining_actions = random.chance(200).then(|| random.between(0, 30) as u32);
        let request = RequestId::new("create");
        let first_definition = definition.clone();
        let create = Create { key, definition, remaining_actions, initial: InitialPatch::default(), request };
        let (tree, _) =
            ScheduleTree::create(now, limits, &mut Effects::default(), create).expect("it is accepted");
        Stored {
            tree,
            sequence: 0,
            ledger: Vec::new(),
            log: Vec::new(),
            concurrency_max: first_definition.schedule().policies.concurrency,
            first_definition,
            created_at: now,
            obeyed: BTreeSet::new(),
            remaining_actions,
        }
    }

    /// Something that a client wants, if the schedule is still there.
    pub fn order(
        &mut self,
        schedule: usize,
        stored: &Stored,
        now: Timestamp,
        limits: &Limits,
    ) -> Option<Order> {
        let description = stored.tree.describe(limits);
        let definition = &description.definition;
        let random = &mut self.random;
        let seconds = |random: &mut Random, most: i64| SignedDuration::from_secs(random.between(1, most));
        let wish = match random.between(0, 19) {
            0..=2 => Wish::Pause(random.chance(500).then(|| now + seconds(random, 1_800))),
            3..=7 => Wish::Resume(*random.pick(&[None, Some(OnResume::Skip), Some(OnResume::CatchUp)])),
            8..=11 => Wish::Trigger(*random.pick(&[
                None,
                Some(OverlapPolicy::AllowAll),
                Some(OverlapPolicy::BufferAll),
            ])),
            12 => {
                // Ends on an occurrence on both sides, where it matters whether the ends are included.
                let compiled = definition.compiled();
                let through = compiled.previous(now - seconds(random, 600))?.nominal_time;
                Wish::Backfill(compiled.previous(through)?.nominal_time, through)
            }
            13..=14 => Wish::Skip(description.upcoming.first()?.nominal_time),
            15..=16 => {
                let mut schedule = definition.schedule().clone();
                schedule.policies = swarm::policies(random);
                Wish::Define(define(schedule, &description.key)?, false)
            }
            17 => {
                let mut schedule = definition.schedule().clone();
                let spec = swarm::spec(random, self.long);
                let changed = spec != schedule.spec;
                schedule.spec = spec;
                Wish::Define(define(schedule, &description.key)?, changed)
            }
            18 => Wish::Remaining(random.chance(700).then(|| random.between(0, 20) as u32)),
            _ if random.chance(100) => Wish::Delete,
            _ => return None,
        };
        // The oracle takes a backfill at once, so one is only asked for where there is plenty of room.
        let crowded = limits.buffered_starts_max < 1_000 || description.starts.buffered.len() > 100;
        if matches!(wish, Wish::Backfill(..) | Wish::Trigger(_)) && crowded {
            return None;
        }
        self.requests += 1;
        Some(Order { request: RequestId::new(&format!("{schedule}-{}", self.requests)), wish })
    }

    /// How a run ends.
    pub fn outcome(&mut self) -> Outcome {
        let outcomes =
            [Outcome::Succeeded, Outcome::Succeeded, Outcome::Failed, Outcome::TimedOut, Outcome::Cancelled];
        *self.random.pick(&outcomes)
    }
}

fn define(schedule: Schedule, key: &ScheduleKey) -> Option<Arc<Definition>> {
    Definition::new(schedule, key, &Environment::default()).ok()
}

/// Does one piece of work on a tree, and tells it in the words of the oracle; nothing if it was refused.
pub fn apply(
    tree: &mut ScheduleTree,
    now: Timestamp,
    limits: &Limits,
    effects: &mut Effects,
    work: &Work,
) -> Option<(Timestamp, Event)> {
    let event = match work.clone() {
        Work::Wake => {
            tree.wake(now, limits, effects);
            Ok(Event::Wake)
        }
        Work::Record(start, result) => {
            let event = Event::Dispatched(start, result.clone());
            tree.apply(now, limits, effects, ScheduleTree::record_execute, vec![(start, result)])
                .map(|()| event)
        }
        Work::Complete(completion) => {
            let event = Event::Completed { start: completion.start, outcome: completion.outcome };
            tree.apply(now, limits, effects, ScheduleTree::complete, completion).map(|()| event)
        }
        Work::StopDelivered(start) => {
            tree.apply(now, limits, effects, ScheduleTree::record_stops, vec![start]).map(|()| Event::Wake)
        }
        Work::Sight(sighting) => {
            let event = match &sighting.seen {
                punctual_core::Seen::Running => Event::Sighted { start: sighting.start, running: true },
                punctual_core::Seen::Ended(completion) => {
                    Event::Completed { start: completion.start, outcome: completion.outcome }
                }
                punctual_core::Seen::Gone => Event::Sighted { start: sighting.start, running: false },
            };
            tree.apply(now, limits, effects, ScheduleTree::reconcile, vec![sighting]).map(|()| event)
        }
        Work::Order(order) => obey(tree, now, limits, effects, order),
    };
    event.ok().map(|event| (tree.clock(), event))
}

fn obey(
    tree: &mut ScheduleTree,
    now: Timestamp,
    limits: &Limits,
    effects: &mut Effects,
    order: Order,
) -> Result<Event, Rejection> {
    let Order { request, wish } = order;
    let repeated = tree.created_before(&request).is_ok();
    macro_rules! command {
        ($verb:path, $body:expr) => {
            tree.apply(now, limits, effects, $verb, Command { request, body: $body })
        };
    }
    let event = match wish {
        Wish::Pause(until) => {
            command!(ScheduleTree::pause, Pause { note: "".into(), until })?;
            Event::Pause { until }
        }
        Wish::Resume(on_resume) => {
            command!(ScheduleTree::resume, Resume { on_resume })?;
            Event::Resume { on_resume }
        }
        Wish::Trigger(overlap) => {
            let answer = command!(ScheduleTree::trigger, Trigger { overlap, ..Trigger::default() })?;
            Event::Trigger { key: answer.keys[0], overlap }
        }
        Wish::Backfill(from, through) => {
            let overlap = Some(OverlapPolicy::BufferAll);
            let body = Backfill { from, through, overlap, pace: None, note: "".into() };
            let answer = command!(ScheduleTree::backfill, body)?;
            Event::Backfill { key: answer.keys[0], from, through, overlap }
        }
        Wish::Skip(nominal_time) => {
            command!(ScheduleTree::skip, SkipOccurrence { nominal_time })?;
            Event::Skip(nominal_time)
        }
        Wish::Define(definition, new_spec) => {
            let policies = definition.schedule().policies.clone();
            let body = Update { definition: Some(definition.clone()), ..Update::default() };
            command!(ScheduleTree::update, body)?;
            if new_spec { Event::UpdateSpec(definition) } else { Event::UpdatePolicies(policies) }
        }
        Wish::Remaining(remaining) => {
            command!(
                ScheduleTree::update,
                Update { remaining_actions: Some(remaining), ..Update::default() }
            )?;
            Event::SetRemaining(remaining)
        }
        Wish::Delete => {
            command!(ScheduleTree::delete, ())?;
            Event::Delete
        }
    };
    // A repeated request changes nothing; time passes all the same.
    Ok(if repeated { Event::Wake } else { event })
}
