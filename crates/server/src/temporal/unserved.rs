//! What Temporal has and this server does not: clients show their users the answer, so it says what is missing and where to
//! find it.

use axum::body::Body;
use axum::extract::Path;
use axum::response::Response;
use tonic::Status;

/// Refuses a call that is not served without a cluster behind this server.
pub(super) async fn answer(Path(rpc): Path<String>) -> Response {
    Status::unimplemented(message(&rpc)).into_http::<Body>()
}

fn message(rpc: &str) -> String {
    match rpc {
        "PollWorkflowTaskQueue" => {
            "workflow tasks are not served here: a worker of this server has activities only".into()
        }
        "PollNexusTaskQueue" => {
            "Nexus tasks are not served here: a worker of this server has activities only".into()
        }
        // The path is the caller's; a method has a short name of letters.
        _ if rpc.len() > 64 || !rpc.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            "there is no such method".into()
        }
        _ => format!(
            "{rpc} is not served here: this server has Temporal's schedules and activity workers, without workflows; \
             with --temporal-upstream such calls go to the cluster that is named there"
        ),
    }
}
