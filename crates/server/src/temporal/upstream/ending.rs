//! Asks for the end of a workflow by its history, run after run of it: by long polls, or by a look now and then where the
//! cluster promised a callback.

use std::time::Duration;

use jiff::Timestamp;
use prost::Message;
use punctual_core::{Failure as RunFailure, Payload as Kept};
use tonic::{Code, Status};

use super::super::activities::failure;
use super::super::payloads;
use super::super::wire::common::{Payload, Payloads, WorkflowExecution};
use super::super::wire::failure::failure::FailureInfo;
use super::super::wire::failure::{ApplicationFailureInfo, Failure};
use super::super::wire::history::history_event::Attributes;
use super::super::wire::{enums, service};
use super::Upstream;
use super::callbacks::Way;
use super::stop::is_passing;
use crate::limits::{PAYLOAD_BYTES_MAX, UPSTREAM_TIME_MAX};

/// How long one long poll may take: clusters answer after 20 s.
const POLL_MAX: Duration = Duration::from_secs(40);

/// The wait after a long poll that failed.
const WAIT: Duration = Duration::from_secs(1);

/// Runs of one workflow that one look goes along; the next look goes on from there.
const RUNS_MAX: usize = 1_000;

/// What a failure of the cluster is kept as.
const FAILURE_TYPE: &[u8] = b"temporal.api.failure.v1.Failure";

/// How a workflow ended.
pub(super) enum Ending {
    Completed(Option<Kept>),
    Failed(RunFailure),
    Cancelled,
    Terminated,
}

/// The end of a workflow.
pub(super) struct Ended {
    pub(super) ending: Ending,
    /// As the cluster's clock has it.
    pub(super) at: Option<Timestamp>,
}

/// Waits until the workflow has ended: a run that was continued as new or tried again goes on as the next one.
///
/// `pause` is there if a callback was promised, and is the time between two looks: as long as callbacks are relied on, a
/// callback that is lost costs no more than that.
pub(super) async fn wait(
    upstream: &Upstream,
    namespace: &str,
    mut execution: WorkflowExecution,
    pause: Option<Duration>,
) -> (Ended, Way) {
    let mut page = Vec::new();
    loop {
        let pause = pause.filter(|_| upstream.callbacks.are_relied_on(namespace));
        if let Some(pause) = pause {
            page = Vec::new();
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = upstream.callbacks.doubted(namespace) => continue,
            }
        }
        // Never closed, so that there is a turn for everybody.
        let turn = upstream.followed.polls.acquire().await;
        let (seen, way) = match pause {
            Some(_) => (look(upstream, namespace, &mut execution).await, Way::Look),
            None => (poll(upstream, namespace, &mut execution, &mut page).await, Way::Poll),
        };
        drop(turn);
        match seen {
            Ok(Some(ended)) => return (ended, way),
            Ok(None) => {}
            Err(status) if status.code() == Code::NotFound => {
                let message =
                    format!("the cluster does not know this workflow any more: {}", status.message());
                let failure = RunFailure { retryable: false, ..RunFailure::new("workflow_lost", &message) };
                return (Ended { ending: Ending::Failed(failure), at: None }, way);
            }
            Err(status) => {
                if !is_passing(status.code()) {
                    tracing::warn!(workflow = execution.workflow_id, %status, "the end of a workflow cannot be asked for");
                }
                // The page is gone with it: it belongs to a cluster that may be another one after its restart.
                tokio::time::sleep(WAIT).await;
            }
        }
    }
}

/// Whether the workflow has ended, without waiting for it. What was learned about its runs stays in `execution`.
pub(super) async fn look(
    upstream: &Upstream,
    namespace: &str,
    execution: &mut WorkflowExecution,
) -> Result<Option<Ended>, Status> {
    for _ in 0..RUNS_MAX {
        let seen = ask(upstream, namespace, execution, None).await?;
        match seen.step {
            Step::Next(run) => execution.run_id = run,
            Step::End(ending) => return Ok(Some(Ended { ending, at: seen.at })),
            Step::GoesOn => break,
        }
    }
    Ok(None)
}

/// Waits a while for the end of the run that the workflow is in.
async fn poll(
    upstream: &Upstream,
    namespace: &str,
    execution: &mut WorkflowExecution,
    page: &mut Vec<u8>,
) -> Result<Option<Ended>, Status> {
    let seen = ask(upstream, namespace, execution, Some(std::mem::take(page))).await?;
    match seen.step {
        Step::Next(run) => execution.run_id = run,
        Step::End(ending) => return Ok(Some(Ended { ending, at: seen.at })),
        Step::GoesOn => *page = seen.next_page,
    }
    Ok(None)
}

/// The last event of a run, as far as the cluster has it.
struct Seen {
    step: Step,
    at: Option<Timestamp>,
    /// With what a long poll goes on.
    next_page: Vec<u8>,
}

enum Step {
    GoesOn,
    /// Another run of the same workflow follows.
    Next(String),
    End(Ending),
}

/// Asks for the last event of a run. With a page the cluster answers when the run has ended, or after a while.
async fn ask(
    upstream: &Upstream,
    namespace: &str,
    execution: &WorkflowExecution,
    page: Option<Vec<u8>>,
) -> Result<Seen, Status> {
    let patience = if page.is_some() { POLL_MAX } else { UPSTREAM_TIME_MAX };
    let asked = service::GetWorkflowExecutionHistoryRequest {
        namespace: namespace.into(),
        execution: Some(execution.clone()),
        wait_new_event: page.is_some(),
        next_page_token: page.unwrap_or_default(),
        history_event_filter_type: enums::HistoryEventFilterType::CloseEvent.into(),
        skip_archival: true,
        ..Default::default()
    };
    let mut client = upstream.service(namespace);
    let asked = tokio::time::timeout(patience, client.get_workflow_execution_history(asked)).await;
    let answer = asked.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer in time")))?.into_inner();
    let last = answer.history.and_then(|history| history.events.into_iter().next_back());
    let at = last.as_ref().and_then(|event| event.event_time);
    let at = at.and_then(|at| Timestamp::new(at.seconds, at.nanos).ok());
    let step = last.and_then(|event| event.attributes).map_or(Step::GoesOn, read);
    Ok(Seen { step, at, next_page: answer.next_page_token })
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
