//! The root component: definition, state, counters, revision and lifecycle of one schedule.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::command::Answer;
use crate::id::{RequestId, Revision, ScheduleKey};
use crate::ledger::{NotStarted, Verdict};
use crate::limits::Limits;
use crate::mutant::{self, Mutant};
use crate::schedule::{Definition, Policies};

pub(crate) mod close;

/// The root of one schedule's tree.
#[derive(Clone, Debug)]
pub struct Scheduler {
    pub(crate) key: Arc<ScheduleKey>,
    pub(crate) definition: Arc<Definition>,
    pub(crate) pause: Option<Box<PauseState>>,
    /// Starts of the spec that may still happen; nothing means no limit.
    pub(crate) remaining_actions: Option<u32>,
    pub(crate) failures_in_a_row: u32,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) counters: Tally,
    pub(crate) created_at: Timestamp,
    /// The last thing that happened, for the idle deadline.
    pub(crate) last_event_at: Timestamp,
    /// The latest time that this schedule has seen: time never runs backwards for it.
    pub(crate) clock: Timestamp,
    pub(crate) skips: BTreeSet<Timestamp>,
    revision: Revision,
    /// The oldest first.
    requests: Vec<(RequestId, Answer)>,
}

/// A schedule that starts nothing but manual starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PauseState {
    /// Since when.
    pub paused_at: Timestamp,
    /// For people.
    pub note: Arc<str>,
    /// It resumes by itself at this time.
    pub until: Option<Timestamp>,
}

/// Whether a schedule is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    /// In use.
    Open,
    /// Nothing was left to do; still describable.
    Completed {
        /// Since when.
        completed_at: Timestamp,
    },
    /// The user deleted it.
    Deleted {
        /// Since when.
        deleted_at: Timestamp,
    },
}

/// How many occurrences met each fate. Manual starts are counted too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Became runs.
    pub started: u64,
    /// Not started by overlap policy or by the user's mark.
    pub skipped: u64,
    /// Not started because it was too late.
    pub missed: u64,
    /// Not started because the buffer was full.
    pub dropped: u64,
    /// Not started because the schedule was paused.
    pub paused: u64,
    /// Not started because no actions were left.
    pub exhausted: u64,
    /// Not started because something took their place.
    pub superseded: u64,
}

/// The counters as they are kept: small, and as wide as a century of seconds needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally(pub(crate) [u32; 7]);

fn place(verdict: Verdict) -> usize {
    match verdict {
        Verdict::Started => 0,
        Verdict::NotStarted(NotStarted::Skipped(_)) => 1,
        Verdict::NotStarted(NotStarted::Missed(_)) => 2,
        Verdict::NotStarted(NotStarted::Dropped) => 3,
        Verdict::NotStarted(NotStarted::Paused) => 4,
        Verdict::NotStarted(NotStarted::Exhausted) => 5,
        Verdict::NotStarted(NotStarted::Superseded(_)) => 6,
    }
}

impl From<Tally> for Counters {
    fn from(Tally(counts): Tally) -> Counters {
        let [started, skipped, missed, dropped, paused, exhausted, superseded] = counts.map(u64::from);
        Counters { started, skipped, missed, dropped, paused, exhausted, superseded }
    }
}

impl Scheduler {
    pub(crate) fn new(key: ScheduleKey, definition: Arc<Definition>, now: Timestamp) -> Scheduler {
        Scheduler {
            key: Arc::new(key),
            definition,
            pause: None,
            remaining_actions: None,
            failures_in_a_row: 0,
            lifecycle: Lifecycle::Open,
            counters: Tally::default(),
            created_at: now,
            last_event_at: now,
            clock: now,
            skips: BTreeSet::new(),
            revision: Revision(1),
            requests: Vec::new(),
        }
    }

    pub(crate) fn policies(&self) -> &Policies {
        &self.definition.schedule.policies
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    /// Requests that were answered, the oldest first.
    pub(crate) fn requests(&self) -> &[(RequestId, Answer)] {
        &self.requests
    }

    /// What a store kept.
    pub(crate) fn restore(&mut self, revision: Revision, requests: Vec<(RequestId, Answer)>) {
        self.revision = revision;
        self.requests = requests;
    }

    /// The only place that moves the revision.
    pub(crate) fn bump_revision(&mut self) {
        self.revision = Revision(self.revision.0 + 1);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.lifecycle == Lifecycle::Open
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.remaining_actions == Some(0)
    }

    /// Whether the spec may start anything now.
    pub(crate) fn takes_occurrences(&self) -> bool {
        self.is_open() && self.pause.is_none() && !self.is_exhausted()
    }

    /// The only place that counts: one verdict, one counter.
    pub(crate) fn count(&mut self, verdict: Verdict, number: u64) {
        let counter = &mut self.counters.0[place(verdict)];
        if verdict != Verdict::Started || !mutant::is(Mutant::StartIsNotCounted) {
            *counter = counter.saturating_add(u32::try_from(number).unwrap_or(u32::MAX));
        }
    }

    /// The answer that this request was given before, if it was.
    pub(crate) fn answer_to(&self, request: &RequestId) -> Option<Answer> {
        let known = |known: &RequestId| known == request && !mutant::is(Mutant::RequestsAreForgotten);
        self.requests.iter().find(|(request, _)| known(request)).map(|(_, answer)| answer.clone())
    }

    /// Remembers an answer, forgetting the oldest one when there are too many.
    pub(crate) fn remember(&mut self, request: RequestId, answer: &Answer, limits: &Limits) {
        if self.requests.len() >= limits.requests_max {
            self.requests.remove(0);
        }
        // Most schedules hear of one or two commands in their life.
        self.requests.reserve_exact(1);
        self.requests.push((request, answer.clone()));
    }
}
