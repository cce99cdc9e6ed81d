//! One schedule on a bench: advance its time by hand, make its runs end, and look at what became of it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{
    Action, Answer, Change, Command, Completion, Create, Definition, Description, Dispatched, Effects, Entry,
    InitialPatch, Limits, NotStarted, Note, Outcome, Phase, Policies, Rejection, RequestId, Schedule,
    ScheduleKey, ScheduleTree, Seen, Sighting, StartId, StopKind, Target, Verdict, Why,
};
use punctual_spec::{Environment, Interval, Spec, parse_duration};

/// A schedule to be created on a bench.
#[derive(Clone, Debug)]
pub struct Plan {
    /// When.
    pub spec: Spec,
    /// How.
    pub policies: Policies,
    /// Where runs are started.
    pub target: Target,
    /// The first part of run ids.
    pub run_id_base: String,
    /// Starts that may happen.
    pub remaining_actions: Option<u32>,
    /// What to do at once.
    pub initial: InitialPatch,
    /// The bounds in force.
    pub limits: Limits,
    /// The time of creation.
    pub created_at: Timestamp,
    /// Namespace and schedule id.
    pub key: ScheduleKey,
}

/// A plan with an interval, such as "1h".
pub fn every(interval: &str) -> Plan {
    let duration = parse_duration(interval).unwrap_or_else(|error| panic!("{interval}: {error}"));
    plan(Spec::new().interval(Interval::every(duration)))
}

/// A plan with a cron string.
pub fn cron(text: &str) -> Plan {
    plan(Spec::new().cron(text))
}

/// A plan with any spec, created at midnight of 2022-06-01, with outside runs.
pub fn plan(spec: Spec) -> Plan {
    Plan {
        spec,
        policies: Policies::default(),
        target: Target::Outside,
        run_id_base: "run".into(),
        remaining_actions: None,
        initial: InitialPatch::default(),
        limits: Limits::default(),
        created_at: at("00:00"),
        key: ScheduleKey::new("namespace", "schedule"),
    }
}

impl Plan {
    /// Changes the policies.
    pub fn policies(mut self, change: impl FnOnce(&mut Policies)) -> Plan {
        change(&mut self.policies);
        self
    }

    /// Changes the bounds.
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Plan {
        change(&mut self.limits);
        self
    }

    /// Sets the overlap policy.
    pub fn overlap(self, overlap: punctual_core::OverlapPolicy) -> Plan {
        self.policies(|policies| policies.overlap = overlap)
    }

    /// Starts runs on a queue instead of outside.
    pub fn on_a_queue(self) -> Plan {
        Plan { target: Target::Queue, ..self }
    }

    fn definition(&self) -> Result<std::sync::Arc<Definition>, Rejection> {
        let action = Action {
            target: self.target,
            run_id_base: self.run_id_base.as_str().into(),
            payload: b"".as_slice().into(),
        };
        let schedule = Schedule {
            spec: self.spec.clone(),
            action,
            policies: self.policies.clone(),
            attachment: [].into(),
        };
        Definition::new(schedule, &self.key, &Environment::default())
    }
}

/// How the dispatcher of the bench answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatcher {
    /// Every start works at once.
    Works,
    /// Every start fails, and may be tried again.
    Fails,
    /// Every start is refused for good.
    Refuses,
    /// No answer comes.
    Hangs,
}

/// One run that the bench has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its id.
    pub id: String,
    /// Which start it is.
    pub start: StartId,
    /// Since when.
    pub started_at: Timestamp,
    /// When it ended, and how.
    pub ended: Option<(Timestamp, Outcome)>,
}

/// One schedule on a bench.
pub struct Bed {
    /// The schedule.
    pub tree: ScheduleTree,
    /// The time.
    pub now: Timestamp,
    /// The bounds in force.
    pub limits: Limits,
    /// How starts are answered.
    pub dispatcher: Dispatcher,
    /// Whether requests to stop reach their run.
    pub stops_arrive: bool,
    /// All runs so far, in order.
    pub runs: Vec<Run>,
    /// All dispatches so far.
    pub dispatches: Vec<(Timestamp, StartId, u32)>,
    /// All requests to stop so far.
    pub stops: Vec<(Timestamp, StartId, StopKind)>,
    /// All requests for the state of a run so far.
    pub checks: Vec<(Timestamp, StartId)>,
    /// All verdicts so far.
    pub ledger: Vec<Entry>,
    /// All notes so far.
    pub notes: Vec<Note>,
    /// Transitions that had to be written.
    pub commits: u64,
    /// Whether the schedule may be removed.
    pub retired: bool,
    timer: Option<Timestamp>,
    plan: Plan,
    requests: u64,
}

impl Bed {
    /// A bench with a new schedule, and a dispatcher that works.
    pub fn with(plan: Plan) -> Bed {
        Bed::try_with(plan).unwrap_or_else(|rejection| panic!("{rejection}"))
    }

    /// The same, if the schedule is accepted.
    pub fn try_with(plan: Plan) -> Result<Bed, Rejection> {
        let mut effects = Effects::default();
        let create = Create {
            key: plan.key.clone(),
            definition: plan.definition()?,
            remaining_actions: plan.remaining_actions,
            initial: plan.initial.clone(),
            request: RequestId::new("create"),
        };
        let (tree, _) = ScheduleTree::create(plan.created_at, &plan.limits, &mut effects, create)?;
        let mut bed = Bed {
            tree,
            now: plan.created_at,
            limits: plan.limits.clone(),
            dispatcher: Dispatcher::Works,
            stops_arrive: true,
            runs: Vec::new(),
            dispatches: Vec::new(),
            stops: Vec::new(),
            checks: Vec::new(),
            ledger: Vec::new(),
            notes: Vec::new(),
            commits: 0,
            retired: false,
            timer: None,
            plan,
            requests: 0,
        };
        bed.perform(effects);
        Ok(bed)
    }

    /// Lets time pass: every timer up to then fires at its time.
    pub fn advance_to(&mut self, time: impl Into<When>) -> &mut Bed {
        let time = time.into().0;
        while let Some(timer) = self.timer.filter(|timer| *timer <= time) {
            self.now = self.now.max(timer);
            self.wake();
        }
        self.now = self.now.max(time);
        self
    }

    /// Time passes but nobody looks: an outage. The schedule is woken at its end.
    pub fn away_until(&mut self, time: impl Into<When>) -> &mut Bed {
        self.now = time.into().0;
        self.wake();
        self
    }

    /// Wakes the schedule now.
    pub fn wake(&mut self) -> &mut Bed {
        let mut effects = Effects::default();
        self.tree.wake(self.now, &self.limits, &mut effects);
        self.perform(effects);
        self
    }

    /// Sends a command with a request id of its own.
    pub fn command<Body>(
        &mut self,
        change: Change<Command<Body>, Answer>,
        body: Body,
    ) -> Result<Answer, Rejection> {
        self.requests += 1;
        let request = RequestId::new(&format!("request-{}", self.requests));
        self.apply(change, Command { request, body })
    }

    /// Makes any change; a refused one leaves the schedule as it was.
    pub fn apply<Request, Response>(
        &mut self,
        change: Change<Request, Response>,
        request: Request,
    ) -> Result<Response, Rejection> {
        let mut effects = Effects::default();
        let mut tree = self.tree.clone();
        let response = tree.apply(self.now, &self.limits, &mut effects, change, request)?;
        self.tree = tree;
        self.perform(effects);
        Ok(response)
    }

    /// Changes the plan, and updates the schedule by it.
    pub fn update(&mut self, change: impl FnOnce(&mut Plan)) -> Result<Answer, Rejection> {
        change(&mut self.plan);
        let definition = Some(self.plan.definition()?);
        self.command(ScheduleTree::update, punctual_core::Update { definition, ..Default::default() })
    }

    /// The run of a nominal time ends.
    pub fn complete(&mut self, nominal: impl Into<When>, outcome: Outcome) -> &mut Bed {
        let nominal = nominal.into().0;
        let run =
            self.runs.iter().rev().find(|run| run.start.nominal_time() == nominal && run.ended.is_none());
        let start =
            run.unwrap_or_else(|| panic!("no run of {nominal} is in progress: {:?}", self.runs)).start;
        self.complete_start(start, outcome, None)
    }

    /// A run ends, with what it returned.
    pub fn complete_start(&mut self, start: StartId, outcome: Outcome, payload: Option<&[u8]>) -> &mut Bed {
        if let Some(run) = self.runs.iter_mut().find(|run| run.start == start && run.ended.is_none()) {
            run.ended = Some((self.now, outcome));
        }
        let completion =
            Completion { start, outcome, payload: payload.map(Into::into), completed_at: self.now };
        self.apply(ScheduleTree::complete, completion).expect("a completion is never refused");
        self
    }

    fn perform(&mut self, effects: Effects) {
        self.timer = effects.timer;
        self.retired |= effects.retired;
        self.commits += u64::from(effects.changed != Default::default());
        self.ledger.extend(effects.ledger);
        self.notes.extend(effects.notes);
        self.checks.extend(effects.checks.iter().map(|start| (self.now, *start)));
        let mut results = Vec::new();
        for dispatch in effects.dispatches {
            self.dispatches.push((self.now, dispatch.start, dispatch.attempt));
            let answer = match (dispatch.target, self.dispatcher) {
                (Target::Queue, _) | (Target::Outside, Dispatcher::Works) => {
                    Some(Dispatched::Started { started_at: self.now })
                }
                (Target::Outside, Dispatcher::Fails) => Some(Dispatched::Failed),
                (Target::Outside, Dispatcher::Refuses) => Some(Dispatched::Refused),
                (Target::Outside, Dispatcher::Hangs) => None,
            };
            if let Some(Dispatched::Started { .. }) = answer {
                let id = dispatch.start.run_id(&self.plan.run_id_base);
                self.runs.push(Run { id, start: dispatch.start, started_at: self.now, ended: None });
            }
            results.extend(
                answer.filter(|_| dispatch.target == Target::Outside).map(|answer| (dispatch.start, answer)),
            );
        }
        let delivered: Vec<StartId> = effects.stops.iter().map(|stop| stop.start).collect();
        self.stops.extend(effects.stops.iter().map(|stop| (self.now, stop.start, stop.kind)));
        // The keeper knows at once whether a doubtful start runs; what it says of silent runs is up to the story.
        let doubtful = |start: &StartId| {
            let in_progress = self.describe().starts.in_progress;
            in_progress
                .iter()
                .any(|found| found.id == *start && matches!(found.phase, Phase::Doubtful { .. }))
        };
        let asked: Vec<StartId> = effects.checks.iter().copied().filter(doubtful).collect();
        let sightings = asked.into_iter().map(|start| {
            let runs = self.runs.iter().any(|run| run.start == start);
            Sighting { start, seen: if runs { Seen::Running } else { Seen::Gone } }
        });
        let sightings: Vec<Sighting> = sightings.collect();
        if !sightings.is_empty() {
            self.apply(ScheduleTree::reconcile, sightings).expect("sightings are never refused");
        }
        if !results.is_empty() {
            self.apply(ScheduleTree::record_execute, results).expect("results are never refused");
        }
        if !delivered.is_empty() && self.stops_arrive {
            self.apply(ScheduleTree::record_stops, delivered).expect("deliveries are never refused");
        }
    }

    /// The schedule as people see it.
    pub fn describe(&self) -> Description {
        self.tree.describe(&self.limits)
    }

    /// What became of one occurrence.
    pub fn why(&self, nominal: impl Into<When>) -> Why {
        self.tree.why(&self.ledger, nominal.into().0)
    }

    /// The nominal times of all runs, as "HH:MM" or longer where that is not enough.
    pub fn run_times(&self) -> Vec<String> {
        self.runs.iter().map(|run| short(run.start.nominal_time())).collect()
    }

    /// The nominal times that wait.
    pub fn waiting(&self) -> Vec<String> {
        self.describe().starts.buffered.iter().map(|start| short(start.id.nominal_time())).collect()
    }

    /// Fails unless this occurrence ended without a run, for this reason.
    #[track_caller]
    pub fn expect_not_started(&self, nominal: impl Into<When>, expected: NotStarted) {
        let nominal = nominal.into();
        match self.why(nominal) {
            Why::Decided { verdict: Verdict::NotStarted(found), .. } => {
                assert_eq!(found, expected, "{}", nominal.0);
            }
            other => panic!("{}: {other:?}", nominal.0),
        }
    }

    /// Fails unless every occurrence up to now has exactly one verdict, is on its way, or is held by a pause or limit.
    #[track_caller]
    pub fn expect_every_occurrence_decided_once(&self) {
        let compiled = self.describe().definition.compiled().clone();
        let mut verdicts: BTreeMap<Timestamp, usize> = BTreeMap::new();
        for entry in self.ledger.iter().filter(|entry| entry.origin == punctual_core::Origin::Spec) {
            let before = entry.from - SignedDuration::from_nanos(1);
            for occurrence in compiled.iterate(before, entry.through) {
                *verdicts.entry(occurrence.nominal_time).or_default() += 1;
            }
        }
        for occurrence in compiled.iterate(self.plan.created_at, self.now).filter(|o| o.due_time <= self.now)
        {
            let nominal = occurrence.nominal_time;
            match verdicts.get(&nominal) {
                Some(1) => {}
                Some(many) => panic!("{nominal} has {many} verdicts: {:?}", self.ledger),
                None => match self.why(When(nominal)) {
                    Why::OnItsWay { .. } | Why::WhilePaused | Why::WhileExhausted | Why::AfterEnd => {}
                    other => panic!("{nominal} has no verdict: {other:?}"),
                },
            }
        }
    }
}

/// A moment: "HH:MM" and "HH:MM:SS" of 2022-06-01, or a whole RFC 3339 instant.
#[derive(Clone, Copy, Debug)]
pub struct When(pub Timestamp);

impl From<&str> for When {
    fn from(text: &str) -> When {
        When(at(text))
    }
}

impl From<Timestamp> for When {
    fn from(time: Timestamp) -> When {
        When(time)
    }
}

/// The instant of a moment in text.
pub fn at(text: &str) -> Timestamp {
    let whole = match text.len() {
        5 => format!("2022-06-01T{text}:00Z"),
        8 => format!("2022-06-01T{text}Z"),
        _ => text.to_owned(),
    };
    whole.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A moment as a story tells it: "HH:MM" of 2022-06-01, or longer where that is not enough.
pub fn short(time: Timestamp) -> String {
    let text = time.to_string();
    match text.strip_prefix("2022-06-01T").and_then(|rest| rest.strip_suffix('Z')) {
        Some(clock) => clock.strip_suffix(":00").unwrap_or(clock).to_owned(),
        None => text,
    }
}
