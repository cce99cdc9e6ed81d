//! A tree taken apart into plain data and put together again: what stores keep of a schedule besides its definition.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::backfiller::{BackfillRequest, Backfiller};
use crate::command::Answer;
use crate::completion::LastCompletion;
use crate::generator::Generator;
use crate::id::{RequestId, RequestKey, Revision, ScheduleKey};
use crate::invoker::Invoker;
use crate::schedule::Definition;
use crate::scheduler::{Lifecycle, PauseState, Scheduler, Tally};
use crate::start::{BufferedStart, RecentRun};
use crate::tree::ScheduleTree;

/// Everything of a schedule that moves with its starts. It is data without behaviour, for stores. One is taken at every start, so
/// its lists are borrowed from the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot<'a> {
    /// Counts the user's accepted changes.
    pub revision: Revision,
    /// Whether it is in use.
    pub lifecycle: Lifecycle,
    /// Its pause, if it is paused.
    pub pause: Option<PauseState>,
    /// Starts of the spec that may still happen.
    pub remaining_actions: Option<u32>,
    /// Failures since the last success.
    pub failures_in_a_row: u32,
    /// Verdicts so far: started, skipped, missed, dropped, paused, exhausted, superseded.
    pub counters: [u32; 7],
    /// Since when it exists.
    pub created_at: Timestamp,
    /// The last thing that happened.
    pub last_event_at: Timestamp,
    /// The latest time that it has seen.
    pub clock: Timestamp,
    /// Occurrences that the user marked to be skipped.
    pub skips: Vec<Timestamp>,
    /// Requests that were answered, the oldest first.
    pub requests: Cow<'a, [(RequestId, Answer)]>,
    /// Every occurrence up to here is decided.
    pub watermark: Timestamp,
    /// Late starts are released one after another; the next is not before this.
    pub paced_until: Timestamp,
    /// Starts on their way, in order.
    pub starts: Cow<'a, [BufferedStart]>,
    /// Runs that ended, the latest last.
    pub recent: Cow<'a, [RecentRun]>,
    /// Backfills in progress.
    pub backfills: Vec<BackfillSnapshot>,
}

/// A run that ended, in the packed form that the tree keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecentSnapshot {
    /// The nominal time in milliseconds.
    pub nominal_ms: i64,
    /// The key of the request, or 0 for a start of the spec.
    pub request: u64,
    /// Outcome, delay and length.
    pub packed: u64,
}

/// A backfill in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackfillSnapshot {
    /// Its name.
    pub key: RequestKey,
    /// What was asked.
    pub request: BackfillRequest,
    /// Every occurrence up to here was taken.
    pub watermark: Timestamp,
    /// How many were taken.
    pub taken: u64,
    /// The next pass is not before this.
    pub not_before: Timestamp,
    /// Passes that found no room, one after another.
    pub blocked_passes: u32,
}

impl ScheduleTree {
    /// Takes the tree apart. The definition and the last completion are kept apart, as they change at other times.
    pub fn snapshot(&self) -> Snapshot<'_> {
        let scheduler = &self.scheduler;
        let backfills = self.backfillers.iter().map(|(key, backfiller)| BackfillSnapshot {
            key: *key,
            request: backfiller.request.clone(),
            watermark: backfiller.watermark,
            taken: backfiller.taken,
            not_before: backfiller.not_before,
            blocked_passes: backfiller.blocked_passes,
        });
        Snapshot {
            revision: scheduler.revision(),
            lifecycle: scheduler.lifecycle,
            pause: scheduler.pause.as_deref().cloned(),
            remaining_actions: scheduler.remaining_actions,
            failures_in_a_row: scheduler.failures_in_a_row,
            counters: scheduler.counters.0,
            created_at: scheduler.created_at,
            last_event_at: scheduler.last_event_at,
            clock: scheduler.clock,
            skips: scheduler.skips.iter().copied().collect(),
            requests: scheduler.requests().into(),
            watermark: self.generator.watermark,
            paced_until: self.invoker.paced_until(),
            starts: self.invoker.starts[..].into(),
            recent: self.invoker.recent[..].into(),
            backfills: backfills.collect(),
        }
    }

    /// Puts a tree together from what a store kept.
    pub fn restore(
        key: Arc<ScheduleKey>,
        definition: Arc<Definition>,
        last_completion: LastCompletion,
        snapshot: Snapshot<'_>,
    ) -> ScheduleTree {
        let backfillers = snapshot.backfills.into_iter().map(|backfill| {
            let BackfillSnapshot { key, request, watermark, taken, not_before, blocked_passes } = backfill;
            (key, Backfiller { request, watermark, taken, not_before, blocked_passes })
        });
        let mut scheduler = Scheduler::new((*key).clone(), definition, snapshot.created_at);
        scheduler.key = key;
        scheduler.pause = snapshot.pause.map(Box::new);
        scheduler.remaining_actions = snapshot.remaining_actions;
        scheduler.failures_in_a_row = snapshot.failures_in_a_row;
        scheduler.lifecycle = snapshot.lifecycle;
        scheduler.counters = Tally(snapshot.counters);
        scheduler.last_event_at = snapshot.last_event_at;
        scheduler.clock = snapshot.clock;
        scheduler.skips = snapshot.skips.into_iter().collect();
        scheduler.restore(snapshot.revision, snapshot.requests.into_owned());
        ScheduleTree {
            scheduler,
            generator: Generator { watermark: snapshot.watermark },
            invoker: Invoker::restore(
                snapshot.starts.into_owned(),
                snapshot.recent.into_owned(),
                snapshot.paced_until,
            ),
            backfillers: backfillers.collect::<BTreeMap<_, _>>(),
            last_completion: (last_completion != LastCompletion::default())
                .then(|| Box::new(last_completion)),
        }
    }
}
