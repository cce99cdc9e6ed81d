//! What was committed, incarnation by incarnation: the story for the oracle, and the ledger for the checkers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::{
    Answer, Create, Definition, Dispatched, Entry, Origin, RequestId, ScheduleKey, ScheduleTree, Seen,
    Snapshot, StartId, Update, Verdict,
};
use punctual_engine::shard::UnitInFlight;
use punctual_engine::{Verb, Work};
use punctual_store::record::decode_state;
use punctual_store::{Bytes, Expected, Lifespan, RunWrite, TreeKey, TreeView, TreeWrite, Unit};

use crate::checker::{Violation, broken};
use crate::story::{Event, Report};

/// What a unit did, noted when it was sent; it counts if it is written.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Which schedule.
    pub key: ScheduleKey,
    /// The time that it saw.
    pub at: Timestamp,
    /// What was not refused, in order, and what will be answered.
    pub done: Vec<(Work, Answer)>,
}

impl Sent {
    /// Notes a unit on its way.
    pub fn note(unit: UnitInFlight<'_>) -> Sent {
        let accepted = |answer: &Result<Answer, _>| answer.as_ref().ok().cloned();
        let done = unit.assignments.into_iter();
        let done = done.filter_map(|(asked, answer)| Some((asked.work.clone(), accepted(answer)?)));
        Sent { key: unit.key.clone(), at: unit.at, done: done.collect() }
    }
}

/// One incarnation of a schedule, as it was committed.
#[derive(Clone, Debug)]
pub struct Tale {
    /// Its name.
    pub key: ScheduleKey,
    /// The definition in force.
    pub definition: Arc<Definition>,
    /// Its last hot record.
    pub state: Bytes,
    /// What lists show of it.
    pub view: TreeView,
    /// Writes so far.
    pub sequence: u64,
    /// What became of its occurrences, with the definition that was in force.
    pub ledger: Vec<(Entry, Arc<Definition>)>,
    /// The committed changes, in order, with the time that the schedule saw.
    pub log: Vec<(Timestamp, Event)>,
    /// The requests that were obeyed.
    pub answers: BTreeMap<RequestId, Answer>,
    /// The most runs that any of its definitions allowed beside each other.
    pub concurrency_max: u32,
    /// It was removed for good.
    pub retired: bool,
}

impl Tale {
    fn begin(at: Timestamp, create: &Create, answer: Answer) -> Tale {
        let definition = create.definition.clone();
        let told = [Event::Update(definition.clone(), true), Event::SetRemaining(create.remaining_actions)];
        Tale {
            key: create.key.clone(),
            concurrency_max: definition.schedule().policies.concurrency,
            definition,
            state: Arc::new([]),
            view: TreeView { lifespan: Lifespan::Open, paused: false, queue: None },
            sequence: 0,
            ledger: Vec::new(),
            log: told.map(|event| (at, event)).into(),
            answers: BTreeMap::from([(create.request.clone(), answer)]),
            retired: false,
        }
    }

    /// Whether it is in use.
    pub fn is_open(&self) -> bool {
        self.view.lifespan == Lifespan::Open && !self.retired
    }

    /// What the last write left.
    pub fn snapshot(&self) -> Snapshot<'static> {
        snapshot(&self.state)
    }

    /// The schedule, put together from what was written.
    pub fn tree(&self) -> ScheduleTree {
        ScheduleTree::restore(
            Arc::new(self.key.clone()),
            self.definition.clone(),
            Default::default(),
            self.snapshot(),
        )
    }

    fn write(&mut self, at: Timestamp, done: &[(Work, Answer)], unit: &Unit) -> Result<(), Violation> {
        let Some(write) = &unit.tree else { return Ok(()) };
        // No occurrence of a new spec is decided at the instant at which it comes into force.
        let definition = self.definition.clone();
        let inserted = unit.runs.iter().filter_map(started);
        let entries = write.ledger.iter().cloned().chain(inserted);
        self.ledger.extend(entries.map(|entry| (entry, definition.clone())));
        for (work, answer) in done {
            let Work::Change(verb) = work else { continue };
            self.tell(at, verb, answer)?;
        }
        let TreeWrite { state, view, retired, .. } = write;
        self.state = state.clone();
        self.view = view.unwrap_or(self.view);
        self.sequence += 1;
        if *retired {
            self.retired = true;
            self.log.push((at, Event::Retire));
        }
        Ok(())
    }

    /// Tells a change in the words of the oracle. A repeated request changes nothing; time passes all the same.
    fn tell(&mut self, at: Timestamp, verb: &Verb, answer: &Answer) -> Result<(), Violation> {
        let made = |answer: &Answer| answer.keys[0];
        let (request, event) = match verb {
            Verb::Wake | Verb::StopsDelivered(_) => (None, Event::Wake),
            Verb::Record(results) => {
                let events = results.iter().map(|(start, result)| {
                    let report = match result {
                        Dispatched::Started { .. } => Report::Started,
                        Dispatched::Failed => Report::Failed,
                        Dispatched::Refused => Report::Refused,
                    };
                    (at, Event::Reported(*start, report))
                });
                self.log.extend(events);
                return Ok(());
            }
            Verb::Reconcile(sightings) => {
                let events = sightings.iter().map(|sighting| {
                    let report = match &sighting.seen {
                        Seen::Running => Report::Running,
                        Seen::Ended(completion) => Report::Ended(completion.outcome),
                        Seen::Gone => Report::Gone,
                    };
                    (at, Event::Reported(sighting.start, report))
                });
                self.log.extend(events);
                return Ok(());
            }
            Verb::Complete(done) => (None, Event::Reported(done.start, Report::Ended(done.outcome))),
            Verb::Pause(command) => (Some(&command.request), Event::Pause(command.body.until)),
            Verb::Resume(command) => (Some(&command.request), Event::Resume(command.body.on_resume)),
            Verb::Trigger(command) => {
                let id = StartId::new(at, Origin::Request(made(answer)));
                (Some(&command.request), Event::Trigger(id, command.body.overlap))
            }
            Verb::Backfill(command) => {
                (Some(&command.request), Event::Backfill(made(answer), command.body.clone()))
            }
            Verb::Skip(command) => (Some(&command.request), Event::Skip(command.body.nominal_time)),
            Verb::Delete(command) => (Some(&command.request), Event::Delete),
            Verb::Update(command) => match &command.body {
                Update { definition: Some(definition), .. } => {
                    let new_spec = definition.schedule().spec != self.definition.schedule().spec;
                    (Some(&command.request), Event::Update(definition.clone(), new_spec))
                }
                Update { remaining_actions, .. } => {
                    (Some(&command.request), Event::SetRemaining(remaining_actions.flatten()))
                }
            },
            Verb::CancelBackfill(_) | Verb::Unskip(_) => panic!("no simulated client asks for {verb:?}"),
        };
        let known = request.and_then(|request| self.answers.get(request));
        if known.is_some_and(|known| known != answer) {
            return broken("repeating is harmless", format!("{verb:?} was obeyed twice"));
        }
        let repeated = known.is_some();
        if let (Event::Update(definition, _), false) = (&event, repeated) {
            self.definition = definition.clone();
            self.concurrency_max = self.concurrency_max.max(definition.schedule().policies.concurrency);
        }
        self.answers.extend(request.map(|request| (request.clone(), answer.clone())));
        self.log.push((at, if repeated { Event::Wake } else { event }));
        Ok(())
    }
}

/// The schedule part of a hot record.
pub fn snapshot(state: &Bytes) -> Snapshot<'static> {
    decode_state(state).unwrap_or_else(|error| panic!("a hot record cannot be read: {error}")).snapshot
}

/// A started occurrence on a queue is told by its run.
fn started(write: &RunWrite) -> Option<Entry> {
    let RunWrite::Insert(made) = write else { return None };
    let (_, start) = made.origin?;
    Some(Entry {
        from: start.nominal_time(),
        through: start.nominal_time(),
        count: 1,
        at_least: false,
        origin: start.origin,
        verdict: Verdict::Started,
        decided_at: made.created_at,
    })
}

/// All that was committed.
#[derive(Clone, Debug, Default)]
pub struct Chronicle {
    /// Every incarnation.
    pub tales: BTreeMap<TreeKey, Tale>,
    names: BTreeMap<ScheduleKey, TreeKey>,
    created: BTreeSet<RequestId>,
}

impl Chronicle {
    /// The latest incarnation of a name, unless it was removed.
    pub fn current(&self, key: &ScheduleKey) -> Option<&Tale> {
        self.names.get(key).and_then(|tree| self.tales.get(tree))
    }

    /// Whether this was written of a schedule of this name.
    pub fn knows(&self, key: &ScheduleKey, request: &RequestId, answer: &Answer) -> bool {
        self.tales.values().any(|tale| tale.key == *key && tale.answers.get(request) == Some(answer))
    }

    /// A unit was written.
    pub fn write(&mut self, sent: &Sent, unit: &Unit) -> Result<(), Violation> {
        let Some(write) = &unit.tree else { return Ok(()) };
        if let Expected::New { key, .. } = &write.expected {
            let Some((Work::Create(create), answer)) = sent.done.first() else {
                return broken("a schedule is made by a request", format!("{key:?} was made by {sent:?}"));
            };
            if !self.created.insert(create.request.clone()) {
                return broken("repeating is harmless", format!("{key:?} was made twice by one request"));
            }
            self.names.insert(key.clone(), write.tree);
            self.tales.insert(write.tree, Tale::begin(sent.at, create, answer.clone()));
        }
        let Some(tale) = self.tales.get_mut(&write.tree) else {
            return broken("a schedule is made by a request", format!("nobody made {}", write.tree));
        };
        tale.write(sent.at, &sent.done, unit)?;
        if tale.retired && self.names.get(&tale.key) == Some(&write.tree) {
            self.names.remove(&tale.key);
        }
        Ok(())
    }
}
