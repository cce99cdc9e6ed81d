//! Pure task `close`: a schedule without a future ends, and later its retention does.

use jiff::Timestamp;

use super::{Lifecycle, Scheduler};
use crate::limits::Limits;
use crate::note::Note;
use crate::transition::Transition;

impl Scheduler {
    /// When an idle schedule ends, or an ended one may be removed. `idle` says that nothing waits, runs or will come.
    pub(crate) fn close_time(&self, idle: bool, limits: &Limits) -> Option<Timestamp> {
        let (since, length) = match self.lifecycle {
            Lifecycle::Open if idle => (self.last_event_at, limits.idle_time),
            Lifecycle::Open => return None,
            Lifecycle::Completed { completed_at } => (completed_at, limits.retention),
            Lifecycle::Deleted { deleted_at } => (deleted_at, limits.retention),
        };
        since.checked_add(length).ok()
    }

    /// Ends the schedule if it has been idle for long enough.
    pub(crate) fn close(&mut self, tx: &mut Transition<'_>, idle: bool) {
        let due = self.close_time(idle, tx.limits()).is_some_and(|time| time <= tx.now());
        if self.is_open() && due {
            self.lifecycle = Lifecycle::Completed { completed_at: tx.now() };
            tx.changed().state = true;
            tx.note(Note::Completed);
        }
    }
}
