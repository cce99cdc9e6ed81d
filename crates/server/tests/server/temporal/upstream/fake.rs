//! A cluster in this process that answers the few things these stories ask, and remembers what it heard.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::response::Response as HttpResponse;
use axum::routing::post;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use prost::Message;
use prost_types::Any;
use punctual_temporal_api::google::rpc;
use punctual_temporal_api::temporal::api::common::v1::{WorkflowExecution, callback};
use punctual_temporal_api::temporal::api::enums::v1::WorkflowExecutionStatus as Ended;
use punctual_temporal_api::temporal::api::errordetails::v1::NotFoundFailure;
use punctual_temporal_api::temporal::api::history::v1::history_event::Attributes;
use punctual_temporal_api::temporal::api::history::v1::{History, HistoryEvent};
use punctual_temporal_api::temporal::api::workflow::v1::WorkflowExecutionInfo;
use punctual_temporal_api::temporal::api::workflowservice::v1 as service;
use punctual_testkit::certificate::{CERTIFICATE, KEY};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use service::workflow_service_server::{WorkflowService, WorkflowServiceServer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tonic::codec::CompressionEncoding::Gzip;
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Response, Status};

#[derive(Clone)]
pub struct State {
    /// What the last question about a namespace carried beside its message.
    pub metadata: Arc<Mutex<MetadataMap>>,
    /// How the cluster answers who asks what it can do: with its release, or with a refusal.
    pub release: Arc<Mutex<Result<String, Status>>>,
    /// Workflows in the order of their starts.
    pub workflows: Arc<watch::Sender<Vec<Workflow>>>,
    /// Whether starts may have callbacks; clusters refuse them unless they are told otherwise.
    pub allows_callbacks: Arc<AtomicBool>,
    /// Starts that were refused for their callback.
    pub refused: Arc<AtomicUsize>,
}

impl Default for State {
    fn default() -> State {
        State {
            metadata: Arc::default(),
            release: Arc::new(Mutex::new(Ok("1.99.0".into()))),
            workflows: Arc::new(watch::Sender::new(Vec::new())),
            allows_callbacks: Arc::default(),
            refused: Arc::default(),
        }
    }
}

#[derive(Clone)]
pub struct Workflow {
    pub request: service::StartWorkflowExecutionRequest,
    /// How often it was asked for.
    pub asked: usize,
    pub run_id: String,
    /// What it was told to do.
    pub told: Vec<&'static str>,
    pub end: Option<Attributes>,
    /// How long ago it ended, in seconds, when somebody hears of it.
    pub ended_ago: i64,
}

impl Workflow {
    /// Where its end is to be told, and with which token.
    pub fn callback(&self) -> Option<(String, String)> {
        match self.request.completion_callbacks.first()?.variant.clone()? {
            callback::Variant::Nexus(nexus) => Some((nexus.url, nexus.header["punctual-token"].clone())),
            other => panic!("{other:?} is no callback of ours"),
        }
    }
}

impl State {
    /// Waits until the workflows are as the story wants them.
    pub async fn see(&self, wanted: impl Fn(&[Workflow]) -> bool) -> Vec<Workflow> {
        let mut seen = self.workflows.subscribe();
        let seen = tokio::time::timeout(Duration::from_secs(60), seen.wait_for(|list| wanted(list))).await;
        seen.expect("the workflows never were as wanted").unwrap().clone()
    }

    /// Ends the workflow that was started at this place.
    pub fn end(&self, place: usize, end: Attributes) {
        self.workflows.send_modify(|list| list[place].end = Some(end));
    }

    fn tell(&self, execution: Option<WorkflowExecution>, what: &'static str) {
        let id = execution.unwrap_or_default().workflow_id;
        self.workflows.send_modify(|list| {
            list.iter_mut().filter(|it| it.request.workflow_id == id).for_each(|it| it.told.push(what));
        });
    }
}

pub struct Fake {
    pub address: SocketAddr,
    pub state: State,
    serving: JoinHandle<()>,
}

impl Fake {
    pub async fn new() -> Fake {
        Fake::at("127.0.0.1:0".parse().unwrap(), State::default()).await
    }

    /// A cluster that knows what another one knew.
    pub async fn at(address: SocketAddr, state: State) -> Fake {
        Fake::with(address, state, None).await
    }

    /// A cluster that is spoken to over TLS, and has the certificate of `localhost`.
    pub async fn secure() -> Fake {
        let certificates = vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut config = builder.with_single_cert(certificates, key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Fake::with("127.0.0.1:0".parse().unwrap(), State::default(), Some(acceptor)).await
    }

    async fn with(address: SocketAddr, state: State, tls: Option<TlsAcceptor>) -> Fake {
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = WorkflowServiceServer::new(state.clone()).accept_compressed(Gzip).send_compressed(Gzip);
        let router = Router::new()
            .route_service("/temporal.api.workflowservice.v1.WorkflowService/{*rpc}", service)
            .route("/some.Other/Echo", post(echo));
        let serving = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (router, tls) = (router.clone(), tls.clone());
                connections.spawn(async move {
                    match tls {
                        None => serve(stream, router).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, router).await;
                            }
                        }
                    }
                });
            }
        });
        Fake { address, state, serving }
    }

    /// Goes away, and every connection with it.
    pub async fn stop(self) {
        self.serving.abort();
        let _ = self.serving.await;
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, router: Router) {
    let builder = Builder::new(TokioExecutor::new()).http2_only();
    drop(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)).await);
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
        _: Request<service::GetSystemInfoRequest>,
    ) -> Result<Response<service::GetSystemInfoResponse>, Status> {
        let server_version = self.release.lock().unwrap().clone()?;
        let mut response =
            Response::new(service::GetSystemInfoResponse { server_version, ..Default::default() });
        response.metadata_mut().insert("from-behind", "yes".parse().unwrap());
        Ok(response)
    }

    async fn describe_workflow_execution(
        &self,
        request: Request<service::DescribeWorkflowExecutionRequest>,
    ) -> Result<Response<service::DescribeWorkflowExecutionResponse>, Status> {
        let id = request.into_inner().execution.unwrap_or_default().workflow_id;
        let found = self.workflows.borrow().iter().find(|it| it.request.workflow_id == id).cloned();
        if let Some(it) = found {
            let status = if it.end.is_some() { Ended::Completed } else { Ended::Running };
            let info = WorkflowExecutionInfo {
                status: status.into(),
                search_attributes: it.request.search_attributes,
                first_run_id: it.run_id,
                ..Default::default()
            };
            return Ok(Response::new(service::DescribeWorkflowExecutionResponse {
                workflow_execution_info: Some(info),
                ..Default::default()
            }));
        }
        let detail = NotFoundFailure { current_cluster: "a".into(), active_cluster: "b".into() };
        let detail =
            Any { type_url: <NotFoundFailure as prost::Name>::type_url(), value: detail.encode_to_vec() };
        let (code, message) = (Code::NotFound, "workflow not found");
        let carried = rpc::Status { code: code as i32, message: message.into(), details: vec![detail] };
        Err(Status::with_details(code, message, carried.encode_to_vec().into()))
    }

    /// Answers when the run has ended, or at once if nobody wants to wait; never, if nobody started it.
    async fn get_workflow_execution_history(
        &self,
        request: Request<service::GetWorkflowExecutionHistoryRequest>,
    ) -> Result<Response<service::GetWorkflowExecutionHistoryResponse>, Status> {
        let request = request.into_inner();
        let WorkflowExecution { workflow_id, run_id } = request.execution.unwrap_or_default();
        let is_it = |it: &&Workflow| {
            let run = it.run_id == run_id || run_id == format!("{}-next", it.run_id);
            it.request.workflow_id == workflow_id && (run || run_id.is_empty())
        };
        let find = |list: &[Workflow]| list.iter().find(is_it).cloned();
        let mut seen = self.workflows.subscribe();
        let wanted =
            |list: &Vec<Workflow>| find(list).is_some_and(|it| it.end.is_some() || !request.wait_new_event);
        let it = seen.wait_for(wanted).await.map(|list| find(&list)).unwrap().unwrap();
        let seconds = jiff::Timestamp::now().as_second() - it.ended_ago;
        let event = HistoryEvent {
            event_time: Some(prost_types::Timestamp { seconds, nanos: 0 }),
            attributes: it
                .end
                .or(Some(Attributes::WorkflowExecutionStartedEventAttributes(Default::default()))),
            ..Default::default()
        };
        Ok(Response::new(service::GetWorkflowExecutionHistoryResponse {
            history: Some(History { events: vec![event] }),
            ..Default::default()
        }))
    }

    async fn start_workflow_execution(
        &self,
        request: Request<service::StartWorkflowExecutionRequest>,
    ) -> Result<Response<service::StartWorkflowExecutionResponse>, Status> {
        let request = request.into_inner();
        if !request.completion_callbacks.is_empty() && !self.allows_callbacks.load(SeqCst) {
            self.refused.fetch_add(1, SeqCst);
            return Err(Status::invalid_argument(
                "invalid callback url: it does not match any configured callback address",
            ));
        }
        let mut answer = Err(Status::already_exists("another start has this id"));
        self.workflows.send_modify(|list| {
            let place = list.iter().position(|it| it.request.workflow_id == request.workflow_id);
            let place = place.unwrap_or_else(|| {
                let run_id = format!("run-{}", list.len());
                let (asked, told, end, ended_ago) = (0, Vec::new(), None, 0);
                list.push(Workflow { request: request.clone(), asked, run_id, told, end, ended_ago });
                list.len() - 1
            });
            list[place].asked += 1;
            if list[place].request.request_id == request.request_id {
                answer = Ok(list[place].run_id.clone());
            }
        });
        let run_id = answer?;
        Ok(Response::new(service::StartWorkflowExecutionResponse {
            run_id,
            started: true,
            ..Default::default()
        }))
    }

    async fn request_cancel_workflow_execution(
        &self,
        request: Request<service::RequestCancelWorkflowExecutionRequest>,
    ) -> Result<Response<service::RequestCancelWorkflowExecutionResponse>, Status> {
        self.tell(request.into_inner().workflow_execution, "cancel");
        Ok(Response::new(service::RequestCancelWorkflowExecutionResponse {}))
    }

    async fn terminate_workflow_execution(
        &self,
        request: Request<service::TerminateWorkflowExecutionRequest>,
    ) -> Result<Response<service::TerminateWorkflowExecutionResponse>, Status> {
        self.tell(request.into_inner().workflow_execution, "terminate");
        Ok(Response::new(service::TerminateWorkflowExecutionResponse {}))
    }

    async fn describe_namespace(
        &self,
        request: Request<service::DescribeNamespaceRequest>,
    ) -> Result<Response<service::DescribeNamespaceResponse>, Status> {
        *self.metadata.lock().unwrap() = request.metadata().clone();
        let mut response = Response::new(service::DescribeNamespaceResponse::default());
        response.metadata_mut().insert("from-behind", "yes".parse().unwrap());
        match request.get_ref().namespace.as_str() {
            "default" | "theirs" => Ok(response),
            other => Err(Status::not_found(format!("Namespace {other} is not found."))),
        }
    }
}
