//! Waiting work becomes transitions, and transitions become one batch.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use jiff::Timestamp;
use punctual_core::{
    Answer, Create, Effects, Limits, Note, Rejection, ScheduleKey, ScheduleTree, StartId, Target as Place,
    Verdict,
};
use punctual_store::record::{BodyParts, encode_body_parts, encode_completion, encode_schedule};
use punctual_store::{Batch, Expected, NewRun, RunKey, RunWrite, TreeKey, TreeWrite, Unit};

use super::ahead;
use super::event::{Assignment, BatchId, Effect, MadeRun, Refusal, Target};
use super::held::{Held, queue_target};
use super::outcome::{InFlight, Promise};
use super::{Shard, Slot, Status, keys_per_transition};
use crate::verb::Work;

impl Shard {
    /// Builds at most one batch from the trees that have work.
    pub(super) fn build_batch(&mut self, now: Timestamp, effects: &mut Vec<Effect>) {
        let room = self.settings.units_max.min(self.ready.len() + self.creations.len());
        let (mut units, mut in_flight) = (Vec::with_capacity(room), Vec::with_capacity(room));
        while units.len() < self.settings.units_max && self.has_keys() {
            // The first of them have been fetched together with those of other shards.
            if units.len() % ahead::TOGETHER == ahead::TOGETHER - 1 {
                self.fetch_ready();
            }
            let built = if let Some(creation) = self.creations.pop_front() {
                self.build_creation(now, creation, effects)
            } else if let Some(tree) = self.ready.pop_front() {
                self.build_unit(now, tree, effects)
            } else {
                break;
            };
            if let Some((unit, flight)) = built {
                units.push(unit);
                in_flight.push(flight);
            }
        }
        if !units.is_empty() {
            self.batches += 1;
            let batch = BatchId(self.batches);
            let patient = in_flight.iter().all(InFlight::is_patient);
            self.in_flight.insert(batch, in_flight);
            effects.push(Effect::Commit { batch, units: Batch { units, patient, ..Batch::default() } });
        }
    }

    /// The transitions of one tree, merged into one unit. Nothing if nothing changed.
    fn build_unit(
        &mut self,
        now: Timestamp,
        tree: TreeKey,
        effects: &mut Vec<Effect>,
    ) -> Option<(Unit, InFlight)> {
        let slot = self.slots.get_mut(&tree).filter(|slot| slot.status == Status::Idle)?;
        let mut held = slot.held.take()?;
        let key = held.tree.key().clone();
        let mut assignments: Vec<Assignment> =
            Vec::with_capacity(slot.pending.len().min(self.settings.changes_max));
        // Every transition may make as many runs as it dispatches, and each needs a key.
        let transitions_max =
            ((self.keys.end - self.keys.start) / keys_per_transition(&self.limits)) as usize;
        while assignments.len() < self.settings.changes_max.min(transitions_max)
            && assignments.iter().all(Assignment::is_sociable)
            && let Some(assignment) = slot.pending.pop_front_if(|next| {
                assignments.is_empty() || next.is_sociable() && !next.meets(&assignments)
            })
        {
            // A closed schedule gives up its name, unless this is the request that made it.
            match &assignment.work {
                Work::Create(create)
                    if !held.tree.is_open() && held.tree.created_before(&create.request).is_err() =>
                {
                    let name = create.key.clone();
                    self.creations.push_back(Creation { name, assignment, replaces: Some(tree) });
                }
                Work::Create(_) | Work::Change(_) => assignments.push(assignment),
            }
        }
        if slot.pending.is_empty() {
            // Most schedules wait most of the time, and need no room for work meanwhile.
            slot.pending = VecDeque::new();
        }
        let mut merged = Merged::default();
        // A transition that panics has written nothing: the stored tree is as it was.
        let applied = catch_unwind(AssertUnwindSafe(|| {
            assignments
                .iter()
                .map(|assignment| merged.apply(&mut held, now, &self.limits, assignment))
                .collect::<Vec<_>>()
        }));
        let answers = match applied {
            Ok(answers) => answers,
            Err(panic) => {
                self.loaded -= 1;
                let slot = self.slots.entry(tree).or_default();
                slot.pending.extend(assignments);
                self.quarantine(tree, &key, &panic_text(&*panic), effects);
                return None;
            }
        };
        if let Err(reason) = self.retarget(&mut held, &key, &merged) {
            self.loaded -= 1;
            self.slots.entry(tree).or_default().pending.extend(assignments);
            self.quarantine(tree, &key, &reason, effects);
            return None;
        }
        if !merged.writes() {
            for (assignment, answer) in assignments.into_iter().zip(answers) {
                reply(&assignment, answer, effects);
            }
            let timer = held.tree.next_time(&self.limits);
            self.slots.entry(tree).or_default().held = Some(held);
            self.rest(now, tree, timer);
            return None;
        }
        let expected = Expected::At(held.sequence);
        let (unit, promise) = self.finish_unit(tree, &mut held, merged, expected);
        let at = held.tree.clock();
        self.park(tree, held);
        Some((unit, InFlight { tree, key, assignments, answers, promise, at, fresh: false }))
    }

    /// A new tree, for a name that is free or given up.
    fn build_creation(
        &mut self,
        now: Timestamp,
        creation: Creation,
        effects: &mut Vec<Effect>,
    ) -> Option<(Unit, InFlight)> {
        let Creation { name, assignment, replaces } = creation;
        if let Some(tree) = self.names.get(&name).copied().filter(|tree| Some(*tree) != replaces) {
            // Somebody else was first: meet what was made.
            self.queue(tree, Assignment { target: Target::Tree(tree), ..assignment });
            return None;
        }
        let Work::Create(create) = &assignment.work else { return None };
        let mut merged = Merged::default();
        let create: Create = (**create).clone();
        let made = catch_unwind(AssertUnwindSafe(|| {
            ScheduleTree::create(now, &self.limits, &mut merged.step, create)
        }));
        let (tree, answer) = match made {
            Ok(Ok(made)) => made,
            Ok(Err(rejection)) => {
                self.refuse(assignment, Refusal::Rejected(rejection), effects);
                return None;
            }
            Err(panic) => {
                self.refuse(assignment, Refusal::Quarantined(panic_text(&*panic).into()), effects);
                return None;
            }
        };
        merged.take_step();
        let mut held = match Held::new(tree, self.role.place_of(&name), &self.queues) {
            Ok(held) => Box::new(held),
            Err(fault) => {
                self.refuse(assignment, Refusal::Unavailable(fault.to_string()), effects);
                return None;
            }
        };
        let tree = TreeKey(self.take_key()?);
        let expected = Expected::New { key: name.clone(), replaces };
        let (mut unit, promise) = self.finish_unit(tree, &mut held, merged, expected);
        let at = held.tree.clock();
        if let Some(write) = &mut unit.tree {
            write.view = Some(held.current_view());
        }
        self.names.insert(name, tree);
        let key = held.tree.key().clone();
        self.loaded += 1;
        self.hand.push_back(tree);
        self.park(tree, held);
        let (assignments, answers) = (vec![assignment], vec![Ok(answer)]);
        Some((unit, InFlight { tree, key, assignments, answers, promise, at, fresh: true }))
    }

    /// A changed definition may send its runs elsewhere.
    fn retarget(&self, held: &mut Held, key: &ScheduleKey, merged: &Merged) -> Result<(), String> {
        if merged.total.changed.definition {
            let target = queue_target(held.tree.definition(), key, &self.queues);
            held.action = target.map_err(|fault| fault.to_string())?;
        }
        Ok(())
    }

    /// The tree waits for its commit.
    fn park(&mut self, tree: TreeKey, held: Box<Held>) {
        let slot: &mut Slot = self.slots.entry(tree).or_default();
        slot.held = Some(held);
        slot.status = Status::Committing;
        slot.used = true;
    }

    /// What is written, and what happens once it is.
    fn finish_unit(
        &mut self,
        tree: TreeKey,
        held: &mut Held,
        merged: Merged,
        expected: Expected,
    ) -> (Unit, Promise) {
        let Merged { total, mut runs, .. } = merged;
        let mut promise = Promise { timer: total.timer, retired: total.retired, ..Promise::default() };
        for dispatch in &total.dispatches {
            match dispatch.target {
                Place::Outside => promise.starts.push(*dispatch),
                Place::Queue => {
                    let key = self.take_key().expect("keys were counted before");
                    if let Some((made, run)) = new_run(tree, RunKey(key), held, dispatch.start) {
                        held.runs.push((dispatch.start, made.run));
                        runs.push(RunWrite::Insert(run));
                        promise.made.push(made);
                    }
                }
            }
        }
        promise.queue = held.action.as_ref().map(|target| target.queue);
        promise.stops =
            total.stops.iter().map(|stop| (stop.start, held.run_of(stop.start), stop.kind)).collect();
        promise.checks = total.checks.iter().map(|start| (*start, held.run_of(*start))).collect();
        promise.decided = total.ledger.iter().map(|entry| (entry.verdict, entry.count)).collect();
        if self.followed {
            promise.notes = total.notes.into_iter().map(|note| (run_of_note(&note, held), note)).collect();
        }
        let on_queue = held.action.is_some();
        let mut ledger = total.ledger;
        // A started occurrence's ledger entry is its run.
        ledger.retain(|entry| !(on_queue && entry.verdict == Verdict::Started));
        let view = held.current_view();
        let write = TreeWrite {
            tree,
            shard: held.shard,
            epoch: self.role.epoch(),
            expected,
            definition: total.changed.definition.then(|| encode_schedule(held.tree.definition().schedule())),
            view: (view != held.view).then_some(view),
            state: held.encode(),
            completion: total.changed.completion.then(|| encode_completion(held.tree.last_completion())),
            due_time: total.timer,
            ledger,
            retired: total.retired,
        };
        held.view = view;
        held.sequence.0 += 1;
        (Unit { tree: Some(write), runs, request: None }, promise)
    }
}

/// An end is told by the clock of whoever heard of it, which may be a little ahead of ours, or was before it was corrected. Its
/// schedule knows of it by now, and may start the next run at this very moment: so it is not later than that.
fn not_after(mut write: RunWrite, seen: Timestamp) -> RunWrite {
    if let RunWrite::Close { closing, .. } = &mut write {
        closing.closed_at = closing.closed_at.min(seen);
    }
    write
}

/// The effects of several transitions of one tree, as if they were one.
#[derive(Default)]
struct Merged {
    total: Effects,
    step: Effects,
    runs: Vec<RunWrite>,
}

impl Merged {
    fn apply(
        &mut self,
        held: &mut Held,
        now: Timestamp,
        limits: &Limits,
        assignment: &Assignment,
    ) -> Result<Answer, Rejection> {
        let answer = match &assignment.work {
            Work::Create(create) => return held.tree.created_before(&create.request),
            Work::Change(verb) if verb.is_command() => {
                // A refused command leaves a tree that must be thrown away.
                let before = held.tree.clone();
                let answer = verb.clone().apply(&mut held.tree, now, limits, &mut self.step);
                if answer.is_err() {
                    held.tree = before;
                    return answer;
                }
                answer
            }
            Work::Change(verb) => verb.clone().apply(&mut held.tree, now, limits, &mut self.step),
        };
        if answer.is_ok() {
            let seen = held.tree.clock();
            self.runs.extend(assignment.runs.iter().cloned().map(|write| not_after(write, seen)));
        }
        self.take_step();
        answer
    }

    fn take_step(&mut self) {
        let (total, step) = (&mut self.total, &mut self.step);
        total.changed.definition |= step.changed.definition;
        total.changed.state |= step.changed.state;
        total.changed.completion |= step.changed.completion;
        total.dispatches.append(&mut step.dispatches);
        total.stops.append(&mut step.stops);
        total.checks.append(&mut step.checks);
        total.ledger.append(&mut step.ledger);
        total.notes.append(&mut step.notes);
        total.timer = step.timer;
        total.retired = step.retired;
    }

    fn writes(&self) -> bool {
        let changed = self.total.changed;
        changed.definition
            || changed.state
            || changed.completion
            || self.total.retired
            || !self.runs.is_empty()
    }
}

/// The run that a line of the event log is about.
fn run_of_note(note: &Note, held: &Held) -> Option<RunKey> {
    let start = match note {
        Note::StartReadied(start)
        | Note::RunStarted(start)
        | Note::StopRequested(start)
        | Note::StartRetried { start, .. }
        | Note::RunCompleted { start, .. } => *start,
        Note::Created
        | Note::Updated
        | Note::Paused { .. }
        | Note::Resumed
        | Note::BackfillStarted(_)
        | Note::BackfillEnded(_)
        | Note::Completed
        | Note::Deleted => return None,
    };
    held.run_of(start)
}

fn new_run(tree: TreeKey, run: RunKey, held: &Held, start: StartId) -> Option<(MadeRun, NewRun)> {
    let target = held.action.as_ref()?;
    let buffered = held.tree.start(start)?;
    let key = held.tree.key();
    let created_at = held.tree.clock();
    let last_time = target.action.last_time(created_at);
    let body = encode_body_parts(BodyParts {
        namespace: &key.namespace,
        schedule: &key.schedule,
        name: &start.run_id(&held.tree.definition().schedule().action.run_id_base),
        action: &target.action,
        input: buffered.input.as_deref(),
        last: held.tree.last_completion(),
    });
    let due_time = buffered.due_time;
    let new = NewRun {
        run,
        queue: target.queue,
        origin: Some((tree, start)),
        due_time,
        created_at,
        priority: target.action.priority,
        key: target.action.key.clone(),
        dedup: None,
        not_before: None,
        body,
    };
    Some((MadeRun { run, due_time, last_time }, new))
}

/// Answers somebody who waits.
pub(super) fn reply(assignment: &Assignment, answer: Result<Answer, Rejection>, effects: &mut Vec<Effect>) {
    if let Some(ticket) = assignment.ticket {
        effects.push(Effect::Reply { ticket, answer: answer.map_err(Refusal::Rejected) });
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("a transition panicked: {}", text.unwrap_or("without words"))
}

/// A schedule that is to be made.
pub(super) struct Creation {
    pub(super) name: ScheduleKey,
    pub(super) assignment: Assignment,
    /// The closed schedule that gives up its name.
    pub(super) replaces: Option<TreeKey>,
}
