//! `pause`: nothing but manual starts, until resumed or until a time.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Answer, Command};
use crate::note::Note;
use crate::rejection::Rejection;
use crate::scheduler::PauseState;
use crate::transition::Transition;
use crate::tree::ScheduleTree;

/// A pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// For people.
    pub note: Arc<str>,
    /// Resume by itself at this time.
    pub until: Option<Timestamp>,
}

impl ScheduleTree {
    /// Pauses the schedule; a paused one gets the new note and time.
    pub fn pause(&mut self, tx: &mut Transition<'_>, command: Command<Pause>) -> Result<Answer, Rejection> {
        self.once(tx, command, |tree, tx, _, pause| {
            tree.set_pause(tx, pause)?;
            Ok(Vec::new())
        })
    }

    pub(super) fn set_pause(&mut self, tx: &mut Transition<'_>, pause: Pause) -> Result<(), Rejection> {
        if pause.note.len() > tx.limits().note_bytes_max {
            return Err(Rejection::LimitReached("the note is too long"));
        }
        let paused_at = self.scheduler.pause.as_ref().map_or(tx.now(), |before| before.paused_at);
        self.scheduler.pause = Some(Box::new(PauseState { paused_at, note: pause.note, until: pause.until }));
        tx.note(Note::Paused { after_failures: None });
        Ok(())
    }
}
