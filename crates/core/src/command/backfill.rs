//! `backfill` and its cancellation: past ranges as objects with a key, progress and an end.

use super::{Answer, Command};
use crate::backfiller::{BackfillRequest, Backfiller};
use crate::id::{Origin, RequestKey};
use crate::ledger::{NotStarted, Supersede};
use crate::note::Note;
use crate::rejection::Rejection;
use crate::task::Task;
use crate::transition::Transition;
use crate::tree::ScheduleTree;

/// A range to start.
pub type Backfill = BackfillRequest;

/// A backfill to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelBackfill {
    /// Which one, as the backfill's answer named it.
    pub key: RequestKey,
}

impl ScheduleTree {
    /// Starts the occurrences of a past range.
    pub fn backfill(
        &mut self,
        tx: &mut Transition<'_>,
        command: Command<Backfill>,
    ) -> Result<Answer, Rejection> {
        self.once(tx, command, |tree, tx, request, backfill| {
            Ok(vec![tree.add_backfill(tx, request.key(0), backfill)?])
        })
    }

    /// Stops a backfill: what it has not taken is never taken, what waits for it does not happen; runs go on.
    pub fn cancel_backfill(
        &mut self,
        tx: &mut Transition<'_>,
        command: Command<CancelBackfill>,
    ) -> Result<Answer, Rejection> {
        self.once(tx, command, |tree, tx, _, CancelBackfill { key }| {
            if tree.backfillers.remove(&key).is_none() {
                return Err(Rejection::NotFound("the backfill"));
            }
            let waiting = tree.invoker.starts.iter();
            let waiting =
                waiting.filter(|start| start.id.origin == Origin::Request(key) && !start.holds_place());
            for id in waiting.map(|start| start.id).collect::<Vec<_>>() {
                let why = NotStarted::Superseded(Supersede::BackfillCancelled);
                tree.invoker.reject(tx, &mut tree.scheduler, id, why);
            }
            tx.note(Note::BackfillEnded(key));
            Ok(vec![key])
        })
    }

    pub(super) fn add_backfill(
        &mut self,
        tx: &mut Transition<'_>,
        key: RequestKey,
        backfill: Backfill,
    ) -> Result<RequestKey, Rejection> {
        if self.backfillers.len() >= tx.limits().backfills_max {
            return Err(Rejection::LimitReached("there are too many backfills at a time"));
        }
        if backfill.note.len() > tx.limits().note_bytes_max {
            return Err(Rejection::LimitReached("the note is too long"));
        }
        if backfill.through > tx.now() {
            return Err(Rejection::InvalidPolicy(
                "a backfill ends in the future, where the schedule starts by itself",
            ));
        }
        if backfill.through < backfill.from {
            return Err(Rejection::InvalidPolicy("a backfill ends before it begins"));
        }
        self.backfillers.insert(key, Backfiller::new(backfill, tx.now()));
        tx.note(Note::BackfillStarted(key));
        tx.add_task(Task::Backfill);
        Ok(key)
    }
}
