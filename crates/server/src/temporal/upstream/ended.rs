//! Where the cluster says that a workflow is over: `POST /temporal/v1/ended`.
//!
//! What came with the word is not believed: how the workflow ended is asked of the cluster, and the answer leaves when that is
//! recorded. Any node may take it, whoever follows the workflow. The cluster tries again after 503, and never after 401 or 404.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use punctual_core::StopKind;
use punctual_engine::{CallbackEnd, Engine, EngineError, Recorded};
use punctual_store::RunKey;

use super::super::wire::common::WorkflowExecution;
use super::callbacks::{PURPOSE, TOKEN_HEADER, Way};
use super::ending::{self, Ending};
use crate::http::Shared;
use crate::limits::{BODY_BYTES_MAX, BODY_TIME_MAX};
use crate::status::{Fault, INVALID_TOKEN, UNAVAILABLE};

/// The run that ended, as part of a path: `temporal:///namespaces/…/workflows/…/{run}/history?…`.
const LINK_HEADER: &str = "nexus-link";

pub(crate) async fn take(app: Shared, headers: HeaderMap, body: Body) -> Response {
    match heard(&app, &headers, body).await {
        Ok(()) => StatusCode::OK.into_response(),
        Err(fault) => fault.into_response(),
    }
}

async fn heard(app: &Shared, headers: &HeaderMap, body: Body) -> Result<(), Fault> {
    let token = text(headers, TOKEN_HEADER);
    // The same words for every token that does not count: whoever guesses learns nothing.
    let claim = app.calls.verify(token, PURPOSE, app.engine.now().as_second());
    let claim = claim.ok_or_else(|| Fault::new(&INVALID_TOKEN, "the callback's token does not count"))?;
    pass_over(body).await;
    let (namespace, run) = (&*claim.namespace, RunKey(claim.run));
    let view = match app.engine.run(namespace, run).await {
        // It ended so long ago that nobody knows it any more.
        Err(EngineError::NotFound(_)) => return Ok(()),
        found => found.map_err(later)?,
    };
    if view.stored.closing.is_some() {
        return Ok(());
    }
    let upstream = app.upstream.as_ref();
    let upstream = upstream.ok_or_else(|| later("there is no Temporal cluster behind this server"))?;
    let mut execution = WorkflowExecution {
        workflow_id: view.body.name.to_string(),
        run_id: run_in(text(headers, LINK_HEADER)),
    };
    // Not known there, or not over: whoever follows the workflow decides about that, from what it knows.
    let ended = ending::look(upstream, namespace, &mut execution).await.map_err(later)?;
    let ended = ended.ok_or_else(|| later("the workflow has not ended yet"))?;
    upstream.callbacks.came(namespace);
    if record(&app.engine, namespace, run, ended.ending).await.map_err(later)? {
        upstream.callbacks.count(Way::Callback);
        return Ok(());
    }
    // Somebody was faster; or the run is between two attempts, and a failure is nobody's then.
    let view = app.engine.run(namespace, run).await.map_err(later)?;
    view.stored.closing.map(drop).ok_or_else(|| later("the run is between two attempts"))
}

/// Ends a run, whoever has it. False if nothing was changed.
async fn record(engine: &Engine, namespace: &str, run: RunKey, ending: Ending) -> Result<bool, EngineError> {
    let end = match ending {
        Ending::Completed(result) => Ok(result),
        Ending::Failed(failure) => Err(CallbackEnd::Failed(failure)),
        Ending::Cancelled => Err(CallbackEnd::Cancelled),
        Ending::Terminated => return engine.stop_run(namespace, run, StopKind::Terminate).await,
    };
    Ok(engine.callback(namespace, run, end).await? == Recorded::Closed)
}

/// Reads a body that nobody needs, so that the connection can be used again.
async fn pass_over(body: Body) {
    let mut parts = body.into_data_stream();
    let read = async {
        let mut bytes = 0;
        while let Some(Ok(part)) = parts.next().await {
            bytes += part.len();
            if bytes > BODY_BYTES_MAX {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(BODY_TIME_MAX, read).await;
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The run that a link is about; nothing means the latest one of the workflow.
fn run_in(link: &str) -> String {
    let run = link.split_once("/history").and_then(|(before, _)| before.rsplit('/').next());
    run.filter(|run| uuid::Uuid::try_parse(run).is_ok()).unwrap_or_default().to_owned()
}

/// The cluster tries again. What the database said is for the log alone.
fn later(reason: impl std::fmt::Display) -> Fault {
    tracing::warn!(%reason, "a callback of the cluster has to come again");
    Fault::new(&UNAVAILABLE, "this cannot be recorded now; try again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_names_the_run() {
        let run = "0199a3c4-2c53-7a7e-8f7b-1d3c5e7a9b1d";
        let link = format!(
            "<temporal:///namespaces/default/workflows/a%2Fb/{run}/history?eventID=1>; type=\"temporal.api\""
        );
        assert_eq!(run_in(&link), run);
        for strange in ["", "nonsense", "</history>", "<temporal:///namespaces/n/workflows/w/r/history>"] {
            assert_eq!(run_in(strange), "", "{strange}");
        }
    }
}
