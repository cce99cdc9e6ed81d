//! Something to look at: a queue, four schedules, and a worker in this process that does what they ask.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use punctual_api::{json, v1};
use punctual_core::Failure;
use punctual_engine::{AttemptEnd, Claimed, Report};
use tokio::task::JoinHandle;

use crate::app::App;
use crate::grpc::{queues, schedules};
use crate::status::Fault;

const WORKER: &str = "demo-worker";
const QUEUE: &str = "demo";
const NAMESPACE: &str = "default";

/// Runs that the demo's worker does at a time.
const RUNS_MAX: usize = 10;

/// How long one claim waits.
const WAIT: Duration = Duration::from_secs(30);

/// The schedules: something quick, something that overlaps itself, something that fails, something with a zone.
const SCHEDULES: [(&str, &str); 4] = [
    (
        "demo-echo",
        r#"{ "spec": { "intervals": [{ "every": "5s" }] },
             "action": { "queue": { "queue": "demo", "handler": "echo", "input": { "json": { "hello": "world" } } } } }"#,
    ),
    (
        "demo-slow",
        r#"{ "spec": { "intervals": [{ "every": "10s" }] },
             "action": { "queue": { "queue": "demo", "handler": "sleep", "input": { "json": { "seconds": 14 } } } },
             "policies": { "overlap": "buffer_one" } }"#,
    ),
    (
        "demo-flaky",
        r#"{ "spec": { "intervals": [{ "every": "15s" }], "jitter": "3s" },
             "action": { "queue": { "queue": "demo", "handler": "flaky", "retry": { "attempts_max": 2 } } },
             "policies": { "overlap": "allow_all" } }"#,
    ),
    (
        "demo-report",
        r#"{ "spec": { "crons": [{ "text": "0 9 * * MON-FRI" }], "zone": "Europe/Berlin" },
             "action": { "queue": { "queue": "demo", "handler": "echo" } },
             "policies": { "catchup_window": "3600s" } }"#,
    ),
];

/// Makes what is not there yet, and starts the worker. What fails is told in the log: the server works without a demo.
pub(crate) async fn start(app: &Arc<App>) -> JoinHandle<()> {
    if let Err(fault) = declare(app).await {
        tracing::warn!(reason = fault.reason.word, message = fault.message, "the demo is not complete");
    }
    tokio::spawn(work(app.clone()))
}

async fn declare(app: &App) -> Result<(), Fault> {
    let queue = Some(v1::Queue { queue: QUEUE.into(), ..v1::Queue::default() });
    queues::create(app, v1::CreateQueueRequest { queue, ..v1::CreateQueueRequest::default() }).await?;
    for (id, text) in SCHEDULES {
        let asked = v1::CreateScheduleRequest {
            namespace: NAMESPACE.into(),
            schedule_id: id.into(),
            request_id: format!("demo-{id}"),
            schedule: Some(json::from_json(text.as_bytes())?),
            initial_patch: None,
        };
        match schedules::create(app, asked).await {
            // It is there from an earlier start, and somebody may have changed it: that is fine.
            Err(fault) if fault.reason.word == "already_exists" => {}
            made => drop(made?),
        }
    }
    Ok(())
}

async fn work(app: Arc<App>) {
    let mut runs = FuturesUnordered::new();
    loop {
        let room = RUNS_MAX - runs.len();
        tokio::select! {
            claimed = app.engine.claim(NAMESPACE, QUEUE, WORKER, room.max(1), WAIT, None), if room > 0 => match claimed {
                Ok(claimed) => runs.extend(claimed.into_iter().map(|claimed| perform(&app, claimed))),
                Err(error) => {
                    tracing::debug!(%error, "the demo's worker has to wait");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            },
            Some(()) = runs.next() => {}
            // What is in progress is taken over after the restart.
            () = app.stop() => return,
        }
    }
}

async fn perform(app: &App, claimed: Claimed) {
    let (run, attempt) = (claimed.live.made.run, claimed.live.attempt);
    let end = match &*claimed.body.action.handler {
        "echo" => AttemptEnd::Succeeded(Some(claimed.body.action.input.clone())),
        "sleep" => {
            tokio::time::sleep(Duration::from_secs(14)).await;
            AttemptEnd::Succeeded(None)
        }
        "flaky" if run.0 % 3 != 0 => AttemptEnd::Succeeded(None),
        "flaky" if run.0 % 2 == 0 && attempt > 1 => AttemptEnd::Succeeded(None),
        "flaky" => failed("flaky", "this one was not meant to be"),
        "fail" => failed("always", "this handler always fails"),
        other => {
            AttemptEnd::Failed(Failure { retryable: false, ..Failure::new("unknown_handler", other) }, None)
        }
    };
    let (namespace, worker) = (NAMESPACE.into(), WORKER.into());
    if let Err(error) = app.engine.report(Report { namespace, worker, run, attempt, end }).await {
        tracing::debug!(%run, %error, "a report of the demo was not recorded");
    }
}

fn failed(kind: &str, message: &str) -> AttemptEnd {
    AttemptEnd::Failed(Failure::new(kind, message), None)
}
