//! A cluster behind this server: schedules are ours, everything else is its own.

mod connection;
mod forward;
mod capabilities;
pub(crate) mod workflows;
mod follow;
mod request;
mod begin;
mod known;
mod callbacks;
mod ending;
mod ended;
mod stop;
mod left;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::Uri;
use axum::http::uri::{Authority, Scheme};
use axum::routing::any;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use prost::Message;
use tonic::Code;
use tonic::codec::CompressionEncoding::Gzip;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::server::NamedService;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};

use super::Temporal;
use super::attributes::{Kind, Types};
use super::refusal::Refusal;
use super::wire::operator;
use super::wire::operator::operator_service_client::OperatorServiceClient;
use super::wire::service;
use super::wire::service::workflow_service_client::WorkflowServiceClient;
use super::wire::service::workflow_service_server::WorkflowServiceServer;
use crate::app::App;
use crate::config::Config;
use crate::limits::{HEADER_BYTES_MAX, KEEP_ALIVE_PAUSE, MESSAGE_BYTES_MAX, UPSTREAM_TIME_MAX};

use callbacks::Callbacks;
use capabilities::Capabilities;
use connection::{Carried, Connector};
use workflows::Followed;

pub(crate) use callbacks::{PATH as ENDED_PATH, WAYS};
pub(crate) use ended::take as take_ended;
pub(crate) use forward::{FORWARDED, forward};

/// The methods that stay here; every other one belongs to the cluster.
const OURS: [&str; 8] = [
    "CreateSchedule",
    "DescribeSchedule",
    "UpdateSchedule",
    "PatchSchedule",
    "ListScheduleMatchingTimes",
    "DeleteSchedule",
    "ListSchedules",
    "CountSchedules",
];

/// The cluster behind this server.
pub(crate) struct Upstream {
    scheme: Scheme,
    /// Host and port.
    authority: Authority,
    /// For requests that are forwarded as they are.
    client: Client<Connector, Body>,
    /// For requests of our own.
    channel: Channel,
    key: Option<MetadataValue<Ascii>>,
    capabilities: Capabilities,
    followed: Followed,
    pub(crate) callbacks: Callbacks,
}

impl Upstream {
    /// The cluster at the URL of the settings, such as `http://127.0.0.1:7233`, behind a server that listens here. Nothing is
    /// connected before it is needed.
    pub(crate) fn new(config: &Config, listens: SocketAddr) -> Result<Upstream, String> {
        let uri: Uri =
            config.temporal_upstream.parse().map_err(|error| format!("temporal_upstream: {error}"))?;
        let authority = uri.authority().ok_or("temporal_upstream has no host and port")?.clone();
        let scheme = uri.scheme().cloned().unwrap_or(Scheme::HTTP);
        let callbacks = Callbacks::new(callbacks::url(&config.callback_url, listens, authority.host()));
        let connector = Connector::new(&uri, &config.temporal_upstream_ca)?;
        let key = connection::key(&config.temporal_upstream_key_file)?;
        if key.is_some() && scheme == Scheme::HTTP {
            tracing::warn!("the key for the cluster goes over a connection that is not encrypted");
        }
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .http2_only(true)
            .http2_keep_alive_interval(KEEP_ALIVE_PAUSE)
            .http2_keep_alive_timeout(KEEP_ALIVE_PAUSE)
            .http2_max_header_list_size(HEADER_BYTES_MAX as u32)
            .build(connector.clone());
        let channel = Endpoint::from(uri)
            .http2_keep_alive_interval(KEEP_ALIVE_PAUSE)
            .keep_alive_timeout(KEEP_ALIVE_PAUSE)
            .connect_with_connector_lazy(connector);
        let (capabilities, followed) = (Capabilities::default(), Followed::default());
        Ok(Upstream { scheme, authority, client, channel, key, capabilities, followed, callbacks })
    }

    fn carried(&self, namespace: &str) -> Carried {
        Carried { key: self.key.clone(), namespace: namespace.parse().ok() }
    }

    /// A client for requests of our own about this namespace.
    fn service(&self, namespace: &str) -> WorkflowServiceClient<InterceptedService<Channel, Carried>> {
        WorkflowServiceClient::with_interceptor(self.channel.clone(), self.carried(namespace))
            .send_compressed(Gzip)
            .accept_compressed(Gzip)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    /// Whether a namespace exists there.
    pub(super) async fn check_namespace(&self, name: &str) -> Result<(), Refusal> {
        let asked = service::DescribeNamespaceRequest { namespace: name.into(), ..Default::default() };
        let mut client = self.service(name);
        self.patiently(client.describe_namespace(asked)).await.map(drop)
    }

    /// The types of a namespace's own search attributes there.
    pub(super) async fn types(&self, namespace: &str) -> Result<Types, Refusal> {
        let (channel, carried) = (self.channel.clone(), self.carried(namespace));
        let mut client = OperatorServiceClient::with_interceptor(channel, carried).accept_compressed(Gzip);
        let asked = operator::ListSearchAttributesRequest { namespace: namespace.into() };
        let found = self.patiently(client.list_search_attributes(asked)).await?;
        let types = found.custom_attributes.into_iter();
        Ok(types.filter_map(|(name, kind)| Some((name, Kind::try_from(kind).ok()?))).collect())
    }

    /// The answer, if it comes in time.
    async fn shortly<M>(
        &self,
        answer: impl Future<Output = Result<tonic::Response<M>, tonic::Status>>,
    ) -> Result<M, tonic::Status> {
        match tokio::time::timeout(UPSTREAM_TIME_MAX, answer).await {
            Ok(answer) => answer.map(tonic::Response::into_inner),
            Err(_) => Err(tonic::Status::deadline_exceeded("no answer in time")),
        }
    }

    /// The same in words for our clients.
    async fn patiently<M>(
        &self,
        answer: impl Future<Output = Result<tonic::Response<M>, tonic::Status>>,
    ) -> Result<M, Refusal> {
        self.shortly(answer).await.map_err(|status| match status.code() {
            // A connection that broke is "cancelled" to its client.
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => self.away(status.message()),
            _ => Refusal::of(&status),
        })
    }

    /// What clients hear while the cluster cannot be reached; they try again.
    fn away(&self, reason: &str) -> Refusal {
        let message = format!("the Temporal cluster at {} cannot be reached: {reason}", self.authority);
        Refusal::new(Code::Unavailable, message)
    }
}

/// Routes of front-door mode: the methods of schedules are ours, the rest of Temporal's services is forwarded, and what the
/// cluster can do is remembered.
pub(super) fn router(app: &Arc<App>, router: Router, ours: WorkflowServiceServer<Temporal>) -> Router {
    let name = <WorkflowServiceServer<Temporal> as NamedService>::NAME;
    let router =
        OURS.iter().fold(router, |router, rpc| router.route_service(&format!("/{name}/{rpc}"), ours.clone()));
    let (of, answered) = (app.clone(), ours.clone());
    let capable = move |request: Request| capabilities::answer(of.clone(), request, answered.clone());
    let router = router.route(&format!("/{name}/{}", capabilities::RPC), any(capable));
    [name, "temporal.api.operatorservice.v1.OperatorService"].into_iter().fold(router, |router, service| {
        let app = app.clone();
        let theirs = move |request: Request| async move { forward(&app, request).await };
        router.route(&format!("/{service}/{{*rpc}}"), any(theirs))
    })
}

/// The detail of a refusal, if it has one of this kind.
fn detail<M: Message + prost::Name + Default>(status: &tonic::Status) -> Option<M> {
    let carried = punctual_temporal_api::google::rpc::Status::decode(status.details()).ok()?;
    let of_kind = carried.details.iter().find(|detail| detail.type_url.ends_with(&M::full_name()))?;
    M::decode(of_kind.value.as_slice()).ok()
}
