//! The verbs of runs and workers.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use punctual_core::{ScheduleKey, StopKind};
use punctual_store::record::{RunBody, decode_body};
use punctual_store::{RunDetails, RunFilter, RunKey, RunQuery, StoredRun};

use super::Engine;
use super::queues::check_name;
use crate::desk::{Claimed, Pulse, PulseAnswer, Recorded, Report};
use crate::error::EngineError;

/// A run with what it was made with.
#[derive(Clone, Debug)]
pub struct RunView {
    /// The run.
    pub stored: StoredRun,
    /// What it is to do.
    pub body: RunBody,
}

/// Some runs, the latest first.
#[derive(Clone, Debug)]
pub struct RunPage {
    /// The runs.
    pub runs: Vec<RunView>,
    /// Where to go on.
    pub next: Option<Arc<str>>,
}

/// Which runs.
#[derive(Clone, Debug, Default)]
pub struct RunSearch {
    /// Of this schedule.
    pub schedule: Option<Arc<str>>,
    /// Of this queue.
    pub queue: Option<Arc<str>>,
    /// In this part of their life.
    pub filter: Option<RunFilter>,
    /// Only runs before this one.
    pub before: Option<RunKey>,
    /// At most this many.
    pub count: usize,
}

/// Runs that one claim may take.
const CLAIM_MAX: usize = 1_000;

/// The longest that a request may wait for something to happen.
const WAIT_MAX: Duration = Duration::from_secs(60);

impl Engine {
    /// Takes ready runs of a queue, or waits for some.
    pub async fn claim(
        &self,
        namespace: &str,
        queue: &str,
        worker: &str,
        runs_max: usize,
        wait: Duration,
        lease: Option<SignedDuration>,
    ) -> Result<Vec<Claimed>, EngineError> {
        check_name("worker id", worker)?;
        if runs_max == 0 || runs_max > CLAIM_MAX {
            return Err(EngineError::Invalid(format!("runs_max must be 1 to {CLAIM_MAX}, found {runs_max}")));
        }
        let lease_max = self.inner.config.worker_lease;
        if let Some(lease) = lease.filter(|lease| *lease > lease_max) {
            // After a restart every attempt gets this much time, so none may count on more.
            return Err(EngineError::Invalid(format!(
                "lease is {lease:#}, at most {lease_max:#} (worker_lease) is given; a run that needs more has a heartbeat timeout"
            )));
        }
        if self.is_stopping() {
            return Err(EngineError::Stopping);
        }
        let queue = self.find_queue(namespace, queue).await?;
        self.inner.desk.claim(queue.queue, worker.into(), runs_max, wait.min(WAIT_MAX), lease).await
    }

    /// Gives runs back that were claimed, but of which nobody has heard.
    pub fn give_back(&self, runs: Vec<Claimed>) {
        self.inner.desk.give_back(runs);
    }

    /// Takes note that a worker is alive, and tells it what to do with its runs.
    pub async fn heartbeat(
        &self,
        namespace: &str,
        worker: &str,
        pulses: Vec<Pulse>,
        wait: Duration,
    ) -> Result<Vec<PulseAnswer>, EngineError> {
        if pulses.len() > CLAIM_MAX {
            return Err(EngineError::Invalid(format!(
                "a heartbeat may name {CLAIM_MAX} runs, found {}",
                pulses.len()
            )));
        }
        self.inner.desk.heartbeat(namespace, worker, pulses, wait.min(WAIT_MAX)).await
    }

    /// Records how an attempt ended.
    pub async fn report(&self, report: Report) -> Result<Recorded, EngineError> {
        let (place, desk) = (self.inner.router.admit()?, self.inner.desk.clone());
        let reporting = async move {
            let _place = place;
            desk.report(report).await
        };
        self.inner.desk.to_the_end(reporting).await
    }

    /// Asks a run to stop; false if it had ended before.
    pub async fn stop_run(&self, namespace: &str, run: RunKey, kind: StopKind) -> Result<bool, EngineError> {
        self.run(namespace, run).await?;
        let desk = self.inner.desk.clone();
        self.inner.desk.to_the_end(async move { desk.stop(run, kind).await }).await
    }

    /// One run.
    pub async fn run(&self, namespace: &str, run: RunKey) -> Result<RunView, EngineError> {
        let found = self.inner.store.load_runs(vec![run]).await?;
        let view = found.into_iter().next().flatten().map(view).transpose()?;
        let not_found = || EngineError::NotFound(format!("run {run}"));
        view.filter(|view| &*view.body.namespace == namespace).ok_or_else(not_found)
    }

    /// Runs by key, those that there are.
    pub async fn runs_by_key(&self, runs: Vec<RunKey>) -> Result<Vec<RunView>, EngineError> {
        let found = self.inner.store.load_runs(runs).await?;
        found.into_iter().flatten().map(view).collect()
    }

    /// Progress and log tail of a run.
    pub async fn run_details(&self, namespace: &str, run: RunKey) -> Result<RunDetails, EngineError> {
        self.run(namespace, run).await?;
        Ok(self.inner.store.run_details(run).await?)
    }

    /// Runs, the latest first.
    pub async fn list_runs(&self, namespace: &str, search: RunSearch) -> Result<RunPage, EngineError> {
        let tree = match &search.schedule {
            Some(schedule) => Some(self.load(&ScheduleKey::new(namespace, schedule)).await?.tree),
            None => None,
        };
        let queue = match &search.queue {
            Some(queue) => Some(self.find_queue(namespace, queue).await?.queue),
            None => None,
        };
        let RunSearch { filter, before, count, .. } = search;
        let query = RunQuery { namespace: namespace.into(), tree, queue, filter, before, count };
        let page = self.inner.store.runs(query).await?;
        let runs = page.items.into_iter().map(view).collect::<Result<_, _>>()?;
        Ok(RunPage { runs, next: page.next })
    }
}

fn view(stored: StoredRun) -> Result<RunView, EngineError> {
    let body = decode_body(&stored.run.made.body);
    let body =
        body.map_err(|error| EngineError::Quarantined(format!("run {}: {error}", stored.run.made.run)))?;
    Ok(RunView { stored, body })
}
