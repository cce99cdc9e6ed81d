//! `describe`: everything a person wants to know about a schedule, without changing it.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_spec::Occurrence;

use crate::completion::LastCompletion;
use crate::id::{RequestKey, Revision, ScheduleKey};
use crate::limits::Limits;
use crate::schedule::Definition;
use crate::scheduler::{Counters, Lifecycle, PauseState};
use crate::start::{BufferedStart, RecentRun};
use crate::tree::ScheduleTree;

/// A schedule as people see it.
#[derive(Clone, Debug)]
pub struct Description {
    /// Which one.
    pub key: ScheduleKey,
    /// What the user asked for.
    pub definition: Arc<Definition>,
    /// Counts the user's accepted changes.
    pub revision: Revision,
    /// Whether it is in use.
    pub lifecycle: Lifecycle,
    /// Its pause, if it is paused.
    pub pause: Option<PauseState>,
    /// Starts of the spec that may still happen.
    pub remaining_actions: Option<u32>,
    /// Since when it exists.
    pub created_at: Timestamp,
    /// What became of its occurrences, in numbers.
    pub counters: Counters,
    /// Starts that wait, are being made, or run.
    pub starts: Waiting,
    /// Runs that ended, the latest last.
    pub recent: Vec<RecentRun>,
    /// The next times; none while it takes no occurrences.
    pub upcoming: Vec<Occurrence>,
    /// Backfills in progress.
    pub backfills: Vec<BackfillProgress>,
    /// What the next run will be told.
    pub last_completion: LastCompletion,
    /// When it wants to be woken.
    pub timer: Option<Timestamp>,
}

/// Starts by where they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// For the overlap policy, or for a run to end.
    pub buffered: Vec<BufferedStart>,
    /// Being made, or to be tried again; and runs in progress.
    pub in_progress: Vec<BufferedStart>,
}

/// How far a backfill is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillProgress {
    /// Its name.
    pub key: RequestKey,
    /// Occurrences taken.
    pub taken: u64,
    /// Every occurrence up to here was taken.
    pub watermark: Timestamp,
    /// The last nominal time asked for.
    pub through: Timestamp,
}

impl ScheduleTree {
    /// Describes the schedule. Upcoming times are computed here, so that a quiet schedule stores none.
    pub fn describe(&self, limits: &Limits) -> Description {
        let scheduler = &self.scheduler;
        let (in_progress, buffered) =
            self.invoker.starts.iter().cloned().partition(BufferedStart::holds_place);
        let backfills = self.backfillers.iter().map(|(key, backfiller)| BackfillProgress {
            key: *key,
            taken: backfiller.taken,
            watermark: backfiller.watermark,
            through: backfiller.request.through,
        });
        Description {
            key: (*scheduler.key).clone(),
            definition: scheduler.definition.clone(),
            revision: scheduler.revision(),
            lifecycle: scheduler.lifecycle,
            pause: scheduler.pause.as_deref().cloned(),
            remaining_actions: scheduler.remaining_actions,
            created_at: scheduler.created_at,
            counters: scheduler.counters.into(),
            starts: Waiting { buffered, in_progress },
            recent: self.invoker.recent.clone(),
            upcoming: self.upcoming(limits),
            backfills: backfills.collect(),
            last_completion: self.last_completion.as_deref().cloned().unwrap_or_default(),
            timer: self.next_time(limits),
        }
    }

    fn upcoming(&self, limits: &Limits) -> Vec<Occurrence> {
        let scheduler = &self.scheduler;
        if !scheduler.is_open() {
            return Vec::new();
        }
        let left = scheduler.remaining_actions.map_or(usize::MAX, |left| left as usize);
        let after = match &scheduler.pause {
            // What passes by while paused is not coming.
            Some(_) => self.generator.watermark.max(scheduler.clock),
            None => self.generator.watermark,
        };
        let coming = scheduler.definition.compiled.iterate(after, Timestamp::MAX);
        let coming = coming.filter(|occurrence| !scheduler.skips.contains(&occurrence.nominal_time));
        coming.take(limits.upcoming_max.min(left)).collect()
    }
}
