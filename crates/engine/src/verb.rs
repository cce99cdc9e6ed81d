//! What can be done to a schedule, as data: a change can be queued, repeated after a conflict, and told by name.

use jiff::Timestamp;
use punctual_core::{
    Answer, Backfill, CancelBackfill, Command, Completion, Create, Dispatched, Effects, Limits, Pause,
    Rejection, Resume, Revision, ScheduleTree, Sighting, SkipOccurrence, StartId, Trigger, UnskipOccurrence,
    Update,
};

/// A change of one schedule that exists.
#[derive(Clone, Debug)]
pub enum Verb {
    /// Its timer came.
    Wake,
    /// New definition or state.
    Update(Command<Update>),
    /// Start nothing but manual starts.
    Pause(Command<Pause>),
    /// Start again.
    Resume(Command<Resume>),
    /// Start one now.
    Trigger(Command<Trigger>),
    /// Start those of a past range.
    Backfill(Command<Backfill>),
    /// Stop a backfill.
    CancelBackfill(Command<CancelBackfill>),
    /// Let one occurrence not happen.
    Skip(Command<SkipOccurrence>),
    /// Let it happen after all.
    Unskip(Command<UnskipOccurrence>),
    /// End the schedule.
    Delete(Command<()>),
    /// The dispatcher answered.
    Record(Vec<(StartId, Dispatched)>),
    /// Requests to stop have arrived.
    StopsDelivered(Vec<StartId>),
    /// A run ended.
    Complete(Completion),
    /// Somebody looked after silent runs.
    Reconcile(Vec<Sighting>),
}

impl Verb {
    /// Makes the change. A refused one leaves a tree that must be thrown away.
    pub fn apply(
        self,
        tree: &mut ScheduleTree,
        now: Timestamp,
        limits: &Limits,
        effects: &mut Effects,
    ) -> Result<Answer, Rejection> {
        macro_rules! change {
            ($verb:path, $request:expr) => {
                tree.apply(now, limits, effects, $verb, $request)
            };
        }
        let done = match self {
            Verb::Wake => {
                tree.wake(now, limits, effects);
                Ok(())
            }
            Verb::Record(results) => change!(ScheduleTree::record_execute, results),
            Verb::StopsDelivered(starts) => change!(ScheduleTree::record_stops, starts),
            Verb::Complete(completion) => change!(ScheduleTree::complete, completion),
            Verb::Reconcile(sightings) => change!(ScheduleTree::reconcile, sightings),
            Verb::Update(command) => return change!(ScheduleTree::update, command),
            Verb::Pause(command) => return change!(ScheduleTree::pause, command),
            Verb::Resume(command) => return change!(ScheduleTree::resume, command),
            Verb::Trigger(command) => return change!(ScheduleTree::trigger, command),
            Verb::Backfill(command) => return change!(ScheduleTree::backfill, command),
            Verb::CancelBackfill(command) => return change!(ScheduleTree::cancel_backfill, command),
            Verb::Skip(command) => return change!(ScheduleTree::skip, command),
            Verb::Unskip(command) => return change!(ScheduleTree::unskip, command),
            Verb::Delete(command) => return change!(ScheduleTree::delete, command),
        };
        // What the engine tells a schedule has no answer that anybody waits for.
        done.map(|()| Answer { revision: Revision(0), keys: Box::default() })
    }

    /// Whether a client asked for it, so that it may be refused.
    pub fn is_command(&self) -> bool {
        match self {
            Verb::Wake
            | Verb::Record(_)
            | Verb::StopsDelivered(_)
            | Verb::Complete(_)
            | Verb::Reconcile(_) => false,
            Verb::Update(_)
            | Verb::Pause(_)
            | Verb::Resume(_)
            | Verb::Trigger(_)
            | Verb::Backfill(_)
            | Verb::CancelBackfill(_)
            | Verb::Skip(_)
            | Verb::Unskip(_)
            | Verb::Delete(_) => true,
        }
    }
}

/// What is to be done: to a schedule that exists, or to make one.
#[derive(Clone, Debug)]
pub enum Work {
    /// Make a schedule.
    Create(Box<Create>),
    /// Change one.
    Change(Verb),
}
