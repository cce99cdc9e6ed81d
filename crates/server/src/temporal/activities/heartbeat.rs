//! A worker says that it lives, and is told whether to stop.

use std::time::Duration;

use punctual_engine::{Directive, Pulse};

use super::super::refusal::Refusal;
use super::super::wire::common::Payloads;
use super::super::wire::service as wire;
use super::report::{fail, keep, names, over, too_large};
use super::token::{Attempt, Names, of_run};
use crate::app::App;

pub(in crate::temporal) async fn heartbeat(
    app: &App,
    asked: wire::RecordActivityTaskHeartbeatRequest,
) -> Result<wire::RecordActivityTaskHeartbeatResponse, Refusal> {
    let attempt = Attempt::of_token(&asked.namespace, &asked.task_token)?;
    let cancel_requested = beat(app, attempt, asked.details).await?;
    Ok(wire::RecordActivityTaskHeartbeatResponse { cancel_requested, ..Default::default() })
}

pub(in crate::temporal) async fn heartbeat_by_id(
    app: &App,
    asked: wire::RecordActivityTaskHeartbeatByIdRequest,
) -> Result<wire::RecordActivityTaskHeartbeatByIdResponse, Refusal> {
    let attempt = Attempt::of_names(app, names!(asked)).await?;
    let cancel_requested = beat(app, attempt, asked.details).await?;
    Ok(wire::RecordActivityTaskHeartbeatByIdResponse { cancel_requested, ..Default::default() })
}

/// A worker process says that it lives, whatever it does. No run depends on it: an attempt lives by its own heartbeats.
pub(in crate::temporal) async fn worker_heartbeat(
    _app: &App,
    _asked: wire::RecordWorkerHeartbeatRequest,
) -> Result<wire::RecordWorkerHeartbeatResponse, Refusal> {
    Ok(wire::RecordWorkerHeartbeatResponse {})
}

/// Takes note of a heartbeat; true if the attempt should stop.
async fn beat(app: &App, attempt: Attempt, details: Option<Payloads>) -> Result<bool, Refusal> {
    let progress = match keep(details) {
        Ok(progress) => progress,
        Err(large) => {
            fail(app, attempt, too_large("details of a heartbeat", large)).await?;
            return Ok(true);
        }
    };
    let Attempt { namespace, worker, run, attempt } = attempt;
    let pulse = Pulse { run, attempt, progress, log: String::new() };
    let heard = app.engine.heartbeat(&namespace, &worker, vec![pulse], Duration::ZERO).await;
    match heard.map_err(of_run)?.first().map(|answer| answer.directive) {
        Some(Directive::GoOn { .. }) => Ok(false),
        Some(Directive::Cancel { .. }) => Ok(true),
        Some(Directive::Gone) | None => Err(over(run, attempt)),
    }
}
