//! `update`: a new spec, action or policies, a pause, starts at once: each only if it is named, and all or nothing. What was due
//! before is decided as it was.

use std::sync::Arc;

use super::{Answer, Backfill, Command, Pause, Trigger};
use crate::id::Revision;
use crate::ledger::{NotStarted, Supersede, Verdict};
use crate::note::Note;
use crate::rejection::Rejection;
use crate::schedule::Definition;
use crate::transition::Transition;
use crate::tree::ScheduleTree;

/// What to change; what is not named stays.
#[derive(Clone, Debug, Default)]
pub struct Update {
    /// The schedule with its new parts, checked by the caller together with the old ones.
    pub definition: Option<Arc<Definition>>,
    /// A new limit of starts; the inner nothing lifts it.
    pub remaining_actions: Option<Option<u32>>,
    /// The revision that the client saw.
    pub expected_revision: Option<Revision>,
    /// The limit of starts that the client saw, which moves without the revision.
    pub expected_remaining: Option<Option<u32>>,
    /// A pause, or (the inner nothing) its end. A pause with the note that it has already stays as it is.
    pub pause: Option<Option<Box<Pause>>>,
    /// Start one now.
    pub trigger: Option<Box<Trigger>>,
    /// Start those of past ranges.
    pub backfills: Vec<Backfill>,
}

impl ScheduleTree {
    /// Changes the schedule from this instant on.
    pub fn update(&mut self, tx: &mut Transition<'_>, command: Command<Update>) -> Result<Answer, Rejection> {
        self.once(tx, command, |tree, tx, request, update| {
            let found = tree.scheduler.revision();
            if let Some(expected) = update.expected_revision.filter(|expected| *expected != found) {
                return Err(Rejection::RevisionMismatch { found, expected });
            }
            let remaining = tree.scheduler.remaining_actions;
            if update.expected_remaining.is_some_and(|expected| expected != remaining) {
                return Err(Rejection::RevisionMismatch { found, expected: found });
            }
            if let Some(remaining) = update.remaining_actions {
                // What came due while no actions were left stays undone.
                if tree.scheduler.is_exhausted() && tree.scheduler.pause.is_none() {
                    tree.pass_by(tx, NotStarted::Exhausted);
                }
                tree.scheduler.remaining_actions = remaining;
            }
            if let Some(definition) = update.definition {
                tree.replace(tx, definition);
            }
            if let Some(pause) = update.pause {
                tree.change_pause(tx, pause)?;
            }
            // New policies or limits may have room for those that wait.
            tree.invoker.look_again(tx);
            tx.note(Note::Updated);
            let mut keys = Vec::new();
            if let Some(trigger) = update.trigger {
                keys.push(tree.checked_trigger(tx, request.key(0), *trigger)?);
            }
            for (index, backfill) in update.backfills.into_iter().enumerate() {
                keys.push(tree.add_backfill(tx, request.key(index + 1), backfill)?);
            }
            Ok(keys)
        })
    }

    fn change_pause(&mut self, tx: &mut Transition<'_>, pause: Option<Box<Pause>>) -> Result<(), Rejection> {
        match (pause, &self.scheduler.pause) {
            (None, _) => {
                let on_resume = self.scheduler.policies().on_resume;
                self.end_pause(tx, on_resume);
                Ok(())
            }
            (Some(pause), Some(before)) if pause.note == before.note => Ok(()),
            (Some(pause), _) => self.set_pause(tx, *pause),
        }
    }

    fn replace(&mut self, tx: &mut Transition<'_>, definition: Arc<Definition>) {
        let same_times = definition.schedule.spec == self.scheduler.definition.schedule.spec;
        if !same_times {
            // A new spec is not retroactive: the old one's pending times end here, and the new one's begin here.
            let why = match (&self.scheduler.pause, self.scheduler.is_exhausted()) {
                (Some(_), _) => NotStarted::Paused,
                (None, true) => NotStarted::Exhausted,
                (None, false) => NotStarted::Superseded(Supersede::Update),
            };
            self.pass_by(tx, why);
            // What was waiting for its due time has no other to wait for.
            let superseded = Verdict::NotStarted(NotStarted::Superseded(Supersede::Update));
            let now = tx.now();
            let pending = self.scheduler.definition.compiled.iterate(self.generator.watermark, now).last();
            if let Some(pending) = pending {
                self.generator.decide_through(tx, &mut self.scheduler, pending.nominal_time, superseded);
            }
            self.generator.watermark = self.generator.watermark.max(now);
            self.scheduler.skips.clear();
        }
        self.scheduler.definition = definition;
        tx.changed().definition = true;
    }
}
