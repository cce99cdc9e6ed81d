//! Waits for the end of a workflow by its history, run after run of it.

use std::time::Duration;

use prost::Message;
use punctual_core::{Failure as RunFailure, Payload as Kept};
use tonic::Code;

use super::super::activities::failure;
use super::super::payloads;
use super::super::wire::common::{Payload, Payloads, WorkflowExecution};
use super::super::wire::failure::failure::FailureInfo;
use super::super::wire::failure::{ApplicationFailureInfo, Failure};
use super::super::wire::history::history_event::Attributes;
use super::super::wire::{enums, service};
use super::Upstream;
use super::follow::is_passing;
use crate::limits::PAYLOAD_BYTES_MAX;

/// How long one look at a history may take: clusters answer a long poll after 20 s.
const LOOK_MAX: Duration = Duration::from_secs(40);

/// The wait after a look that failed.
const WAIT: Duration = Duration::from_secs(1);

/// What a failure of the cluster is kept as.
const FAILURE_TYPE: &[u8] = b"temporal.api.failure.v1.Failure";

/// How a workflow ended.
pub(super) enum Ending {
    Completed(Option<Kept>),
    Failed(RunFailure),
    Cancelled,
    Terminated,
}

/// Waits until the workflow has ended: a run that was continued as new or tried again goes on as the next one.
pub(super) async fn wait(upstream: &Upstream, namespace: &str, mut execution: WorkflowExecution) -> Ending {
    let mut page = Vec::new();
    loop {
        let asked = service::GetWorkflowExecutionHistoryRequest {
            namespace: namespace.into(),
            execution: Some(execution.clone()),
            next_page_token: page.clone(),
            wait_new_event: true,
            history_event_filter_type: enums::HistoryEventFilterType::CloseEvent.into(),
            skip_archival: true,
            ..Default::default()
        };
        // Never closed, so that there is a turn for everybody.
        let turn = upstream.followed.polls.acquire().await;
        let mut client = upstream.service();
        let looked = tokio::time::timeout(LOOK_MAX, client.get_workflow_execution_history(asked)).await;
        drop(turn);
        match looked {
            Ok(Ok(answer)) => {
                let answer = answer.into_inner();
                let last = answer.history.and_then(|history| history.events.into_iter().next_back());
                match last.and_then(|event| event.attributes).map(read) {
                    Some(Step::Next(run)) => (execution.run_id, page) = (run, Vec::new()),
                    Some(Step::End(ending)) => return ending,
                    Some(Step::GoesOn) | None => page = answer.next_page_token,
                }
            }
            Ok(Err(status)) if status.code() == Code::NotFound => {
                let message =
                    format!("the cluster does not know this workflow any more: {}", status.message());
                return Ending::Failed(RunFailure {
                    retryable: false,
                    ..RunFailure::new("workflow_lost", &message)
                });
            }
            Ok(Err(status)) => {
                if !is_passing(status.code()) {
                    tracing::warn!(workflow = execution.workflow_id, %status, "the end of a workflow cannot be asked for");
                }
                // A page belongs to a cluster that may be another one after its restart.
                page = Vec::new();
                tokio::time::sleep(WAIT).await;
            }
            Err(_) => page = Vec::new(),
        }
    }
}

enum Step {
    GoesOn,
    /// Another run of the same workflow follows.
    Next(String),
    End(Ending),
}

fn read(attributes: Attributes) -> Step {
    let next = |run: String| Some(run).filter(|run| !run.is_empty()).map(Step::Next);
    match attributes {
        Attributes::WorkflowExecutionContinuedAsNewEventAttributes(event) => {
            next(event.new_execution_run_id).unwrap_or(Step::GoesOn)
        }
        Attributes::WorkflowExecutionCompletedEventAttributes(event) => {
            let kept = event.result.map(|result| payloads::keep(&result)).filter(|kept| !kept.is_empty());
            let kept = kept.filter(|kept| {
                // The workflow has succeeded all the same; the next one is told nothing of it.
                let fits = kept.len() <= PAYLOAD_BYTES_MAX;
                if !fits {
                    tracing::warn!(bytes = kept.len(), "the result of a workflow is too large to be kept");
                }
                fits
            });
            next(event.new_execution_run_id).unwrap_or(Step::End(Ending::Completed(kept)))
        }
        Attributes::WorkflowExecutionFailedEventAttributes(event) => next(event.new_execution_run_id)
            .unwrap_or_else(|| Step::End(Ending::Failed(keep(event.failure.unwrap_or_default())))),
        Attributes::WorkflowExecutionTimedOutEventAttributes(event) => {
            let failure = RunFailure::new("timeout", "the workflow did not end in time");
            let failure = RunFailure { retryable: false, ..failure };
            next(event.new_execution_run_id).unwrap_or(Step::End(Ending::Failed(failure)))
        }
        Attributes::WorkflowExecutionCanceledEventAttributes(_) => Step::End(Ending::Cancelled),
        Attributes::WorkflowExecutionTerminatedEventAttributes(_) => Step::End(Ending::Terminated),
        _ => Step::GoesOn,
    }
}

/// A failure as it is kept: words for people, and all of it for the next workflow.
fn keep(given: Failure) -> RunFailure {
    let bytes = given.encode_to_vec();
    let (mut kept, _) = failure::read(given);
    // The cluster has made the attempts that the workflow's policy allows.
    kept.retryable = false;
    if bytes.len() < PAYLOAD_BYTES_MAX / 2 {
        let metadata = [
            ("encoding".to_owned(), b"binary/protobuf".to_vec()),
            ("messageType".to_owned(), FAILURE_TYPE.to_vec()),
        ];
        let whole = Payload { metadata: metadata.into(), data: bytes.into(), ..Payload::default() };
        kept.details = Some(payloads::keep(&Payloads { payloads: vec![whole] }));
    }
    kept
}

/// The failure that a workflow is told about: as the cluster said it, or in its words.
pub(super) fn told(kept: &RunFailure) -> Failure {
    let whole = kept.details.as_deref().map(payloads::read).unwrap_or_default().payloads;
    let whole = whole
        .first()
        .filter(|payload| payload.metadata.get("messageType").is_some_and(|is| is == FAILURE_TYPE));
    whole.and_then(|payload| Failure::decode(&*payload.data).ok()).unwrap_or_else(|| Failure {
        message: kept.message.to_string(),
        failure_info: Some(FailureInfo::ApplicationFailureInfo(ApplicationFailureInfo {
            r#type: kept.kind.to_string(),
            ..ApplicationFailureInfo::default()
        })),
        ..Failure::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_comes_back_as_the_cluster_said_it() {
        let cause = Failure { message: "the disk".into(), ..Failure::default() };
        let failure = Failure { message: "oops".into(), cause: Some(Box::new(cause)), ..Failure::default() };
        let kept = keep(failure.clone());
        assert_eq!((&*kept.message, kept.retryable), ("oops; caused by: the disk", false));
        assert_eq!(told(&kept), failure);
        assert_eq!(told(&RunFailure::new("invalid_start", "no")).message, "no");
    }
}
