//! One atomic step: all that a component can reach while it runs, and all that leaves it.

use jiff::Timestamp;

use crate::id::StartId;
use crate::ledger::{Entry, Verdict};
use crate::limits::Limits;
use crate::note::Note;
use crate::schedule::Target;
use crate::start::StopKind;
use crate::task::{Task, Tasks};

/// What a component can reach: the time, the bounds, and the door out.
pub struct Transition<'a> {
    now: Timestamp,
    limits: &'a Limits,
    effects: &'a mut Effects,
    tasks: Tasks,
}

/// Everything that a transition asks for. The caller commits `changed` and `ledger` in one write, then does the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// The parts of the state that must be written.
    pub changed: Changed,
    /// Starts to hand to the dispatcher; those on a queue are inserted by the same commit.
    pub dispatches: Vec<Dispatch>,
    /// Runs to ask to stop.
    pub stops: Vec<StopRequest>,
    /// Runs whose state should be asked for, because nothing was heard of them.
    pub checks: Vec<StartId>,
    /// What became of occurrences.
    pub ledger: Vec<Entry>,
    /// Lines for the event log.
    pub notes: Vec<Note>,
    /// When the schedule wants to be woken; nothing means not before something happens.
    pub timer: Option<Timestamp>,
    /// Its retention is over: the stored schedule may be removed.
    pub retired: bool,
}

/// The parts of a schedule's state that change at different rates and are stored apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// What the user asked for.
    pub definition: bool,
    /// Everything that moves with each start.
    pub state: bool,
    /// The result and the failure of the last run.
    pub completion: bool,
}

/// A start to hand to the dispatcher. Sending it twice is harmless: its idempotency key is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// Which one.
    pub start: StartId,
    /// Counted from one.
    pub attempt: u32,
    /// Where to.
    pub target: Target,
}

/// A run to ask to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopRequest {
    /// Which one.
    pub start: StartId,
    /// How hard.
    pub kind: StopKind,
}

impl<'a> Transition<'a> {
    pub(crate) fn new(now: Timestamp, limits: &'a Limits, effects: &'a mut Effects) -> Transition<'a> {
        effects.clear();
        Transition { now, limits, effects, tasks: Tasks::default() }
    }

    /// The one time of this transition.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The bounds in force.
    pub fn limits(&self) -> &'a Limits {
        self.limits
    }

    /// Asks for a pure task, to be run before this transition ends.
    pub(crate) fn add_task(&mut self, task: Task) {
        self.tasks.add(task);
    }

    pub(crate) fn take_task(&mut self) -> Option<Task> {
        self.tasks.take()
    }

    pub(crate) fn note(&mut self, note: Note) {
        self.effects.notes.push(note);
    }

    /// Writes down what became of a start.
    pub(crate) fn decide(&mut self, start: StartId, verdict: Verdict) {
        self.effects.ledger.push(Entry::single(start, verdict, self.now));
        self.effects.changed.state = true;
    }

    pub(crate) fn decide_range(&mut self, entry: Entry) {
        self.effects.ledger.push(entry);
        self.effects.changed.state = true;
    }

    pub(crate) fn dispatch(&mut self, dispatch: Dispatch) {
        self.effects.dispatches.push(dispatch);
        self.effects.changed.state = true;
    }

    pub(crate) fn stop(&mut self, request: StopRequest) {
        self.effects.stops.push(request);
        self.effects.changed.state = true;
    }

    pub(crate) fn check(&mut self, start: StartId) {
        self.effects.checks.push(start);
        self.effects.changed.state = true;
    }

    pub(crate) fn changed(&mut self) -> &mut Changed {
        &mut self.effects.changed
    }

    pub(crate) fn finish(self, timer: Option<Timestamp>, retired: bool) {
        self.effects.timer = timer;
        self.effects.retired = retired;
    }
}

impl Effects {
    /// Empties the lists and keeps their memory, so that a busy engine asks for none.
    pub fn clear(&mut self) {
        self.changed = Changed::default();
        self.dispatches.clear();
        self.stops.clear();
        self.checks.clear();
        self.ledger.clear();
        self.notes.clear();
        self.timer = None;
        self.retired = false;
    }
}
