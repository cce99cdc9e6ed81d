//! Tells the cluster to end a workflow, for as long as it takes.

use std::time::Duration;

use tonic::{Code, Status};

use super::super::wire::common::WorkflowExecution;
use super::super::wire::service;
use super::Upstream;

/// The waits between two tries of anything.
pub(super) const WAIT_FIRST: Duration = Duration::from_millis(500);
pub(super) const WAIT_MAX: Duration = Duration::from_secs(30);

/// How often the cluster is told to terminate a workflow; what it has not heard by then is found again by the look at what
/// was left behind.
const TERMINATES_MAX: u32 = 8;

/// Why, in the words of the cluster's own scheduler.
const REASON: &str = "schedule overlap policy";

/// Who asks for an end, and of which workflow.
pub(super) struct Stop<'a> {
    pub(super) namespace: &'a str,
    pub(super) identity: String,
    /// The run that the workflow began with, if it is known: it may have gone on as another one since.
    pub(super) execution: &'a WorkflowExecution,
}

/// Asks a workflow to end. The same request id makes one wish of many.
pub(super) async fn cancel(upstream: &Upstream, stop: Stop<'_>, request_id: String) -> Result<(), Code> {
    let asked = service::RequestCancelWorkflowExecutionRequest {
        namespace: stop.namespace.into(),
        workflow_execution: Some(current(stop.execution)),
        identity: stop.identity,
        request_id,
        first_execution_run_id: stop.execution.run_id.clone(),
        reason: REASON.into(),
        ..Default::default()
    };
    let mut wait = WAIT_FIRST;
    loop {
        match upstream
            .shortly(upstream.service(stop.namespace).request_cancel_workflow_execution(asked.clone()))
            .await
        {
            Ok(_) => return Ok(()),
            Err(status) if is_passing(status.code()) => wait = pause(stop.execution, &status, wait).await,
            Err(status) => return Err(status.code()),
        }
    }
}

/// Ends a workflow. One that has ended, or that the cluster does not know, is left as it is. False if the cluster was not
/// told.
pub(super) async fn terminate(upstream: &Upstream, stop: Stop<'_>) -> bool {
    let asked = service::TerminateWorkflowExecutionRequest {
        namespace: stop.namespace.into(),
        workflow_execution: Some(current(stop.execution)),
        reason: REASON.into(),
        identity: stop.identity,
        first_execution_run_id: stop.execution.run_id.clone(),
        ..Default::default()
    };
    let mut wait = WAIT_FIRST;
    for _ in 0..TERMINATES_MAX {
        match upstream
            .shortly(upstream.service(stop.namespace).terminate_workflow_execution(asked.clone()))
            .await
        {
            Err(status) if is_passing(status.code()) => wait = pause(stop.execution, &status, wait).await,
            Ok(_) | Err(_) => return true,
        }
    }
    false
}

fn current(execution: &WorkflowExecution) -> WorkflowExecution {
    WorkflowExecution { run_id: String::new(), ..execution.clone() }
}

async fn pause(execution: &WorkflowExecution, status: &Status, wait: Duration) -> Duration {
    tracing::warn!(workflow = execution.workflow_id, %status, "the end of a workflow has to wait");
    tokio::time::sleep(wait).await;
    (wait * 2).min(WAIT_MAX)
}

/// Whether the same request may succeed later.
pub(super) fn is_passing(code: Code) -> bool {
    use Code::{Aborted, Cancelled, DeadlineExceeded, Internal, ResourceExhausted, Unavailable, Unknown};
    matches!(
        code,
        Aborted | Cancelled | DeadlineExceeded | Internal | ResourceExhausted | Unavailable | Unknown
    )
}
