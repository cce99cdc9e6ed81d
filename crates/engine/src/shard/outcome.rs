//! What became of a batch: confirmed units take effect, others go round again.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::{Answer, Dispatch, Note, Rejection, ScheduleKey, StartId, StopKind, Verdict};
use punctual_store::{Conflict, QueueKey, RunKey, StoreError, TreeKey};

use super::apply::reply;
use super::event::{Assignment, BatchId, Effect, MadeRun, Refusal, Target};
use super::{Shard, ahead};

/// A unit on its way.
pub(super) struct InFlight {
    pub(super) tree: TreeKey,
    pub(super) key: Arc<ScheduleKey>,
    pub(super) assignments: Vec<Assignment>,
    pub(super) answers: Vec<Result<Answer, Rejection>>,
    pub(super) promise: Promise,
    /// The time that the tree saw.
    pub(super) at: Timestamp,
    /// The unit makes the tree.
    pub(super) fresh: bool,
}

impl InFlight {
    /// Nobody waits for it.
    pub(super) fn is_patient(&self) -> bool {
        self.assignments.iter().all(|assignment| assignment.ticket.is_none())
    }
}

/// One unit of a batch on its way, for those who follow along.
pub struct UnitInFlight<'a> {
    /// Which schedule.
    pub tree: TreeKey,
    /// Its name.
    pub key: &'a ScheduleKey,
    /// The time that the schedule saw.
    pub at: Timestamp,
    /// What was done, and what will be answered once it is durable.
    pub assignments: Vec<(&'a Assignment, &'a Result<Answer, Rejection>)>,
}

/// What happens once a unit is durable.
#[derive(Default)]
pub(super) struct Promise {
    pub(super) timer: Option<Timestamp>,
    pub(super) retired: bool,
    pub(super) queue: Option<QueueKey>,
    pub(super) made: Vec<MadeRun>,
    pub(super) starts: Vec<Dispatch>,
    pub(super) stops: Vec<(StartId, Option<RunKey>, StopKind)>,
    pub(super) checks: Vec<(StartId, Option<RunKey>)>,
    pub(super) decided: Vec<(Verdict, u64)>,
    pub(super) notes: Vec<(Option<RunKey>, Note)>,
}

impl Shard {
    /// What a batch on its way consists of.
    pub fn in_flight(&self, batch: BatchId) -> impl Iterator<Item = UnitInFlight<'_>> {
        self.in_flight.get(&batch).into_iter().flatten().map(|unit| UnitInFlight {
            tree: unit.tree,
            key: &unit.key,
            at: unit.at,
            assignments: unit.assignments.iter().zip(&unit.answers).collect(),
        })
    }

    pub(super) fn committed(
        &mut self,
        now: Timestamp,
        batch: BatchId,
        answer: Result<Vec<Result<(), StoreError>>, StoreError>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(units) = self.in_flight.remove(&batch) else { return };
        match answer {
            Ok(answers) => {
                self.failures = 0;
                let conflicts = answers.iter().filter(|answer| answer.is_err()).count();
                effects.push(Effect::Written { units: units.len(), conflicts });
                let mut answers = answers.into_iter();
                let mut units = units.into_iter();
                while !units.as_slice().is_empty() {
                    let next = units.as_slice().iter().take(ahead::TOGETHER);
                    self.fetch_confirmed(next.map(|unit| unit.tree));
                    for (unit, answer) in units.by_ref().zip(answers.by_ref()).take(ahead::TOGETHER) {
                        match answer {
                            Ok(()) => self.confirm(now, unit, effects),
                            Err(error) => self.go_round(now, unit, &error, effects),
                        }
                    }
                }
            }
            Err(error) => {
                self.back_off(now, &error, effects);
                for unit in units {
                    self.go_round(now, unit, &error, effects);
                }
            }
        }
    }

    /// It is durable: now it counts.
    fn confirm(&mut self, now: Timestamp, unit: InFlight, effects: &mut Vec<Effect>) {
        let InFlight { tree, key, assignments, answers, promise, at, fresh: _ } = unit;
        for (assignment, answer) in assignments.iter().zip(answers) {
            reply(assignment, answer, effects);
        }
        if let Some(queue) = promise.queue.filter(|_| !promise.made.is_empty()) {
            effects.push(Effect::RunsMade { queue, runs: promise.made });
        }
        for dispatch in promise.starts {
            effects.push(Effect::Start { tree, key: key.clone(), dispatch });
        }
        for (start, run, kind) in promise.stops {
            effects.push(Effect::Stop { tree, start, run, kind });
        }
        for (start, run) in promise.checks {
            effects.push(Effect::Check { tree, start, run });
        }
        for (verdict, count) in promise.decided {
            effects.push(Effect::Decided { verdict, count });
        }
        for (run, note) in promise.notes {
            effects.push(Effect::Noted { key: key.clone(), at, note, run });
        }
        if promise.retired {
            return self.retired(tree, &key, effects);
        }
        self.rest(now, tree, promise.timer);
    }

    fn retired(&mut self, tree: TreeKey, key: &ScheduleKey, effects: &mut Vec<Effect>) {
        self.release_name(tree, key);
        self.loaded -= usize::from(self.slots.get(&tree).is_some_and(|slot| slot.held.is_some()));
        self.gone(tree, effects);
    }

    /// It was not written, or nobody knows: what is stored counts, and the work is done again on top of it.
    fn go_round(&mut self, now: Timestamp, unit: InFlight, error: &StoreError, effects: &mut Vec<Effect>) {
        let InFlight { tree, key, assignments, fresh, .. } = unit;
        let moved = match error {
            StoreError::Conflict(Conflict::RunMoved { run }) => Some(*run),
            _ => None,
        };
        let speaks = |assignment: &&Assignment| moved.is_some_and(|run| assignment.speaks_of(run));
        // Of several that speak of one run it is not known whose word was old: each goes round alone.
        let moved = moved.filter(|_| assignments.iter().filter(speaks).count() == 1);
        let again = assignments
            .into_iter()
            .filter_map(|assignment| self.try_again(assignment, error, moved, effects))
            .collect::<Vec<_>>();
        if let StoreError::Fenced { .. } = error {
            for assignment in again {
                self.refuse(assignment, Refusal::NotOwner, effects);
            }
            if !std::mem::replace(&mut self.fenced, true) {
                effects.push(Effect::Fenced);
            }
            return;
        }
        if let StoreError::Corrupted { .. } = error {
            if let Some(slot) = self.slots.get_mut(&tree) {
                slot.pending.extend(again);
            }
            return self.quarantine(tree, &key, &error.to_string(), effects);
        }
        if fresh {
            return self.create_again(tree, &key, again, effects);
        }
        // Whoever was faster may have given the name to another schedule: what was asked by name is looked up by name again.
        let conflict = matches!(error, StoreError::Conflict(Conflict::Sequence { .. }));
        let by_name = |assignment: &Assignment| conflict && matches!(assignment.target, Target::Name(_));
        let (named, again): (Vec<_>, Vec<_>) = again.into_iter().partition(by_name);
        if let Some(slot) = self.slots.get_mut(&tree) {
            for assignment in again.into_iter().rev() {
                slot.pending.push_front(assignment);
            }
        }
        // Its timer was taken or may have moved: looking at it again is harmless.
        self.forget(tree);
        if !self.slots.contains_key(&tree) {
            self.set_timer(tree, Some(now));
        }
        for assignment in named {
            self.submit(assignment, effects);
        }
    }

    /// A tree that was to be made may exist by now, under another key.
    fn create_again(
        &mut self,
        tree: TreeKey,
        key: &ScheduleKey,
        again: Vec<Assignment>,
        effects: &mut Vec<Effect>,
    ) {
        self.release_name(tree, key);
        let waiting = match self.slots.remove(&tree) {
            Some(slot) => {
                self.loaded -= usize::from(slot.held.is_some());
                slot.pending
            }
            None => Default::default(),
        };
        for assignment in again.into_iter().chain(waiting) {
            self.submit(Assignment { target: Target::Name(key.clone()), ..assignment }, effects);
        }
    }

    /// Whether a piece of work goes round again; if not, whoever waits is told.
    fn try_again(
        &mut self,
        mut assignment: Assignment,
        error: &StoreError,
        moved: Option<RunKey>,
        effects: &mut Vec<Effect>,
    ) -> Option<Assignment> {
        assignment.tries += 1;
        if moved.is_some_and(|run| assignment.speaks_of(run)) {
            self.refuse(assignment, Refusal::RunMoved, effects);
            return None;
        }
        if Shard::is_wake(&assignment)
            || assignment.ticket.is_none()
            || assignment.tries < self.settings.tries_max
        {
            return Some(assignment);
        }
        let refusal = match error {
            StoreError::Conflict(_) => Refusal::Aborted { tries: assignment.tries },
            StoreError::Fenced { .. } => Refusal::NotOwner,
            StoreError::Unavailable { reason } => Refusal::Unavailable(reason.clone()),
            StoreError::Corrupted { .. } => Refusal::Unavailable(error.to_string()),
        };
        self.refuse(assignment, refusal, effects);
        None
    }
}
