//! What the cluster can do. Every client asks that before anything else, so the answer is remembered: schedules are managed
//! while the cluster is away, too.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, response};
use axum::response::Response;
use http_body_util::{BodyExt, Full, Limited};
use tonic::codegen::Service;
use tonic::{Code, Status};

use super::super::Temporal;
use super::super::wire::service::workflow_service_server::WorkflowServiceServer;
use super::forward::{forward, patience};
use crate::app::App;
use crate::limits::{HEADER_BYTES_MAX, MESSAGE_BYTES_MAX, UPSTREAM_CAPABILITIES_TIME_MAX};

/// The method that asks for them.
pub(super) const RPC: &str = "GetSystemInfo";

/// The cluster's last good answer; nothing before the first one.
#[derive(Default)]
pub(super) struct Capabilities(Mutex<Option<Answer>>);

/// An answer as it came.
#[derive(Clone)]
struct Answer {
    head: response::Parts,
    message: Bytes,
    trailers: Option<HeaderMap>,
}

impl Answer {
    async fn read(answer: Response) -> Result<Answer, Status> {
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, MESSAGE_BYTES_MAX).collect().await;
        let body = body.map_err(|error| Status::internal(format!("the cluster's answer: {error}")))?;
        let trailers = body.trailers().cloned();
        Ok(Answer { head, message: body.to_bytes(), trailers })
    }

    fn code(&self) -> Code {
        let told = |headers: &HeaderMap| headers.get("grpc-status").map(|it| Code::from_bytes(it.as_bytes()));
        match told(&self.head.headers).or_else(|| told(self.trailers.as_ref()?)) {
            Some(code) => code,
            // What stands between us and the cluster has no words of gRPC.
            None => match self.head.status {
                StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
                    Code::Unavailable
                }
                _ => Code::Unknown,
            },
        }
    }

    fn again(self) -> Response {
        let body = Full::new(self.message).with_trailers(std::future::ready(self.trailers.map(Ok)));
        Response::from_parts(self.head, Body::new(body))
    }
}

/// The cluster's answer; while it is away its last one, or ours if there was none yet.
pub(super) async fn answer(
    app: Arc<App>,
    request: Request,
    mut ours: WorkflowServiceServer<Temporal>,
) -> Response {
    let Some(upstream) = &app.upstream else { return forward(&app, request).await };
    let (head, body) = request.into_parts();
    let Ok(asked) = axum::body::to_bytes(body, HEADER_BYTES_MAX).await else {
        return Status::invalid_argument("the question cannot be read").into_http();
    };
    let mut theirs = Request::from_parts(head.clone(), Body::from(asked.clone()));
    // What is kept must suit the next client, who may not read what this one does.
    theirs.headers_mut().remove("grpc-accept-encoding");
    let half = patience(&head.headers).map_or(Duration::MAX, |patience| patience / 2);
    let answer = async { Answer::read(forward(&app, theirs).await).await };
    let answer = tokio::time::timeout(half.min(UPSTREAM_CAPABILITIES_TIME_MAX), answer).await;
    let last = || upstream.capabilities.0.lock().unwrap_or_else(PoisonError::into_inner);
    match answer {
        Ok(Ok(answer)) => match answer.code() {
            Code::Ok => {
                *last() = Some(answer.clone());
                return answer.again();
            }
            Code::Unavailable | Code::DeadlineExceeded => {}
            // A refusal is the cluster's word.
            _ => return answer.again(),
        },
        Ok(Err(status)) => return status.into_http(),
        Err(_) => {}
    }
    let last = last().clone();
    match last {
        Some(answer) => answer.again(),
        None => {
            let Ok(answer) = ours.call(Request::from_parts(head, Body::from(asked))).await;
            answer.map(Body::new)
        }
    }
}
