//! `why`: what became of one occurrence, or what will, and for which reason.

use jiff::Timestamp;
use punctual_spec::Occurrence;

use crate::id::{Origin, StartId};
use crate::ledger::{Entry, Verdict};
use crate::scheduler::{Lifecycle, PauseState};
use crate::start::Phase;
use crate::tree::ScheduleTree;

/// The answer for one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The ledger has its verdict.
    Decided {
        /// What became of it.
        verdict: Verdict,
        /// When that was decided.
        decided_at: Timestamp,
    },
    /// It is on its way.
    OnItsWay {
        /// How far.
        phase: Phase,
    },
    /// It will start at this time, as things are now.
    Coming {
        /// When it is due.
        due_time: Timestamp,
    },
    /// The user marked it as not to happen.
    WillBeSkipped,
    /// The schedule is paused: it will not start while that lasts.
    WhilePaused,
    /// The schedule has no actions left: it will not start.
    WhileExhausted,
    /// The schedule had ended.
    AfterEnd,
    /// It was before the schedule was created.
    BeforeCreation,
    /// The spec, as it is now, has no occurrence then.
    NoOccurrence {
        /// The one before.
        previous: Option<Occurrence>,
        /// The one after.
        next: Option<Occurrence>,
    },
    /// The ledger of that time is gone.
    Forgotten,
}

impl ScheduleTree {
    /// Explains one nominal time, from the ledger entries that cover it and the schedule as it is.
    pub fn why(&self, ledger: &[Entry], instant: Timestamp) -> Why {
        let scheduler = &self.scheduler;
        if let Some(entry) = ledger.iter().rev().find(|entry| entry.covers(instant)) {
            return Why::Decided { verdict: entry.verdict, decided_at: entry.decided_at };
        }
        let id = StartId::new(instant, Origin::Spec);
        if let Some(start) = self.invoker.starts.iter().find(|start| start.id == id) {
            return Why::OnItsWay { phase: start.phase };
        }
        if instant <= scheduler.created_at {
            return Why::BeforeCreation;
        }
        let compiled = &scheduler.definition.compiled;
        if !compiled.matches(instant) {
            return Why::NoOccurrence { previous: compiled.previous(instant), next: compiled.next(instant) };
        }
        if instant <= self.generator.watermark {
            return Why::Forgotten;
        }
        match scheduler.lifecycle {
            Lifecycle::Completed { .. } | Lifecycle::Deleted { .. } => return Why::AfterEnd,
            Lifecycle::Open => {}
        }
        let outlasts = |pause: &PauseState| pause.until.is_none_or(|until| instant <= until);
        if scheduler.pause.as_deref().is_some_and(outlasts) {
            Why::WhilePaused
        } else if scheduler.is_exhausted() {
            Why::WhileExhausted
        } else if scheduler.skips.contains(&instant) {
            Why::WillBeSkipped
        } else {
            let due_time = compiled.previous(instant + jiff::SignedDuration::from_nanos(1));
            Why::Coming { due_time: due_time.map_or(instant, |occurrence| occurrence.due_time) }
        }
    }
}
