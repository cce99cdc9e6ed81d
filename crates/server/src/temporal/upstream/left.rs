//! Workflows that were left behind: their runs were stopped here, and whoever had to tell the cluster died before it did.
//!
//! A run that is terminated is over at once; its workflow is not. Whoever follows it tells the cluster. If nobody does at that
//! moment, the node that ended it does so; and what was stopped lately is looked at now and then, in case that died too, and
//! told again where the workflow still runs. To tell twice is harmless.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Note, Outcome};
use punctual_engine::{EngineError, Happened, RunSearch, RunView};
use punctual_store::{RunFilter, RunKey};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;
use tonic::Code;

use super::super::wire::common::WorkflowExecution;
use super::stop::{Stop, cancel, terminate};
use super::{Upstream, known, request};
use crate::app::App;
use crate::convert::action::WORKFLOWS_QUEUE;

/// The time between two looks.
const PAUSE: Duration = Duration::from_secs(60);

/// How far back the first look goes: a node may have been away for a while.
const BACK_FIRST: SignedDuration = SignedDuration::from_hours(24);

/// How far each look goes back behind the one before: clocks differ, and ends are written a moment after their time.
const BACK: SignedDuration = SignedDuration::from_mins(1);

/// Runs of one page, and pages of one look for each outcome. A look ends early with a page that has nothing new in it: the
/// latest runs come first.
const PAGE_RUNS: usize = 100;
const PAGES_MAX: usize = 20;

/// Pages in a row with nothing new, after which there is not much hope for more.
const OLD_PAGES_MAX: usize = 5;

/// Hears of runs that are stopped while nobody here follows them, until the server stops.
pub(super) async fn hear(app: Arc<App>) {
    let mut events = app.engine.watch();
    let mut told = JoinSet::new();
    loop {
        let heard = tokio::select! {
            heard = events.recv() => heard,
            () = app.stop() => return,
        };
        match heard {
            Ok(Happened { key, note: Note::RunCompleted { outcome, .. }, run: Some(run), .. }) => {
                if matches!(outcome, Outcome::Terminated | Outcome::Cancelled) {
                    told.spawn(tell(app.clone(), key.namespace.clone(), run, outcome));
                }
            }
            // The next look finds what was missed.
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
        while told.try_join_next().is_some() {}
    }
}

/// Stops the workflow of a run that was just ended, unless somebody here follows it, and so does that.
async fn tell(app: Arc<App>, namespace: Arc<str>, run: RunKey, outcome: Outcome) {
    let Some(upstream) = app.upstream.as_ref().filter(|it| !it.followed.has(&namespace, run)) else { return };
    let view = app.engine.run(&namespace, run).await;
    if let Ok(view) = view
        && *view.body.action.queue == *WORKFLOWS_QUEUE
    {
        let _ = settle(upstream, &view, outcome).await;
    }
}

/// Looks after the stopped starts of one namespace until the server stops.
pub(super) async fn look_after(app: Arc<App>, namespace: Arc<str>) {
    let Some(upstream) = &app.upstream else { return };
    let mut since = app.engine.now().checked_sub(BACK_FIRST).unwrap_or(Timestamp::MIN);
    let mut settled = BTreeSet::new();
    loop {
        let begun = app.engine.now();
        let looked = tokio::select! {
            looked = look(&app, upstream, &namespace, since, &mut settled) => looked,
            () = app.stop() => return,
        };
        match looked {
            Ok(true) => since = begun.checked_sub(BACK).unwrap_or(begun),
            // The cluster or the database is away: the next look goes back as far.
            Ok(false) => {}
            Err(error) => tracing::debug!(%namespace, %error, "stopped workflows could not be looked at"),
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = app.stop() => return,
        }
    }
}

/// One look at what was stopped since then. False if the cluster did not say about all of it.
async fn look(
    app: &App,
    upstream: &Upstream,
    namespace: &Arc<str>,
    since: Timestamp,
    settled: &mut BTreeSet<RunKey>,
) -> Result<bool, EngineError> {
    let (mut all, mut seen) = (true, BTreeSet::new());
    for outcome in [Outcome::Terminated, Outcome::Cancelled] {
        let (mut before, mut old_pages) = (None, 0);
        for _ in 0..PAGES_MAX {
            let search = RunSearch {
                queue: Some(WORKFLOWS_QUEUE.into()),
                filter: Some(RunFilter::Closed(Some(outcome))),
                before,
                count: PAGE_RUNS,
                ..RunSearch::default()
            };
            let page = app.engine.list_runs(namespace, search).await?;
            let is_new = |view: &&RunView| {
                view.stored.closing.as_ref().is_some_and(|closing| closing.closed_at >= since)
            };
            let mut found = false;
            for view in page.runs.iter().filter(is_new) {
                found = true;
                let run = view.stored.run.made.run;
                if settled.contains(&run) || settle(upstream, view, outcome).await.is_ok() {
                    seen.insert(run);
                } else {
                    all = false;
                }
            }
            before = page.next.and_then(|next| next.parse().ok()).map(RunKey);
            // Runs come by when they were made: an old one may have been stopped lately.
            old_pages = if found { 0 } else { old_pages + 1 };
            if before.is_none() || old_pages >= OLD_PAGES_MAX {
                break;
            }
        }
    }
    *settled = seen;
    Ok(all)
}

/// Stops the workflow of a run, if it still runs.
async fn settle(upstream: &Upstream, view: &RunView, outcome: Outcome) -> Result<(), Code> {
    let (live, body) = (&view.stored.run, &view.body);
    let known = known::find(upstream, live, body).await.map_err(|status| status.code())?;
    // Who resets a workflow wants it to go on.
    let Some(known) = known.filter(|known| known.is_running && !known.was_reset) else { return Ok(()) };
    let execution = WorkflowExecution { workflow_id: body.name.to_string(), run_id: known.first_run };
    tracing::info!(workflow = execution.workflow_id, ?outcome, "a workflow that was left behind is stopped");
    let stop = Stop { namespace: &body.namespace, identity: request::identity(body), execution: &execution };
    if outcome == Outcome::Terminated {
        return terminate(upstream, stop).await.then_some(()).ok_or(Code::Unavailable);
    }
    match cancel(upstream, stop, format!("cancel-{}", request::id(live, body))).await {
        Ok(()) | Err(Code::NotFound) => Ok(()),
        Err(code) => Err(code),
    }
}
