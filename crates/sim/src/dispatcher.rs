//! Where runs run, in truth: it meets a repeated start by its key, and knows what ended.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use punctual_core::{Outcome, StartId};

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// When.
    pub at: Timestamp,
    /// How.
    pub outcome: Outcome,
}

/// One run, as it truly was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Since when.
    pub began_at: Timestamp,
    /// Its end.
    pub ended: Option<Ended>,
}

/// All runs of all schedules.
#[derive(Clone, Debug, Default)]
pub struct Dispatcher {
    runs: BTreeMap<(usize, StartId), Run>,
    refused: BTreeSet<(usize, StartId)>,
    /// How often each run was begun; more than once is a fault of the dispatcher itself.
    pub begun: u64,
}

impl Dispatcher {
    /// Whether this start was accepted before.
    pub fn knows(&self, schedule: usize, start: StartId) -> bool {
        self.runs.contains_key(&(schedule, start))
    }

    /// Whether this start was refused for good.
    pub fn refused(&self, schedule: usize, start: StartId) -> bool {
        self.refused.contains(&(schedule, start))
    }

    /// Refuses a start for good.
    pub fn refuse(&mut self, schedule: usize, start: StartId) {
        self.refused.insert((schedule, start));
    }

    /// Begins a run.
    pub fn begin(&mut self, schedule: usize, start: StartId, now: Timestamp) {
        self.begun += 1;
        let before = self.runs.insert((schedule, start), Run { began_at: now, ended: None });
        assert!(before.is_none(), "{start} was begun twice");
    }

    /// Ends a run, once.
    pub fn end(
        &mut self,
        schedule: usize,
        start: StartId,
        now: Timestamp,
        outcome: Outcome,
    ) -> Option<Ended> {
        let run = self.runs.get_mut(&(schedule, start)).filter(|run| run.ended.is_none())?;
        let ended = Ended { at: now, outcome };
        run.ended = Some(ended);
        Some(ended)
    }

    /// Whether a run goes on.
    pub fn is_running(&self, schedule: usize, start: StartId) -> bool {
        self.runs.get(&(schedule, start)).is_some_and(|run| run.ended.is_none())
    }

    /// How a run ended, if it did.
    pub fn ended(&self, schedule: usize, start: StartId) -> Option<Ended> {
        self.runs.get(&(schedule, start)).and_then(|run| run.ended)
    }

    /// The runs of a schedule, in order of their starts.
    pub fn runs(&self, schedule: usize) -> impl Iterator<Item = (StartId, Run)> + '_ {
        let all = self.runs.iter().filter(move |((of, _), _)| *of == schedule);
        all.map(|((_, start), run)| (*start, *run))
    }
}
