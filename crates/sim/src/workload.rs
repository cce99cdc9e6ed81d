//! What clients want: schedules of all kinds, and commands at random, each with a request id that may be repeated.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{
    Action, Backfill, Command, Create, Definition, InitialPatch, Limits, OnResume, Outcome, OverlapPolicy,
    Pause, Payload, RequestId, Resume, RetryPolicy, RunAction, Schedule, ScheduleKey, SkipOccurrence, Target,
    Timeouts, Trigger, Update,
};
use punctual_engine::{Verb, Work};
use punctual_spec::Environment;
use punctual_store::record::encode_action;

use crate::chronicle::Tale;
use crate::random::Random;
use crate::swarm;

/// The only queue.
pub const QUEUE: &str = "queue";

/// The name of a simulated schedule.
pub fn key(index: usize) -> ScheduleKey {
    ScheduleKey::new("simulated", &format!("schedule-{index}"))
}

/// A command of a client.
#[derive(Clone, Debug)]
pub struct Order {
    /// To whom.
    pub key: ScheduleKey,
    /// The client's name for it.
    pub request: RequestId,
    /// What is asked.
    pub work: Work,
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

    fn request(&mut self, index: usize) -> RequestId {
        self.requests += 1;
        RequestId::new(&format!("{index}-{}", self.requests))
    }

    /// A schedule to create: a new one, or an old name again.
    pub fn create(&mut self, index: usize) -> Order {
        let (key, request, random) = (key(index), self.request(index), &mut self.random);
        let policies = swarm::policies(random);
        let target = swarm::target(random);
        let payload = match target {
            Target::Queue => queue_action(random),
            Target::Outside => b"".as_slice().into(),
        };
        let action = Action { target, run_id_base: "run".into(), payload };
        let schedule =
            Schedule { spec: swarm::spec(random, self.long), action, policies, attachment: [].into() };
        let definition = define(schedule, &key).expect("simulated specs compile");
        let remaining_actions = random.chance(200).then(|| random.between(0, 30) as u32);
        let initial = InitialPatch::default();
        let create =
            Create { key: key.clone(), definition, remaining_actions, initial, request: request.clone() };
        Order { key, request, work: Work::Create(Box::new(create)) }
    }

    /// Something that a client wants of the schedule of a name, as it is now.
    pub fn order(
        &mut self,
        index: usize,
        tale: Option<&Tale>,
        now: Timestamp,
        limits: &Limits,
    ) -> Option<Order> {
        let Some(tale) = tale.filter(|tale| tale.is_open()) else {
            return self.random.chance(500).then(|| self.create(index));
        };
        let wish = self.random.between(0, 20);
        if wish == 20 {
            // Most are refused, since the schedule exists; some meet one that was deleted in the meantime.
            return self.random.chance(300).then(|| self.create(index));
        }
        let request = self.request(index);
        let verb = self.verb(wish, tale, now, limits, request.clone())?;
        Some(Order { key: tale.key.clone(), request, work: Work::Change(verb) })
    }

    fn verb(
        &mut self,
        wish: i64,
        tale: &Tale,
        now: Timestamp,
        limits: &Limits,
        request: RequestId,
    ) -> Option<Verb> {
        let random = &mut self.random;
        let definition = &tale.definition;
        let seconds = |random: &mut Random, most: i64| SignedDuration::from_secs(random.between(1, most));
        macro_rules! command {
            ($body:expr) => {
                Command { request, body: $body }
            };
        }
        let verb = match wish {
            0..=2 => {
                let until = random.chance(500).then(|| now + seconds(random, 1_800));
                Verb::Pause(command!(Pause { note: "".into(), until }))
            }
            3..=7 => {
                let on_resume = *random.pick(&[None, Some(OnResume::Skip), Some(OnResume::CatchUp)]);
                Verb::Resume(command!(Resume { on_resume }))
            }
            8..=11 => {
                let overlaps = [None, Some(OverlapPolicy::AllowAll), Some(OverlapPolicy::BufferAll)];
                let overlap = *random.pick(&overlaps);
                Verb::Trigger(command!(Trigger { overlap, ..Trigger::default() }))
            }
            12..=13 => {
                // Ends on an occurrence on both sides, where it matters whether the ends are included.
                let compiled = definition.compiled();
                let through = compiled.previous(now - seconds(random, 600))?.nominal_time;
                let mut from = through;
                let most = *random.pick(&[2, 40]);
                for _ in 0..random.between(0, most) {
                    from = compiled.previous(from)?.nominal_time;
                }
                let overlap =
                    *random.pick(&[None, Some(OverlapPolicy::BufferAll), Some(OverlapPolicy::AllowAll)]);
                let pace = *random.pick(&[None, None, Some(SignedDuration::from_secs(45))]);
                Verb::Backfill(command!(Backfill { from, through, overlap, pace, note: "".into() }))
            }
            14 => {
                let nominal_time = tale.tree().describe(limits).upcoming.first()?.nominal_time;
                Verb::Skip(command!(SkipOccurrence { nominal_time }))
            }
            15..=17 => {
                let mut schedule = definition.schedule().clone();
                match wish {
                    17 => schedule.spec = swarm::spec(random, self.long),
                    _ => schedule.policies = swarm::policies(random),
                }
                let definition = Some(define(schedule, &tale.key)?);
                Verb::Update(command!(Update { definition, ..Update::default() }))
            }
            18 => {
                let remaining = random.chance(700).then(|| random.between(0, 20) as u32);
                Verb::Update(command!(Update { remaining_actions: Some(remaining), ..Update::default() }))
            }
            _ if random.chance(300) => Verb::Delete(command!(())),
            _ => return None,
        };
        Some(verb)
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

fn queue_action(random: &mut Random) -> Payload {
    let attempts_max = *random.pick(&[1, 3]);
    encode_action(&RunAction {
        queue: QUEUE.into(),
        handler: "handler".into(),
        input: b"input".as_slice().into(),
        retry: RetryPolicy { attempts_max, ..RetryPolicy::default() },
        timeouts: Timeouts::default(),
        ..RunAction::default()
    })
}
