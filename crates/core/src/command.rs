//! The verbs, listed. Each is a method of the tree in a file of its own.

use crate::id::{RequestId, RequestKey, Revision};
use crate::rejection::Rejection;
use crate::transition::Transition;
use crate::tree::ScheduleTree;

mod backfill;
mod complete;
mod create;
mod delete;
mod describe;
mod pause;
mod resume;
mod skip;
mod trigger;
mod update;
mod why;

pub use backfill::{Backfill, CancelBackfill};
pub use complete::{Seen, Sighting};
pub use create::{Create, InitialPatch};
pub use describe::{BackfillProgress, Description, Waiting};
pub use pause::Pause;
pub use resume::Resume;
pub use skip::{SkipOccurrence, UnskipOccurrence};
pub use trigger::Trigger;
pub use update::Update;
pub use why::Why;

/// A change of one tree. It is a plain function, so it cannot have captured a clock or a client.
pub type Change<Request, Response> =
    fn(&mut ScheduleTree, &mut Transition<'_>, Request) -> Result<Response, Rejection>;

/// The part of a verb that differs from the others: what it does, and the keys of what it made.
type Verb<Body> =
    fn(&mut ScheduleTree, &mut Transition<'_>, &RequestId, Body) -> Result<Vec<RequestKey>, Rejection>;

/// A command and the client's name for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Command<Body> {
    /// Repeating it returns the same answer and changes nothing.
    pub request: RequestId,
    /// What is asked.
    pub body: Body,
}

/// What every verb that changes something answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The revision after the change.
    pub revision: Revision,
    /// The backfills and triggers that it made, in order.
    pub keys: Box<[RequestKey]>,
}

impl ScheduleTree {
    /// The common frame of every verb that changes something: known requests get their old answer, closed schedules
    /// refuse, and what was done is remembered.
    fn once<Body>(
        &mut self,
        tx: &mut Transition<'_>,
        command: Command<Body>,
        verb: Verb<Body>,
    ) -> Result<Answer, Rejection> {
        if let Some(answer) = self.scheduler.answer_to(&command.request) {
            return Ok(answer);
        }
        if !self.scheduler.is_open() {
            return Err(Rejection::Closed);
        }
        if command.request.0.len() > tx.limits().id_bytes_max {
            return Err(Rejection::LimitReached("the request id is too long"));
        }
        let keys = verb(self, tx, &command.request, command.body)?;
        self.scheduler.bump_revision();
        self.scheduler.last_event_at = tx.now();
        tx.changed().state = true;
        let answer = Answer { revision: self.scheduler.revision(), keys: keys.into() };
        self.scheduler.remember(command.request, &answer, tx.limits());
        Ok(answer)
    }
}
