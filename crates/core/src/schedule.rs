//! What the user asked for: when, what, and by which policies.

use std::sync::Arc;

use jiff::SignedDuration;
use punctual_spec::{CompiledSpec, Environment, Spec};

use crate::id::ScheduleKey;
use crate::rejection::Rejection;

/// Bytes that core hands on and never looks into.
pub type Payload = Arc<[u8]>;

/// The user's standing wish.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// When.
    pub spec: Spec,
    /// What one start should do.
    pub action: Action,
    /// How starts get along with each other, with outages and with failures.
    pub policies: Policies,
    /// What another front door keeps with the schedule, such as fields that only its own clients know; empty for none.
    /// Nothing is decided by it.
    pub attachment: Payload,
}

/// What one start should do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Where the run is started.
    pub target: Target,
    /// The first part of every run's id.
    pub run_id_base: Arc<str>,
    /// Handler, input and the rest, for the dispatcher.
    pub payload: Payload,
}

/// Where a run is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// On a queue in the same database: the run is inserted by the transaction that commits the transition.
    Queue,
    /// Anywhere else: a call after the commit, and a second transition for its answer.
    Outside,
}

/// What to do while a run is in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum OverlapPolicy {
    /// The new start does not happen.
    #[default]
    Skip,
    /// One start waits, further ones do not happen.
    BufferOne,
    /// All wait, in order.
    BufferAll,
    /// The run is asked to stop, and the start waits for it.
    CancelOther,
    /// The run is ended, and the start waits for it.
    TerminateOther,
    /// It starts beside the others.
    AllowAll,
}

/// How starts get along with each other, with outages and with failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policies {
    /// What to do while runs are in progress.
    pub overlap: OverlapPolicy,
    /// How many runs may be in progress before the overlap policy asks; at least 1.
    pub concurrency: u32,
    /// How late a start may still happen; nothing means the default.
    pub catchup_window: Option<SignedDuration>,
    /// How many of the occurrences that came due together are started.
    pub catchup_count: CatchupCount,
    /// The least time between two starts that are late.
    pub catchup_pace: Option<SignedDuration>,
    /// Pause after this many failures in a row.
    pub pause_after_failures: Option<u32>,
    /// What becomes of the time spent paused.
    pub on_resume: OnResume,
}

impl Default for Policies {
    fn default() -> Policies {
        Policies {
            overlap: OverlapPolicy::Skip,
            concurrency: 1,
            catchup_window: None,
            catchup_count: CatchupCount::All,
            catchup_pace: None,
            pause_after_failures: None,
            on_resume: OnResume::Skip,
        }
    }
}

/// How many of the occurrences that came due together are started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CatchupCount {
    /// All of them.
    #[default]
    All,
    /// The latest ones, this many.
    Latest(u32),
}

/// What becomes of occurrences while a schedule is paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnResume {
    /// They stay undone.
    #[default]
    Skip,
    /// They are caught up, by the catch-up policy.
    CatchUp,
}

/// Whether only people start it: the spec names no time at all.
pub(crate) fn is_manual_only(spec: &Spec) -> bool {
    spec.calendars.is_empty()
        && spec.calendar_texts.is_empty()
        && spec.crons.is_empty()
        && spec.intervals.is_empty()
        && spec.times.is_empty()
}

/// A schedule with its spec compiled. It changes rarely and is shared, not copied.
#[derive(Debug)]
pub struct Definition {
    pub(crate) schedule: Schedule,
    pub(crate) compiled: CompiledSpec,
}

impl Definition {
    /// Checks a schedule and compiles its spec.
    pub fn new(
        schedule: Schedule,
        key: &ScheduleKey,
        environment: &Environment,
    ) -> Result<Arc<Definition>, Rejection> {
        let environment = environment.clone().with_seed(key.seed());
        let compiled = schedule.spec.compile_in(&environment).map_err(Rejection::InvalidSpec)?;
        // A spec without any source is for manual starts; one with sources that never fire is a mistake.
        if compiled.never_fires() && !is_manual_only(&schedule.spec) {
            return Err(Rejection::NeverFires);
        }
        if schedule.policies.concurrency == 0 {
            return Err(Rejection::InvalidPolicy("concurrency is 0, at least 1 is needed"));
        }
        if schedule.policies.catchup_count == CatchupCount::Latest(0) {
            return Err(Rejection::InvalidPolicy("catch-up count is 0, at least 1 is needed"));
        }
        Ok(Arc::new(Definition { schedule, compiled }))
    }

    /// Reads a little of it; see [`ScheduleTree::glance`](crate::ScheduleTree::glance).
    pub(crate) fn glance(self: &Arc<Definition>) -> usize {
        let Schedule { action, policies, .. } = &self.schedule;
        let Policies { overlap, catchup_window, catchup_pace, .. } = policies;
        let policies = *overlap as usize ^ usize::from(catchup_window.is_some() ^ catchup_pace.is_some());
        Arc::strong_count(self)
            ^ policies
            ^ action.target as usize
            ^ action.run_id_base.len()
            ^ self.compiled.glance(0)
    }

    /// What the user asked for.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// When, ready to be asked.
    pub fn compiled(&self) -> &CompiledSpec {
        &self.compiled
    }
}
