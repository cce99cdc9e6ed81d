//! Temporal's words on the outside, our verbs on the inside: its clients manage schedules here as they are, and the activity
//! workers of its SDKs take our runs.
//!
//! A request becomes one verb of the engine, as everywhere in this crate. What Temporal has and we do not is kept with the
//! schedule (`kept`) and shown again. Nothing outside this folder knows Temporal's messages.

mod schedules;
mod looks;
mod describe;
mod spec;
mod action;
mod policies;
mod kept;
pub(crate) mod payloads;
mod query;
mod attributes;
mod namespaces;
mod system;
mod operator;
pub(crate) mod activities;
pub(crate) mod upstream;
mod unserved;
mod refusal;

pub(crate) use kept::updated;

use std::sync::Arc;

use axum::Router;
use axum::routing::any;
use tonic::codec::CompressionEncoding::Gzip;
use tonic::server::NamedService;
use tonic::{Request, Response, Status};

use crate::app::App;
use crate::grpc::answer;
use crate::limits::MESSAGE_BYTES_MAX;
use crate::metrics::Protocol;

/// Temporal's messages, by the short names that this folder uses.
mod wire {
    pub(super) use punctual_temporal_api::temporal::api::common::v1 as common;
    pub(super) use punctual_temporal_api::temporal::api::enums::v1 as enums;
    pub(super) use punctual_temporal_api::temporal::api::errordetails::v1 as details;
    pub(super) use punctual_temporal_api::temporal::api::failure::v1 as failure;
    pub(super) use punctual_temporal_api::temporal::api::history::v1 as history;
    pub(super) use punctual_temporal_api::temporal::api::namespace::v1 as namespace;
    pub(super) use punctual_temporal_api::temporal::api::operatorservice::v1 as operator;
    pub(super) use punctual_temporal_api::temporal::api::replication::v1 as replication;
    pub(super) use punctual_temporal_api::temporal::api::schedule::v1 as schedule;
    pub(super) use punctual_temporal_api::temporal::api::taskqueue::v1 as taskqueue;
    pub(super) use punctual_temporal_api::temporal::api::version::v1 as version;
    pub(super) use punctual_temporal_api::temporal::api::workflow::v1 as workflow;
    pub(super) use punctual_temporal_api::temporal::api::workflowservice::v1 as service;
}

/// Temporal's services.
#[derive(Clone)]
struct Temporal(Arc<App>);

/// What a verb wants of a request: its message, or, if it must know how patient the client is, all of it.
trait Asked<M> {
    fn asked(request: Request<M>) -> Self;
}

impl<M> Asked<M> for M {
    fn asked(request: Request<M>) -> M {
        request.into_inner()
    }
}

impl<M> Asked<M> for Request<M> {
    fn asked(request: Request<M>) -> Request<M> {
        request
    }
}

macro_rules! rpcs {
    ($($package:literal $service:ident in $wire:ident::$module:ident {
        $($method:ident($request:ident) -> $response:ident = $name:literal: $verb:path;)*
    })*) => {$(
        #[tonic::async_trait]
        impl wire::$wire::$module::$service for Temporal {
            $(async fn $method(
                &self,
                request: Request<wire::$wire::$request>,
            ) -> Result<Response<wire::$wire::$response>, Status> {
                let rpc = concat!($package, ".", stringify!($service), "/", $name);
                let verb = $verb(&self.0, Asked::asked(request));
                Ok(Response::new(answer(&self.0, Protocol::Grpc, rpc, verb).await?))
            })*
        }
    )*
        /// The rpcs that are served, for the metrics.
        pub(crate) const RPCS: &[&str] = &[$($(concat!($package, ".", stringify!($service), "/", $name)),*),*];
    };
}

rpcs! {
    "temporal.api.workflowservice.v1" WorkflowService in service::workflow_service_server {
        create_schedule(CreateScheduleRequest) -> CreateScheduleResponse = "CreateSchedule": schedules::create;
        describe_schedule(DescribeScheduleRequest) -> DescribeScheduleResponse = "DescribeSchedule": looks::describe;
        update_schedule(UpdateScheduleRequest) -> UpdateScheduleResponse = "UpdateSchedule": schedules::update;
        patch_schedule(PatchScheduleRequest) -> PatchScheduleResponse = "PatchSchedule": schedules::patch;
        list_schedule_matching_times(ListScheduleMatchingTimesRequest) -> ListScheduleMatchingTimesResponse
            = "ListScheduleMatchingTimes": looks::matching_times;
        delete_schedule(DeleteScheduleRequest) -> DeleteScheduleResponse = "DeleteSchedule": schedules::delete;
        list_schedules(ListSchedulesRequest) -> ListSchedulesResponse = "ListSchedules": looks::list;
        count_schedules(CountSchedulesRequest) -> CountSchedulesResponse = "CountSchedules": looks::count;
        get_system_info(GetSystemInfoRequest) -> GetSystemInfoResponse = "GetSystemInfo": system::system;
        get_cluster_info(GetClusterInfoRequest) -> GetClusterInfoResponse = "GetClusterInfo": system::cluster;
        describe_namespace(DescribeNamespaceRequest) -> DescribeNamespaceResponse
            = "DescribeNamespace": namespaces::describe;
        list_namespaces(ListNamespacesRequest) -> ListNamespacesResponse = "ListNamespaces": namespaces::list;
        register_namespace(RegisterNamespaceRequest) -> RegisterNamespaceResponse
            = "RegisterNamespace": namespaces::register;
        poll_activity_task_queue(PollActivityTaskQueueRequest) -> PollActivityTaskQueueResponse
            = "PollActivityTaskQueue": activities::poll;
        respond_activity_task_completed(RespondActivityTaskCompletedRequest) -> RespondActivityTaskCompletedResponse
            = "RespondActivityTaskCompleted": activities::completed;
        respond_activity_task_completed_by_id(RespondActivityTaskCompletedByIdRequest)
            -> RespondActivityTaskCompletedByIdResponse
            = "RespondActivityTaskCompletedById": activities::completed_by_id;
        respond_activity_task_failed(RespondActivityTaskFailedRequest) -> RespondActivityTaskFailedResponse
            = "RespondActivityTaskFailed": activities::failed;
        respond_activity_task_failed_by_id(RespondActivityTaskFailedByIdRequest)
            -> RespondActivityTaskFailedByIdResponse
            = "RespondActivityTaskFailedById": activities::failed_by_id;
        respond_activity_task_canceled(RespondActivityTaskCanceledRequest) -> RespondActivityTaskCanceledResponse
            = "RespondActivityTaskCanceled": activities::cancelled;
        respond_activity_task_canceled_by_id(RespondActivityTaskCanceledByIdRequest)
            -> RespondActivityTaskCanceledByIdResponse
            = "RespondActivityTaskCanceledById": activities::cancelled_by_id;
        record_activity_task_heartbeat(RecordActivityTaskHeartbeatRequest) -> RecordActivityTaskHeartbeatResponse
            = "RecordActivityTaskHeartbeat": activities::heartbeat;
        record_activity_task_heartbeat_by_id(RecordActivityTaskHeartbeatByIdRequest)
            -> RecordActivityTaskHeartbeatByIdResponse
            = "RecordActivityTaskHeartbeatById": activities::heartbeat_by_id;
        record_worker_heartbeat(RecordWorkerHeartbeatRequest) -> RecordWorkerHeartbeatResponse
            = "RecordWorkerHeartbeat": activities::worker_heartbeat;
        shutdown_worker(ShutdownWorkerRequest) -> ShutdownWorkerResponse = "ShutdownWorker": activities::shutdown;
    }
    "temporal.api.operatorservice.v1" OperatorService in operator::operator_service_server {
        list_search_attributes(ListSearchAttributesRequest) -> ListSearchAttributesResponse
            = "ListSearchAttributes": operator::list;
        add_search_attributes(AddSearchAttributesRequest) -> AddSearchAttributesResponse
            = "AddSearchAttributes": operator::add;
        remove_search_attributes(RemoveSearchAttributesRequest) -> RemoveSearchAttributesResponse
            = "RemoveSearchAttributes": operator::remove;
    }
}

/// Temporal's services as routes. Its clients compress every request, so that each service must read that.
pub(crate) fn router(app: &Arc<App>, router: Router) -> Router {
    let services = Temporal(app.clone());
    macro_rules! made {
        ($server:ty) => {
            <$server>::new(services.clone())
                .send_compressed(Gzip)
                .accept_compressed(Gzip)
                .max_decoding_message_size(MESSAGE_BYTES_MAX)
                .max_encoding_message_size(MESSAGE_BYTES_MAX)
        };
    }
    macro_rules! add {
        ($router:expr, $server:ty) => {{
            let (server, name) = (made!($server), <$server as NamedService>::NAME);
            let served = RPCS.iter().filter(|rpc| rpc.starts_with(name));
            let router =
                served.fold($router, |router, rpc| router.route_service(&format!("/{rpc}"), server.clone()));
            router.route(&format!("/{name}/{{*rpc}}"), any(unserved::answer))
        }};
    }
    if app.upstream.is_some() {
        let ours = made!(wire::service::workflow_service_server::WorkflowServiceServer<Temporal>);
        return upstream::router(app, router, ours);
    }
    let router = add!(router, wire::service::workflow_service_server::WorkflowServiceServer<Temporal>);
    add!(router, wire::operator::operator_service_server::OperatorServiceServer<Temporal>)
}
