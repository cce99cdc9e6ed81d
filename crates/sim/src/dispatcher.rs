//! Where runs run, in truth: it meets a repeated start by its key, and knows what ended.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use punctual_core::{Origin, Outcome, StartId};
use punctual_store::TreeKey;

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
    runs: BTreeMap<(TreeKey, StartId), Run>,
    refused: BTreeSet<(TreeKey, StartId)>,
    /// How often each run was begun; more than once is a fault of the dispatcher itself.
    pub begun: u64,
}

impl Dispatcher {
    /// Whether this start was accepted before.
    pub fn knows(&self, tree: TreeKey, start: StartId) -> bool {
        self.runs.contains_key(&(tree, start))
    }

    /// Whether this start was refused for good.
    pub fn refused(&self, tree: TreeKey, start: StartId) -> bool {
        self.refused.contains(&(tree, start))
    }

    /// Refuses a start for good.
    pub fn refuse(&mut self, tree: TreeKey, start: StartId) {
        self.refused.insert((tree, start));
    }

    /// Begins a run.
    pub fn begin(&mut self, tree: TreeKey, start: StartId, now: Timestamp) {
        self.begun += 1;
        let before = self.runs.insert((tree, start), Run { began_at: now, ended: None });
        assert!(before.is_none(), "{start} was begun twice");
    }

    /// Ends a run, once.
    pub fn end(&mut self, tree: TreeKey, start: StartId, now: Timestamp, outcome: Outcome) -> Option<Ended> {
        let run = self.runs.get_mut(&(tree, start)).filter(|run| run.ended.is_none())?;
        let ended = Ended { at: now, outcome };
        run.ended = Some(ended);
        Some(ended)
    }

    /// Whether a run goes on.
    pub fn is_running(&self, tree: TreeKey, start: StartId) -> bool {
        self.runs.get(&(tree, start)).is_some_and(|run| run.ended.is_none())
    }

    /// How a run ended, if it did.
    pub fn ended(&self, tree: TreeKey, start: StartId) -> Option<Ended> {
        self.runs.get(&(tree, start)).and_then(|run| run.ended)
    }

    /// The runs of a schedule, in order of their starts.
    pub fn runs(&self, tree: TreeKey) -> impl Iterator<Item = (StartId, Run)> + '_ {
        let first = StartId { nominal_ms: i64::MIN, origin: Origin::Spec };
        let runs = self.runs.range((tree, first)..(TreeKey(tree.0 + 1), first));
        runs.map(|((_, start), run)| (*start, *run))
    }
}
