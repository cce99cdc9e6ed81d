//! Asks the cluster for a start until it has it, with a callback where it allows one.

use punctual_engine::Claimed;
use tonic::{Code, Status};

use super::super::wire::{details, service};
use super::stop::{WAIT_FIRST, WAIT_MAX};
use super::{Upstream, known};

/// A workflow that the cluster has.
pub(super) struct Begun {
    /// The run that it began with.
    pub(super) run_id: String,
    /// Whether the cluster was asked for a callback and took it.
    pub(super) has_callback: bool,
}

/// Asks for the start until there is an answer that counts. `may_run` says whether the cluster may have it by now.
///
/// Clusters refuse callbacks in many words, and the whole start with them. So a start that is refused is asked for once more
/// without: if the cluster takes that, it was the callback.
pub(super) async fn begin(
    upstream: &Upstream,
    claimed: &Claimed,
    mut request: service::StartWorkflowExecutionRequest,
    may_run: &mut bool,
) -> Result<Begun, Status> {
    // Who takes over looks first, and so does who got no answer: the workflow may be there, as another run by now than the
    // one that was asked for.
    let mut looks = claimed.live.attempt > 1;
    let (mut refusal, mut taken): (Option<String>, Option<Status>) = (None, None);
    let mut wait = WAIT_FIRST;
    loop {
        let could_run = std::mem::replace(may_run, true);
        let asked = match looks {
            true => {
                known::find(upstream, &claimed.live, &claimed.body).await.map(|it| it.map(|it| it.first_run))
            }
            false => {
                let mut client = upstream.service(&claimed.body.namespace);
                let asked = client.start_workflow_execution(request.clone());
                upstream.shortly(asked).await.map(|answer| Some(answer.run_id))
            }
        };
        let status = match (asked, taken.take()) {
            (Ok(Some(run_id)), _) => {
                if let Some(refusal) = refusal {
                    upstream.callbacks.refused(&claimed.body.namespace, &refusal);
                }
                let has_callback = !looks && !request.completion_callbacks.is_empty();
                return Ok(Begun { run_id, has_callback });
            }
            // Somebody else's workflow has this id.
            (Ok(None), Some(status)) => return Err(status),
            (Ok(None), None) => {
                looks = false;
                continue;
            }
            (Err(status), before) => {
                taken = before;
                status
            }
        };
        match status.code() {
            // It may be the very start that we asked for, or what became of it.
            Code::AlreadyExists if !looks => {
                let detail: Option<details::WorkflowExecutionAlreadyStartedFailure> = super::detail(&status);
                let ours = detail.filter(|detail| detail.start_request_id == request.request_id);
                if let Some(detail) = ours {
                    return Ok(Begun { run_id: detail.run_id, has_callback: false });
                }
                (looks, taken) = (true, Some(status));
                continue;
            }
            code if is_final(code) && (looks || request.completion_callbacks.is_empty()) => {
                return Err(status);
            }
            code if is_final(code) => {
                request.completion_callbacks.clear();
                refusal = Some(status.message().to_owned());
                continue;
            }
            code => {
                // What was refused for want of room did not count, but what was sent before may have.
                *may_run = could_run || code != Code::ResourceExhausted;
                looks = true;
                tracing::warn!(workflow = request.workflow_id, %status, "a start at the cluster has to wait");
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(WAIT_MAX);
    }
}

/// Whether the same request would be refused again.
fn is_final(code: Code) -> bool {
    use Code::{
        FailedPrecondition, InvalidArgument, NotFound, PermissionDenied, Unauthenticated, Unimplemented,
    };
    matches!(
        code,
        InvalidArgument | NotFound | PermissionDenied | Unauthenticated | FailedPrecondition | Unimplemented
    )
}
