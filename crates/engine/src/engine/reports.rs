//! What nodes know that the database does not: each says it with its beats, so that any of them can be asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use punctual_store::record::{NodeReport, WorkerSeen, decode_report};
use punctual_store::{QueueKey, TreeKey, Watch};
use tokio::sync::broadcast;

use super::Engine;
use crate::desk::Sighting;
use crate::error::EngineError;
use crate::watchers::Elsewhere;

/// How old an answer may be: what is asked for many times a second is read once.
const AGE_MAX: SignedDuration = SignedDuration::from_secs(1);

/// What the other nodes said last.
pub(super) type Reports = Arc<Vec<NodeReport>>;

/// The last answer, and when it was given.
#[derive(Default)]
pub(super) struct Remembered(Mutex<Option<(Timestamp, Reports)>>);

impl Engine {
    /// What this node has to say.
    pub(super) fn own_report(&self) -> NodeReport {
        let quarantined = self.inner.outlet.quarantined.lock().unwrap_or_else(PoisonError::into_inner);
        let broken = quarantined.iter().map(|(tree, reason)| (*tree, reason.clone())).collect();
        NodeReport { workers: self.inner.desk.sightings(), broken }
    }

    /// What the other nodes have to say.
    pub(super) async fn reports(&self) -> Result<Reports, EngineError> {
        if !self.inner.node.shared {
            return Ok(Reports::default());
        }
        let now = self.now();
        let remembered = || self.inner.reports.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, reports)) = &*remembered()
            && now.duration_since(*at).abs() < AGE_MAX
        {
            return Ok(reports.clone());
        }
        let told = self.inner.store.reports().await?;
        let others = told.iter().filter(|(keeper, _)| *keeper != self.inner.node.keeper);
        // What a later release says in other words is as if it said nothing.
        let reports: Reports =
            Arc::new(others.filter_map(|(_, report)| decode_report(report).ok()).collect());
        *remembered() = Some((now, reports.clone()));
        Ok(reports)
    }

    /// The workers that asked for runs of a queue lately, or have some, at whichever node.
    pub async fn workers_of(&self, queue: QueueKey) -> Result<Vec<Sighting>, EngineError> {
        let (here, reports) = (self.inner.desk.sightings(), self.reports().await?);
        let elsewhere = reports.iter().flat_map(|report| &report.workers);
        let mut workers: BTreeMap<Arc<str>, Sighting> = BTreeMap::new();
        for seen in here.iter().chain(elsewhere).filter(|seen| seen.queue == queue) {
            let WorkerSeen { worker, seen_at, running, .. } = seen.clone();
            let known = workers.entry(worker.clone()).or_insert(Sighting { worker, seen_at, running: 0 });
            known.seen_at = known.seen_at.max(seen_at);
            known.running += running;
        }
        Ok(workers.into_values().collect())
    }

    /// Schedules that are broken, and why, at whichever node.
    pub async fn quarantined(&self) -> Result<BTreeMap<TreeKey, Arc<str>>, EngineError> {
        let reports = self.reports().await?;
        let elsewhere = reports.iter().flat_map(|report| report.broken.iter().cloned());
        Ok(elsewhere.chain(self.own_report().broken).collect())
    }

    /// What happens at other nodes from now on, to schedules that are [watched](Engine::tell_watched) here.
    pub fn watch_elsewhere(&self) -> broadcast::Receiver<Elsewhere> {
        self.inner.outlet.watchers.subscribe()
    }

    /// Tells the other nodes that somebody watches here. It holds for ten seconds, so it is to be said again before.
    pub fn tell_watched(&self, watch: Watch) {
        let (at, longest) = (self.inner.node.keeper, self.inner.config.limits.id_bytes_max);
        let is_long = |name: &Arc<str>| name.len() > longest;
        // No schedule has such a name, and whoever asks for it could fill what nodes tell each other.
        if !is_long(&watch.namespace) && !watch.schedule.as_ref().is_some_and(is_long) {
            self.tell(punctual_store::News::Watched { at, watch });
        }
    }
}
