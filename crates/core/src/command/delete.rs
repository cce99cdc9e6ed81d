//! `delete`: the schedule ends at once; runs in progress go on by themselves.

use super::{Answer, Command};
use crate::ledger::{NotStarted, Supersede};
use crate::note::Note;
use crate::rejection::Rejection;
use crate::scheduler::Lifecycle;
use crate::transition::Transition;
use crate::tree::ScheduleTree;

impl ScheduleTree {
    /// Deletes the schedule. What waits gets its verdict; the tree stays describable for its retention.
    pub fn delete(&mut self, tx: &mut Transition<'_>, command: Command<()>) -> Result<Answer, Rejection> {
        self.once(tx, command, |tree, tx, _, ()| {
            if tree.scheduler.pause.is_some() {
                tree.pass_by(tx, NotStarted::Paused);
            } else if tree.scheduler.is_exhausted() {
                tree.pass_by(tx, NotStarted::Exhausted);
            }
            let waiting = tree.invoker.starts.iter().filter(|start| !start.holds_place());
            for id in waiting.map(|start| start.id).collect::<Vec<_>>() {
                tree.invoker.reject(tx, &mut tree.scheduler, id, NotStarted::Superseded(Supersede::Delete));
            }
            tree.backfillers.clear();
            tree.scheduler.lifecycle = Lifecycle::Deleted { deleted_at: tx.now() };
            tx.note(Note::Deleted);
            Ok(Vec::new())
        })
    }
}
