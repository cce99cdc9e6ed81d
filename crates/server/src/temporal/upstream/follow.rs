//! One start from its request to its end: asked for until the cluster has it, then waited for.

use std::sync::Arc;
use std::time::Duration;

use punctual_core::{Failure, Outcome, StopKind};
use punctual_engine::{AttemptEnd, Claimed, Report};
use tokio::sync::watch;
use tonic::{Code, Status};

use super::super::wire::common::WorkflowExecution;
use super::super::wire::{details, service};
use super::ending::{self, Ending};
use super::workflows::{Wish, worker};
use super::{Upstream, request};
use crate::app::App;

/// The waits between two tries.
const WAIT_FIRST: Duration = Duration::from_millis(500);
const WAIT_MAX: Duration = Duration::from_secs(30);

/// How often the cluster is told to end a workflow that is over here.
const TERMINATES_MAX: u32 = 8;

/// Follows a start until its workflow has ended, and records how.
pub(super) async fn follow(
    app: &Arc<App>,
    upstream: &Upstream,
    claimed: &Claimed,
    mut told: watch::Receiver<Wish>,
) {
    let request = match request::start(claimed) {
        Ok(request) => request,
        Err(reason) => {
            let failure = Failure { retryable: false, ..Failure::new("invalid_start", &reason) };
            return report(app, claimed, AttemptEnd::Failed(failure, None)).await;
        }
    };
    let mut execution = WorkflowExecution { workflow_id: request.workflow_id.clone(), run_id: String::new() };
    let mut may_run = false;
    let started = tokio::select! {
        started = begin(upstream, request, &mut may_run) => Some(started),
        _ = told.wait_for(|wish| *wish != Wish::GoOn) => None,
    };
    match started {
        Some(Ok(run)) => execution.run_id = run,
        Some(Err(status)) => {
            let failure = Failure { retryable: false, ..Failure::new(word(status.code()), status.message()) };
            return report(app, claimed, AttemptEnd::Failed(failure, None)).await;
        }
        // The cluster may have it although it never said so. Then there is something to stop.
        None if may_run => {}
        None if *told.borrow() == Wish::Cancel => return report(app, claimed, AttemptEnd::Cancelled).await,
        None => return,
    }
    let namespace = claimed.body.namespace.clone();
    let end = ending::wait(upstream, &namespace, execution.clone());
    tokio::pin!(end);
    loop {
        let wish = *told.borrow_and_update();
        match wish {
            Wish::GoOn => {}
            Wish::Cancel => {
                if cancel(upstream, claimed, &execution).await == Err(Code::NotFound)
                    && execution.run_id.is_empty()
                {
                    return report(app, claimed, AttemptEnd::Cancelled).await;
                }
            }
            Wish::Gone => return gone(app, upstream, claimed, &execution).await,
        }
        tokio::select! {
            ending = &mut end => return record(app, claimed, ending).await,
            changed = told.changed() => if changed.is_err() { return },
        }
    }
}

/// Asks for the start until there is an answer that counts; gives the run id of the workflow.
async fn begin(
    upstream: &Upstream,
    request: service::StartWorkflowExecutionRequest,
    may_run: &mut bool,
) -> Result<String, Status> {
    let mut wait = WAIT_FIRST;
    loop {
        *may_run = true;
        let status =
            match upstream.shortly(upstream.service().start_workflow_execution(request.clone())).await {
                Ok(answer) => return Ok(answer.run_id),
                Err(status) => status,
            };
        match status.code() {
            // Somebody else's workflow has this id, unless it is the very start that we asked for.
            Code::AlreadyExists => {
                let detail: Option<details::WorkflowExecutionAlreadyStartedFailure> = super::detail(&status);
                let ours = detail.filter(|detail| detail.start_request_id == request.request_id);
                return ours.map(|detail| detail.run_id).ok_or(status);
            }
            Code::InvalidArgument
            | Code::NotFound
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::FailedPrecondition
            | Code::Unimplemented => return Err(status),
            code => {
                // It was never sent, or refused before it counted.
                *may_run = !matches!(code, Code::ResourceExhausted);
                tracing::warn!(workflow = request.workflow_id, %status, "a start at the cluster has to wait");
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(WAIT_MAX);
    }
}

async fn cancel(upstream: &Upstream, claimed: &Claimed, execution: &WorkflowExecution) -> Result<(), Code> {
    let asked = service::RequestCancelWorkflowExecutionRequest {
        namespace: claimed.body.namespace.to_string(),
        workflow_execution: Some(WorkflowExecution { run_id: String::new(), ..execution.clone() }),
        identity: request::identity(claimed),
        request_id: format!("cancel-{}", request::id(claimed)),
        // The workflow may have gone on as another run since.
        first_execution_run_id: execution.run_id.clone(),
        reason: "schedule overlap policy".into(),
        ..Default::default()
    };
    let mut wait = WAIT_FIRST;
    loop {
        match upstream.shortly(upstream.service().request_cancel_workflow_execution(asked.clone())).await {
            Ok(_) => return Ok(()),
            Err(status) if is_passing(status.code()) => {
                tracing::warn!(workflow = execution.workflow_id, %status, "a cancel has to wait");
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(WAIT_MAX);
            }
            Err(status) => return Err(status.code()),
        }
    }
}

/// The run is not ours any more. If it was terminated, so is its workflow; if another node has it, that one goes on.
async fn gone(app: &App, upstream: &Upstream, claimed: &Claimed, execution: &WorkflowExecution) {
    let view = app.engine.run(&claimed.body.namespace, claimed.live.made.run).await;
    let closing = view.ok().and_then(|view| view.stored.closing);
    if closing.is_none_or(|closing| closing.outcome != Outcome::Terminated) {
        return;
    }
    let asked = service::TerminateWorkflowExecutionRequest {
        namespace: claimed.body.namespace.to_string(),
        workflow_execution: Some(WorkflowExecution { run_id: String::new(), ..execution.clone() }),
        reason: "schedule overlap policy".into(),
        identity: request::identity(claimed),
        first_execution_run_id: execution.run_id.clone(),
        ..Default::default()
    };
    let mut wait = WAIT_FIRST;
    for _ in 0..TERMINATES_MAX {
        match upstream.shortly(upstream.service().terminate_workflow_execution(asked.clone())).await {
            Err(status) if is_passing(status.code()) => {
                tracing::warn!(workflow = execution.workflow_id, %status, "a terminate has to wait");
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(WAIT_MAX);
            }
            Ok(_) | Err(_) => return,
        }
    }
}

/// Whether the same request may succeed later.
pub(super) fn is_passing(code: Code) -> bool {
    use Code::{Aborted, Cancelled, DeadlineExceeded, Internal, ResourceExhausted, Unavailable, Unknown};
    matches!(
        code,
        Aborted | Cancelled | DeadlineExceeded | Internal | ResourceExhausted | Unavailable | Unknown
    )
}

fn word(code: Code) -> &'static str {
    match code {
        Code::AlreadyExists => "workflow_already_started",
        Code::NotFound => "not_found",
        Code::PermissionDenied | Code::Unauthenticated => "not_allowed",
        _ => "start_refused",
    }
}

async fn record(app: &Arc<App>, claimed: &Claimed, ending: Ending) {
    let end = match ending {
        Ending::Completed(result) => AttemptEnd::Succeeded(result),
        Ending::Failed(failure) => AttemptEnd::Failed(failure, None),
        Ending::Cancelled => AttemptEnd::Cancelled,
        Ending::Terminated => {
            // No report says so: to a worker a terminated run is simply gone.
            let mut wait = WAIT_FIRST;
            let (namespace, run) = (&claimed.body.namespace, claimed.live.made.run);
            while let Err(error) = app.engine.stop_run(namespace, run, StopKind::Terminate).await {
                tracing::warn!(%run, %error, "the end of a workflow was not recorded; trying again");
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(WAIT_MAX);
            }
            return;
        }
    };
    report(app, claimed, end).await;
}

/// Records an end, for as long as it takes: until then the lease is kept.
async fn report(app: &App, claimed: &Claimed, end: AttemptEnd) {
    let mut wait = WAIT_FIRST;
    loop {
        let report = Report {
            namespace: claimed.body.namespace.clone(),
            worker: worker(app).into(),
            run: claimed.live.made.run,
            attempt: claimed.live.attempt,
            end: end.clone(),
        };
        match app.engine.report(report).await {
            Ok(_) => return,
            Err(error) => {
                tracing::warn!(run = %claimed.live.made.run, %error, "an end was not recorded; trying again");
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(WAIT_MAX);
    }
}
