//! A cluster in this process that answers the few things these stories ask, and remembers what it heard.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::response::Response as HttpResponse;
use axum::routing::post;
use prost::Message;
use prost_types::Any;
use punctual_temporal_api::google::rpc;
use punctual_temporal_api::temporal::api::errordetails::v1::NotFoundFailure;
use punctual_temporal_api::temporal::api::workflowservice::v1 as service;
use service::workflow_service_server::{WorkflowService, WorkflowServiceServer};
use tokio::task::JoinHandle;
use tonic::codec::CompressionEncoding::Gzip;
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Response, Status};

#[derive(Clone, Default)]
pub struct State {
    /// What the last request carried beside its message.
    pub metadata: Arc<Mutex<MetadataMap>>,
}

pub struct Fake {
    pub address: SocketAddr,
    pub state: State,
    serving: JoinHandle<()>,
}

impl Fake {
    pub async fn new() -> Fake {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, state) = (listener.local_addr().unwrap(), State::default());
        let service = WorkflowServiceServer::new(state.clone()).accept_compressed(Gzip).send_compressed(Gzip);
        let router = Router::new()
            .route_service("/temporal.api.workflowservice.v1.WorkflowService/{*rpc}", service)
            .route("/some.Other/Echo", post(echo));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Fake { address, state, serving }
    }

    pub async fn stop(self) {
        self.serving.abort();
        let _ = self.serving.await;
    }
}

/// Sends every message back as it comes, and ends when the client does.
async fn echo(request: HttpRequest) -> HttpResponse {
    let mut trailers = axum::http::HeaderMap::new();
    trailers.insert("grpc-status", 0.into());
    trailers.insert("last-words", "bye".parse().unwrap());
    let body = http_body_util::BodyExt::with_trailers(request.into_body(), async { Some(Ok(trailers)) });
    let mut response = HttpResponse::new(Body::new(body));
    response.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
    response
}

#[tonic::async_trait]
impl WorkflowService for State {
    async fn get_system_info(
        &self,
        request: Request<service::GetSystemInfoRequest>,
    ) -> Result<Response<service::GetSystemInfoResponse>, Status> {
        *self.metadata.lock().unwrap() = request.metadata().clone();
        let info = service::GetSystemInfoResponse { server_version: "1.99.0".into(), ..Default::default() };
        let mut response = Response::new(info);
        response.metadata_mut().insert("from-behind", "yes".parse().unwrap());
        Ok(response)
    }

    async fn describe_workflow_execution(
        &self,
        _request: Request<service::DescribeWorkflowExecutionRequest>,
    ) -> Result<Response<service::DescribeWorkflowExecutionResponse>, Status> {
        let detail = NotFoundFailure { current_cluster: "a".into(), active_cluster: "b".into() };
        let detail =
            Any { type_url: <NotFoundFailure as prost::Name>::type_url(), value: detail.encode_to_vec() };
        let (code, message) = (Code::NotFound, "workflow not found");
        let carried = rpc::Status { code: code as i32, message: message.into(), details: vec![detail] };
        Err(Status::with_details(code, message, carried.encode_to_vec().into()))
    }

    /// Answers when the client has given up.
    async fn get_workflow_execution_history(
        &self,
        _request: Request<service::GetWorkflowExecutionHistoryRequest>,
    ) -> Result<Response<service::GetWorkflowExecutionHistoryResponse>, Status> {
        std::future::pending().await
    }

    async fn describe_namespace(
        &self,
        request: Request<service::DescribeNamespaceRequest>,
    ) -> Result<Response<service::DescribeNamespaceResponse>, Status> {
        match request.get_ref().namespace.as_str() {
            "default" | "theirs" => Ok(Response::new(service::DescribeNamespaceResponse::default())),
            other => Err(Status::not_found(format!("Namespace {other} is not found."))),
        }
    }
}
