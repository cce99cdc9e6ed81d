//! Starts at the cluster behind this server: runs of the queue `punctual.workflows`, taken like any worker's and held until
//! their workflows end.
//!
//! A start is a run, so it is durable before the cluster hears of it. A node that dies is taken over after its lease; whoever
//! takes over looks whether the cluster has the workflow, and else asks for the start again with the same request id.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use punctual_engine::{Claimed, Directive, Pulse};
use punctual_store::RunKey;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::follow::follow;
use super::left;
use crate::app::App;
use crate::convert::action::WORKFLOWS_QUEUE;

/// How long one claim waits.
const WAIT: Duration = Duration::from_secs(20);

/// Starts that one claim takes.
const CLAIM_MAX: usize = 100;

/// The pause between two beats, so that a workflow that takes its time to stop is not asked about without end.
const PAUSE: Duration = Duration::from_millis(200);

/// Runs that one beat names.
const RUNS_MAX: usize = 1_000;

/// Workflows that are asked about at a time: clusters bound the long polls of a namespace. The others wait for their turn.
const POLLS_MAX: usize = 400;

/// What somebody wants of a start that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wish {
    /// Nothing: go on.
    GoOn,
    /// End it soon.
    Cancel,
    /// It is over here, or somebody else's.
    Gone,
}

/// The attempt of each run that is followed, and where it hears of wishes.
type Runs = BTreeMap<(Arc<str>, RunKey), (u32, watch::Sender<Wish>)>;

/// The starts that this node follows.
pub(crate) struct Followed {
    runs: Mutex<Runs>,
    pub(super) polls: Semaphore,
}

impl Default for Followed {
    fn default() -> Followed {
        Followed { runs: Mutex::default(), polls: Semaphore::new(POLLS_MAX) }
    }
}

impl Followed {
    /// Whether somebody here follows a run.
    pub(super) fn has(&self, namespace: &Arc<str>, run: RunKey) -> bool {
        self.runs().contains_key(&(namespace.clone(), run))
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who this node is, among workers.
pub(super) fn worker(app: &App) -> String {
    format!("punctual.workflows.{}", app.node)
}

/// Takes starts and follows them until the server stops.
pub(crate) fn start(app: &Arc<App>) -> JoinHandle<()> {
    let app = app.clone();
    tokio::spawn(async move {
        let mut served = BTreeMap::new();
        let mut helpers = JoinSet::new();
        helpers.spawn(left::hear(app.clone()));
        loop {
            let queues = tokio::select! {
                queues = app.engine.queues_named(WORKFLOWS_QUEUE, served.len()) => queues,
                () = app.stop() => break,
            };
            for queue in queues {
                let namespace = queue.made.namespace.clone();
                if served.insert(namespace.clone(), ()).is_none() {
                    helpers.spawn(serve(app.clone(), namespace.clone()));
                    helpers.spawn(beat(app.clone(), namespace.clone()));
                    helpers.spawn(left::look_after(app.clone(), namespace));
                }
            }
        }
        while helpers.join_next().await.is_some() {}
    })
}

/// Takes the starts of one namespace. What is followed waits elsewhere, so that their number needs no bound of its own.
async fn serve(app: Arc<App>, namespace: Arc<str>) {
    let mut followed = JoinSet::new();
    while !app.is_stopping() {
        let worker = worker(&app);
        let claim = app.engine.claim(&namespace, WORKFLOWS_QUEUE, &worker, CLAIM_MAX, WAIT, None);
        let claimed = tokio::select! {
            claimed = claim => claimed,
            () = app.stop() => break,
        };
        match claimed {
            Ok(claimed) => claimed.into_iter().for_each(|claimed| {
                followed.spawn(hold(app.clone(), namespace.clone(), claimed));
            }),
            Err(error) => {
                tracing::warn!(%namespace, %error, "starts at the cluster have to wait");
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_secs(1)) => {}
                    () = app.stop() => {}
                }
            }
        }
        while followed.try_join_next().is_some() {}
    }
    while followed.join_next().await.is_some() {}
}

/// Follows one start, and gives it back if the server stops before it has ended.
async fn hold(app: Arc<App>, namespace: Arc<str>, claimed: Claimed) {
    // Who takes over a run that was asked to stop hears of that at once.
    let wish = if claimed.live.stop.is_some() { Wish::Cancel } else { Wish::GoOn };
    let (tell, told) = watch::channel(wish);
    let (place, attempt) = ((namespace, claimed.live.made.run), claimed.live.attempt);
    let Some(upstream) = &app.upstream else { return };
    upstream.followed.runs().insert(place.clone(), (attempt, tell));
    let ended = tokio::select! {
        () = follow(&app, upstream, &claimed, told) => true,
        () = app.stop() => false,
    };
    {
        let mut runs = upstream.followed.runs();
        // The next attempt may be here already, if this one was given up.
        if runs.get(&place).is_some_and(|(of, _)| *of == attempt) {
            runs.remove(&place);
        }
    }
    if !ended {
        app.engine.give_back(vec![claimed]);
    }
}

/// Keeps the leases of the starts of one namespace, and tells those that somebody wants stopped.
async fn beat(app: Arc<App>, namespace: Arc<str>) {
    let Some(upstream) = &app.upstream else { return };
    let wait = app.engine.config().worker_lease.unsigned_abs() / 4;
    let worker = worker(&app);
    loop {
        let followed: Vec<(RunKey, u32)> = {
            let runs = upstream.followed.runs();
            let ours = runs.iter().filter(|((of, _), _)| *of == namespace);
            ours.map(|((_, run), (attempt, _))| (*run, *attempt)).collect()
        };
        for runs in followed.chunks(RUNS_MAX) {
            let silent = |(run, attempt): &(RunKey, u32)| Pulse {
                run: *run,
                attempt: *attempt,
                progress: None,
                log: String::new(),
            };
            // One group may wait for news; several take turns. New starts are heard of within a short while.
            let wait =
                if followed.len() > RUNS_MAX { Duration::ZERO } else { wait.min(Duration::from_secs(2)) };
            let beat = app.engine.heartbeat(&namespace, &worker, runs.iter().map(silent).collect(), wait);
            let answers = tokio::select! {
                answers = beat => answers.unwrap_or_default(),
                () = app.stop() => return,
            };
            let followed = upstream.followed.runs();
            for (answer, (_, attempt)) in answers.iter().zip(runs) {
                let wish = match answer.directive {
                    Directive::GoOn { .. } => continue,
                    Directive::Cancel { .. } => Wish::Cancel,
                    Directive::Gone => Wish::Gone,
                };
                if let Some((of, tell)) = followed.get(&(namespace.clone(), answer.run))
                    && of == attempt
                {
                    tell.send_if_modified(|told| std::mem::replace(told, wish.max(*told)) != *told);
                }
            }
        }
        let pause = if followed.is_empty() { wait.min(Duration::from_secs(1)) } else { PAUSE };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = app.stop() => return,
        }
    }
}
