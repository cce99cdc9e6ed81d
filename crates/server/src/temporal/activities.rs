//! Activity workers of Temporal's SDKs take runs of our queues: a run is an activity task, its handler the activity's type.

mod poll;
mod polls;
mod task;
mod token;
mod heartbeat;
mod report;
pub(super) mod failure;

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use tonic::Status;

pub(super) use heartbeat::{heartbeat, heartbeat_by_id, worker_heartbeat};
pub(super) use poll::{poll, shutdown};
pub(crate) use polls::Polls;
pub(super) use report::{cancelled, cancelled_by_id, completed, completed_by_id, failed, failed_by_id};

/// What workers that do more than activities ask for. They show their users the answer, so it says what is missing.
pub(super) fn unserved(router: Router) -> Router {
    let polls = [("PollWorkflowTaskQueue", "workflow"), ("PollNexusTaskQueue", "Nexus")];
    polls.into_iter().fold(router, |router, (rpc, what)| {
        let path = format!("/temporal.api.workflowservice.v1.WorkflowService/{rpc}");
        let message =
            format!("{what} tasks are not served here: a worker of this server has activities only");
        router.route(&path, post(async move || Status::unimplemented(message).into_http::<Body>()))
    })
}
