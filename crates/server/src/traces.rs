//! Traces for an OpenTelemetry collector: one for each run, from its occurrence, or from when it was put on its queue, to its end.
//!
//! The spans are made from what is kept of a run when it has ended, so nothing on the way of a start waits for a collector,
//! and nothing is lost that was durable. OTLP over HTTP as JSON is small enough to be written here; what a collector does
//! not take in time is dropped and counted in the log.

mod plain;

use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use jiff::Timestamp;
use punctual_core::{Note, Outcome};
use punctual_engine::{Happened, RunView};
use punctual_store::{LiveState, RunKey};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::app::App;
pub(crate) use plain::PlainNews;
use plain::PlainRuns;

/// Runs that are sent together.
const RUNS_MAX: usize = 500;

/// Runs that wait to be sent; beyond it they are dropped.
const WAITING_MAX: usize = 10_000;

/// How long spans wait for others.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a collector may take.
const SEND_TIME_MAX: Duration = Duration::from_secs(10);

/// The name of a start for all time: the same for every attempt, and for no other start.
pub(crate) fn start_uuid(view: &RunParts<'_>) -> Uuid {
    let (made, namespace, schedule) = (view.made, view.namespace, view.schedule);
    let name = match made.origin {
        Some((tree, start)) => format!("{namespace:?}/{schedule:?}/{tree}/{start}"),
        None => format!("{namespace:?}/run/{}/{}", made.run, made.created_at),
    };
    Uuid::new_v5(&Uuid::nil(), name.as_bytes())
}

/// What the name of a start is made of.
pub(crate) struct RunParts<'a> {
    pub(crate) made: &'a punctual_store::NewRun,
    pub(crate) namespace: &'a str,
    pub(crate) schedule: &'a str,
}

/// What a called server needs to join the trace of its run.
pub(crate) fn traceparent(start: Uuid) -> String {
    format!("00-{}-{}-01", start.simple(), span_id(start, "occurrence"))
}

fn span_id(start: Uuid, part: &str) -> String {
    let bytes = Uuid::new_v5(&start, part.as_bytes()).into_bytes();
    bytes[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// News of runs without a schedule that may wait to be heard; beyond it their traces are dropped.
pub(crate) const NEWS_MAX: usize = 10_000;

/// Sends traces until the server stops.
pub(crate) fn start(app: &Arc<App>, endpoint: String, mut news: mpsc::Receiver<PlainNews>) -> JoinHandle<()> {
    let app = app.clone();
    tokio::spawn(async move {
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let client: Client<HttpConnector, Full<axum::body::Bytes>> =
            Client::builder(TokioExecutor::new()).build_http();
        let (mut events, mut waiting, mut dropped) = (app.engine.watch(), Vec::new(), 0_u64);
        let mut plain = PlainRuns::default();
        let mut pause = tokio::time::interval(PAUSE);
        loop {
            let full = waiting.len() >= RUNS_MAX;
            tokio::select! {
                event = events.recv(), if !full => match event {
                    Ok(Happened { note: Note::RunCompleted { .. }, run: Some(run), .. }) => waiting.push(run),
                    Ok(_) => {}
                    Err(RecvError::Lagged(missed)) => dropped += missed,
                    Err(RecvError::Closed) => return,
                },
                Some(news) = news.recv(), if !full => waiting.extend(plain.hear(news)),
                _ = pause.tick() => {
                    waiting.extend(look(&app, &mut plain).await);
                    dropped += send(&app, &client, &url, &mut waiting).await;
                    if dropped > 0 {
                        tracing::warn!(dropped, "traces were dropped: the collector is too slow or away");
                        dropped = 0;
                    }
                }
                () = app.stop() => {
                    while let Ok(news) = news.try_recv() {
                        waiting.extend(plain.hear(news));
                    }
                    send(&app, &client, &url, &mut waiting).await;
                    return;
                }
            }
            if full {
                dropped += send(&app, &client, &url, &mut waiting).await;
            }
        }
    })
}

/// Runs without a schedule that have ended, of those whose turn it is.
async fn look(app: &App, plain: &mut PlainRuns) -> Vec<RunKey> {
    let turn = plain.turn();
    if turn.is_empty() {
        return turn;
    }
    // Without an answer they have another turn.
    let found = app.engine.runs_by_key(turn.clone()).await;
    found.map(|found| plain.looked_at(&turn, &found)).unwrap_or_default()
}

/// Sends what waits; what cannot be sent waits on, up to a bound. Says how many were dropped.
async fn send(
    app: &App,
    client: &Client<HttpConnector, Full<axum::body::Bytes>>,
    url: &str,
    waiting: &mut Vec<RunKey>,
) -> u64 {
    while !waiting.is_empty() {
        let count = waiting.len().min(RUNS_MAX);
        let Ok(runs) = app.engine.runs_by_key(waiting[..count].to_vec()).await else { break };
        let spans: Vec<Value> = runs.iter().flat_map(spans).collect();
        let body = document(&app.node, &spans).to_string();
        let request = axum::http::Request::post(url)
            .header("content-type", "application/json")
            .body(Full::new(axum::body::Bytes::from(body)));
        let Ok(request) = request else { return waiting.drain(..).count() as u64 };
        match tokio::time::timeout(SEND_TIME_MAX, client.request(request)).await {
            Ok(Ok(answer)) if answer.status().is_success() => {}
            // Another try would fail in the same way.
            Ok(Ok(answer)) if answer.status().is_client_error() => {
                tracing::warn!(status = %answer.status(), "the collector refuses traces");
            }
            _ => break,
        }
        waiting.drain(..count);
    }
    let surplus = waiting.len().saturating_sub(WAITING_MAX);
    waiting.drain(..surplus).count() as u64
}

fn document(node: &str, spans: &[Value]) -> Value {
    let resource = [attribute("service.name", "punctual"), attribute("service.instance.id", node)];
    let scope = json!({ "name": "punctual", "version": env!("CARGO_PKG_VERSION") });
    json!({ "resourceSpans": [{
        "resource": { "attributes": resource },
        "scopeSpans": [{ "scope": scope, "spans": spans }],
    }] })
}

/// The whole, and its parts: late, waiting for a worker, at work.
fn spans(view: &RunView) -> Vec<Value> {
    let (run, body) = (&view.stored.run, &view.body);
    let Some(closing) = &view.stored.closing else { return Vec::new() };
    let parts = RunParts { made: &run.made, namespace: &body.namespace, schedule: &body.schedule };
    let start = start_uuid(&parts);
    let trace = start.simple().to_string();
    // A run that nobody scheduled has no occurrence.
    let is_scheduled = run.made.origin.is_some();
    let name = if is_scheduled { "occurrence" } else { "run" };
    let root = span_id(start, name);
    let failed = !matches!(closing.outcome, Outcome::Succeeded);
    let outcome = format!("{:?}", closing.outcome).to_lowercase();
    let mut attributes = vec![
        attribute("punctual.namespace", &body.namespace),
        attribute("punctual.run_id", &run.made.run.to_string()),
        attribute("punctual.queue", &body.action.queue),
        attribute("punctual.handler", &body.action.handler),
        attribute("punctual.outcome", &outcome),
        attribute("punctual.attempts", &run.attempt.to_string()),
    ];
    if let Some((_, start)) = run.made.origin {
        attributes.push(attribute("punctual.schedule_id", &body.schedule));
        attributes.push(attribute("punctual.nominal_time", &start.nominal_time().to_string()));
    }
    let span = |part: &str, parent: Option<&str>, from: Timestamp, through: Timestamp, failed: bool| {
        let mut span = json!({
            "traceId": trace,
            "spanId": span_id(start, part),
            "name": part,
            "kind": 1,
            "startTimeUnixNano": from.as_nanosecond().to_string(),
            "endTimeUnixNano": through.max(from).as_nanosecond().to_string(),
            "status": { "code": if failed { 2 } else { 1 } },
        });
        if let Some(parent) = parent {
            span["parentSpanId"] = parent.into();
        }
        span
    };
    let mut whole = span(name, None, run.made.due_time, closing.closed_at, failed);
    whole["attributes"] = attributes.into();
    let mut spans = vec![whole];
    if is_scheduled {
        spans.push(span("start", Some(&root), run.made.due_time, run.made.created_at, false));
    }
    if let LiveState::Running { started_at, worker } = &run.state {
        // One that was put on its queue for later waits from then.
        let ready_at = run.made.created_at.max(run.made.due_time);
        spans.push(span("wait", Some(&root), ready_at, *started_at, false));
        let mut attempt = span("attempt", Some(&root), *started_at, closing.closed_at, failed);
        attempt["attributes"] = json!([attribute("punctual.worker_id", worker)]);
        spans.push(attempt);
    }
    spans
}

fn attribute(name: &str, value: &str) -> Value {
    json!({ "key": name, "value": { "stringValue": value } })
}
