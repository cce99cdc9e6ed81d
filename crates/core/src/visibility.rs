//! The visibility view: what a list of schedules shows of one, computed from its state and stored with it.

use jiff::Timestamp;
use punctual_spec::Occurrence;

use crate::limits::Limits;
use crate::scheduler::Lifecycle;
use crate::tree::ScheduleTree;

/// What a list shows of one schedule. A store may index it; it is written when it differs from what was shown before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visibility {
    /// Whether it is in use.
    pub lifecycle: Lifecycle,
    /// Whether it is paused.
    pub paused: bool,
    /// When it is due next; nothing while it takes no occurrences.
    pub next_time: Option<Timestamp>,
    /// Runs in progress, those being started included.
    pub running: usize,
    /// Starts that wait.
    pub buffered: usize,
    /// Backfills in progress.
    pub backfills: usize,
    /// When the latest run ended.
    pub last_completed_at: Option<Timestamp>,
}

impl ScheduleTree {
    /// What a list shows.
    pub fn visibility(&self, limits: &Limits) -> Visibility {
        let description = self.describe(&Limits { upcoming_max: 1, ..limits.clone() });
        let takes_occurrences = description.pause.is_none();
        let next = description.upcoming.first().filter(|_| takes_occurrences);
        Visibility {
            lifecycle: description.lifecycle,
            paused: description.pause.is_some(),
            next_time: next.map(|occurrence: &Occurrence| occurrence.due_time),
            running: description.starts.in_progress.len(),
            buffered: description.starts.buffered.len(),
            backfills: description.backfills.len(),
            last_completed_at: description.recent.last().map(|run| run.completed_at()),
        }
    }
}
