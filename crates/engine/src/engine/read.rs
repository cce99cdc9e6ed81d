//! The verbs that only look: describe, list, count, why, ledger.

use punctual_core::{Description, Entry, Origin, ScheduleKey, ScheduleTree, StartId, Verdict, Why};
use punctual_store::{Page, RunKey, ScheduleQuery, StoredTree, TreeKey, TreeRef};

use jiff::{SignedDuration, Timestamp};

use super::Engine;
use super::reports::Reports;
use crate::error::EngineError;
use crate::shard::open_tree;

/// A schedule as people see it.
#[derive(Clone, Debug)]
pub struct Described {
    /// Its key in the store.
    pub tree: TreeKey,
    /// Everything about it.
    pub description: Description,
    /// The runs of its starts in progress.
    pub runs: Vec<(StartId, RunKey)>,
    /// Why it does nothing, if it is broken.
    pub quarantined: Option<String>,
}

/// One schedule of a list.
pub type Listed = (ScheduleKey, Result<Described, EngineError>);

/// What became of an instant, and the run if there was one.
#[derive(Clone, Debug)]
pub struct WhyAnswer {
    /// The answer.
    pub why: Why,
    /// The run that the occurrence became.
    pub run: Option<RunKey>,
}

impl Engine {
    /// Describes a schedule, as it is stored.
    pub async fn describe(&self, key: &ScheduleKey) -> Result<Described, EngineError> {
        let (stored, reports) = (self.load(key).await?, self.reports().await?);
        self.describe_stored(&stored, &reports)
    }

    /// Schedules, by ascending id. One that is broken is named with what is wrong, and hides no other.
    pub async fn list(&self, query: ScheduleQuery) -> Result<Page<Listed>, EngineError> {
        let (page, reports) = (self.inner.store.schedules(query).await?, self.reports().await?);
        let listed = |stored: &StoredTree| (stored.key.clone(), self.describe_stored(stored, &reports));
        Ok(Page { items: page.items.iter().map(listed).collect(), next: page.next })
    }

    /// How many schedules a query finds.
    pub async fn count(&self, query: ScheduleQuery) -> Result<u64, EngineError> {
        Ok(self.inner.store.count_schedules(query).await?)
    }

    /// What became of one occurrence, or what will.
    pub async fn why(&self, key: &ScheduleKey, instant: Timestamp) -> Result<WhyAnswer, EngineError> {
        let stored = self.load(key).await?;
        let (tree, runs) = open_tree(&stored).map_err(EngineError::Quarantined)?;
        let before = instant.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(instant);
        let ledger = self.inner.store.ledger(stored.tree, before, instant, 100).await?;
        let start = StartId::new(instant, Origin::Spec);
        if let Some((_, run)) = runs.iter().find(|(of, _)| *of == start) {
            return Ok(WhyAnswer { why: tree.why(&ledger, instant), run: Some(*run) });
        }
        if let Some(run) = self.inner.store.closed_run(stored.tree, start).await? {
            let decided_at = self.started_at(run).await?.unwrap_or(instant);
            return Ok(WhyAnswer {
                why: Why::Decided { verdict: Verdict::Started, decided_at },
                run: Some(run),
            });
        }
        Ok(WhyAnswer { why: tree.why(&ledger, instant), run: None })
    }

    /// The run that a start became, if it has ended and is still kept.
    pub async fn ended_run(&self, tree: TreeKey, start: StartId) -> Result<Option<RunKey>, EngineError> {
        Ok(self.inner.store.closed_run(tree, start).await?)
    }

    async fn started_at(&self, run: RunKey) -> Result<Option<Timestamp>, EngineError> {
        let found = self.inner.store.load_runs(vec![run]).await?;
        Ok(found.into_iter().next().flatten().map(|stored| stored.run.made.created_at))
    }

    /// Verdicts of occurrences that did not start, in `(after, through]`.
    pub async fn ledger(
        &self,
        key: &ScheduleKey,
        after: Timestamp,
        through: Timestamp,
        count: usize,
    ) -> Result<Vec<Entry>, EngineError> {
        let stored = self.load(key).await?;
        Ok(self.inner.store.ledger(stored.tree, after, through, count).await?)
    }

    /// The schedule itself, to ask it for more.
    pub async fn tree(&self, key: &ScheduleKey) -> Result<ScheduleTree, EngineError> {
        let stored = self.load(key).await?;
        open_tree(&stored).map(|(tree, _)| tree).map_err(EngineError::Quarantined)
    }

    pub(super) async fn load(&self, key: &ScheduleKey) -> Result<StoredTree, EngineError> {
        let found = self.inner.store.load(vec![TreeRef::Name(key.clone())]).await?;
        let not_found = || EngineError::NotFound(format!("schedule {:?}", key.schedule));
        found.into_iter().next().flatten().ok_or_else(not_found)
    }

    fn describe_stored(&self, stored: &StoredTree, reports: &Reports) -> Result<Described, EngineError> {
        let (tree, runs) = open_tree(stored).map_err(EngineError::Quarantined)?;
        let description = tree.describe(&self.inner.config.limits);
        let here = self.inner.outlet.quarantined.lock().ok();
        let here = here.and_then(|reasons| reasons.get(&stored.tree).cloned());
        let elsewhere = || {
            let mut broken = reports.iter().flat_map(|report| &report.broken);
            broken.find(|(tree, _)| *tree == stored.tree).map(|(_, reason)| reason.clone())
        };
        let quarantined = here.or_else(elsewhere).map(|reason| reason.to_string());
        Ok(Described { tree: stored.tree, description, runs, quarantined })
    }
}
