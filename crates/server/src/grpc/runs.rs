//! The verbs of runs.

use punctual_api::v1;
use punctual_core::StopKind;
use punctual_engine::RunSearch;

use super::queues::addressed;
use crate::app::{App, namespace};
use crate::convert::action::is_served_here;
use crate::convert::page::{self, List};
use crate::convert::queue::order;
use crate::convert::run::{described, filter, listed, log_lines, run_key};
use crate::status::Fault;
use crate::traces::PlainNews;

pub(crate) async fn list(app: &App, asked: v1::ListRunsRequest) -> Result<v1::ListRunsResponse, Fault> {
    let given = |text: &str| (!text.is_empty()).then(|| text.into());
    let before = page::place(List::Runs, &asked.page_token)?;
    let before =
        before.map(|place| run_key("", &place).map_err(|_| page::invalid(&asked.page_token))).transpose()?;
    let search = RunSearch {
        schedule: given(&asked.schedule_id),
        queue: given(&asked.queue),
        filter: filter(asked.state, asked.outcome, asked.dead_letters)?,
        before,
        count: page::size(asked.page_size)?,
    };
    let found = app.engine.list_runs(namespace(&asked.namespace), search).await?;
    Ok(v1::ListRunsResponse {
        runs: found.runs.iter().map(listed).collect(),
        next_page_token: found.next.map(|next| page::token(List::Runs, &next)).unwrap_or_default(),
    })
}

pub(crate) async fn describe(
    app: &App,
    asked: v1::DescribeRunRequest,
) -> Result<v1::DescribeRunResponse, Fault> {
    let (namespace, run) = (namespace(&asked.namespace), run_key("run_id", &asked.run_id)?);
    let view = app.engine.run(namespace, run).await?;
    let details = app.engine.run_details(namespace, run).await?;
    Ok(v1::DescribeRunResponse { run: Some(described(&view, &details)) })
}

pub(crate) async fn enqueue(app: &App, asked: v1::EnqueueRequest) -> Result<v1::EnqueueResponse, Fault> {
    if is_served_here(&asked.queue) {
        return Err(Fault::field("queue", format!("{} is for calls of schedules", asked.queue)));
    }
    let now = app.engine.now();
    let orders = asked
        .runs
        .into_iter()
        .enumerate()
        .map(|(place, run)| order(run, now).map_err(|fault| fault.within(&format!("runs[{place}]"))));
    let orders = orders.collect::<Result<Vec<_>, _>>()?;
    let most = app.engine.config().limits.id_bytes_max;
    if asked.request_id.len() > most {
        let message = format!("has {} bytes, at most {most} are allowed", asked.request_id.len());
        return Err(Fault::field("request_id", message));
    }
    let request = (!asked.request_id.is_empty()).then(|| asked.request_id.as_str().into());
    let made = app.engine.enqueue(namespace(&asked.namespace), &asked.queue, orders, request).await;
    let made = made.map_err(addressed)?;
    app.tell_traces(made.iter().map(|made| PlainNews::Open(made.run)));
    let runs =
        made.into_iter().map(|run| v1::EnqueuedRun { run_id: run.run.to_string(), existing: run.existing });
    Ok(v1::EnqueueResponse { runs: runs.collect() })
}

pub(crate) async fn retry(app: &App, asked: v1::RetryRunRequest) -> Result<v1::RetryRunResponse, Fault> {
    let run = run_key("run_id", &asked.run_id)?;
    let made = app.engine.retry_run(namespace(&asked.namespace), run).await?;
    Ok(v1::RetryRunResponse { run_id: made.to_string() })
}

pub(crate) async fn cancel(app: &App, asked: v1::CancelRunRequest) -> Result<v1::StopRunResponse, Fault> {
    stop(app, &asked.namespace, &asked.run_id, StopKind::Cancel).await
}

pub(crate) async fn terminate(
    app: &App,
    asked: v1::TerminateRunRequest,
) -> Result<v1::StopRunResponse, Fault> {
    stop(app, &asked.namespace, &asked.run_id, StopKind::Terminate).await
}

async fn stop(app: &App, given: &str, run: &str, kind: StopKind) -> Result<v1::StopRunResponse, Fault> {
    let (namespace, run) = (namespace(given), run_key("run_id", run)?);
    app.engine.stop_run(namespace, run, kind).await?;
    let now = listed(&app.engine.run(namespace, run).await?);
    Ok(v1::StopRunResponse { state: now.state, outcome: now.outcome })
}

pub(crate) async fn logs(app: &App, asked: v1::RunLogsRequest) -> Result<v1::RunLogsResponse, Fault> {
    let run = run_key("run_id", &asked.run_id)?;
    let details = app.engine.run_details(namespace(&asked.namespace), run).await?;
    let mut lines = details.log_tail.as_deref().map(log_lines).unwrap_or_default();
    let most = if asked.lines_max == 0 { usize::MAX } else { asked.lines_max as usize };
    let surplus = lines.len().saturating_sub(most);
    Ok(v1::RunLogsResponse { lines: lines.split_off(surplus), truncated: surplus > 0 })
}
