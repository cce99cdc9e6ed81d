//! Every rpc once: the gRPC services and the calls of HTTP are made from the same table.

pub(crate) mod schedules;
pub(crate) mod looks;
pub(crate) mod watch;
pub(crate) mod runs;
pub(crate) mod queues;
pub(crate) mod workers;
pub(crate) mod info;
pub(crate) mod operate;
pub(crate) mod nodes;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use futures_util::{FutureExt, StreamExt, stream::BoxStream};
use punctual_api::{json, v1};
use tonic::codec::CompressionEncoding::Gzip;
use tonic::server::NamedService;
use tonic::{Code, Request, Response, Status};

use crate::app::App;
use crate::http::Asked;
use crate::limits::MESSAGE_BYTES_MAX;
use crate::metrics::Protocol;
use crate::status::{Fault, INTERNAL, UNKNOWN_PATH};
use crate::temporal;

/// The gRPC services.
#[derive(Clone)]
pub(crate) struct Services(pub(crate) Arc<App>);

/// A refusal in the words of one contract.
pub(crate) trait Refuses: From<Fault> {
    /// The gRPC code.
    fn code(&self) -> Code;
}

impl Refuses for Fault {
    fn code(&self) -> Code {
        self.reason.code
    }
}

/// Answers one request: counts it, and turns a panic into a refusal, so that it ends that one request only.
pub(crate) async fn answer<M, R: Refuses>(
    app: &App,
    protocol: Protocol,
    rpc: &str,
    verb: impl Future<Output = Result<M, R>>,
) -> Result<M, R> {
    let begun = Instant::now();
    let answer = AssertUnwindSafe(verb).catch_unwind().await;
    let answer = answer.unwrap_or_else(|_| {
        tracing::error!(rpc, "a request panicked");
        Err(Fault::new(&INTERNAL, "the server made a mistake; its log says which").into())
    });
    let code = answer.as_ref().map_or_else(Refuses::code, |_| Code::Ok);
    app.requests.finished(protocol, rpc, code, begun.elapsed());
    answer
}

macro_rules! rpcs {
    ($($service:ident in $module:ident {
        $($method:ident($request:ident) -> $response:ident = $name:literal: $verb:path;)*
        $({ $($more:tt)* })?
    })*) => {
        $(
            #[tonic::async_trait]
            impl v1::$module::$service for Services {
                $(async fn $method(&self, request: Request<v1::$request>) -> Result<Response<v1::$response>, Status> {
                    let rpc = concat!("punctual.v1.", stringify!($service), "/", $name);
                    let verb = $verb(&self.0, request.into_inner());
                    Ok(Response::new(answer(&self.0, Protocol::Grpc, rpc, verb).await?))
                })*
                $($($more)*)?
            }
        )*

        /// Answers a request of HTTP, by the rpc behind its path.
        pub(crate) async fn call(app: &Arc<App>, rpc: &'static str, asked: &Asked) -> Result<String, Fault> {
            match rpc {
                $($(concat!("punctual.v1.", stringify!($service), "/", $name) => {
                    let verb = async {
                        let answer = $verb(app, asked.read()?).await?;
                        json::to_json::<v1::$response>(&answer).map_err(unprintable)
                    };
                    answer(app, Protocol::Http, rpc, Box::pin(verb)).await
                })*)*
                _ => Err(Fault::new(&UNKNOWN_PATH, format!("{rpc} is not served"))),
            }
        }
    };
}

rpcs! {
    Schedules in schedules_server {
        create(CreateScheduleRequest) -> ChangeResponse = "Create": schedules::create;
        describe(DescribeScheduleRequest) -> DescribeScheduleResponse = "Describe": looks::describe;
        list(ListSchedulesRequest) -> ListSchedulesResponse = "List": looks::list;
        count(CountSchedulesRequest) -> CountSchedulesResponse = "Count": looks::count;
        update(UpdateScheduleRequest) -> ChangeResponse = "Update": schedules::update;
        pause(PauseScheduleRequest) -> ChangeResponse = "Pause": schedules::pause;
        resume(ResumeScheduleRequest) -> ChangeResponse = "Resume": schedules::resume;
        trigger(TriggerScheduleRequest) -> ChangeResponse = "Trigger": schedules::trigger;
        backfill(BackfillScheduleRequest) -> ChangeResponse = "Backfill": schedules::backfill;
        cancel_backfill(CancelBackfillRequest) -> ChangeResponse = "CancelBackfill": schedules::cancel_backfill;
        skip(SkipOccurrenceRequest) -> ChangeResponse = "Skip": schedules::skip;
        unskip(UnskipOccurrenceRequest) -> ChangeResponse = "Unskip": schedules::unskip;
        delete(DeleteScheduleRequest) -> ChangeResponse = "Delete": schedules::delete;
        preview(PreviewScheduleRequest) -> PreviewScheduleResponse = "Preview": looks::preview;
        why(WhyScheduleRequest) -> WhyScheduleResponse = "Why": looks::why;
        ledger(ScheduleLedgerRequest) -> ScheduleLedgerResponse = "Ledger": looks::ledger;
        {
            type WatchStream = BoxStream<'static, Result<v1::WatchEvent, Status>>;

            async fn watch(
                &self,
                request: Request<v1::WatchScheduleRequest>,
            ) -> Result<Response<Self::WatchStream>, Status> {
                let verb = async { watch::events(&self.0, request.into_inner()) };
                let events = answer(&self.0, Protocol::Grpc, watch::RPC, verb).await?;
                Ok(Response::new(events.map(Ok).boxed()))
            }
        }
    }
    Runs in runs_server {
        list(ListRunsRequest) -> ListRunsResponse = "List": runs::list;
        describe(DescribeRunRequest) -> DescribeRunResponse = "Describe": runs::describe;
        cancel(CancelRunRequest) -> StopRunResponse = "Cancel": runs::cancel;
        terminate(TerminateRunRequest) -> StopRunResponse = "Terminate": runs::terminate;
        logs(RunLogsRequest) -> RunLogsResponse = "Logs": runs::logs;
        enqueue(EnqueueRequest) -> EnqueueResponse = "Enqueue": runs::enqueue;
        retry(RetryRunRequest) -> RetryRunResponse = "Retry": runs::retry;
    }
    Queues in queues_server {
        create(CreateQueueRequest) -> CreateQueueResponse = "Create": queues::create;
        list(ListQueuesRequest) -> ListQueuesResponse = "List": queues::list;
        describe(DescribeQueueRequest) -> DescribeQueueResponse = "Describe": queues::describe;
        update(UpdateQueueRequest) -> UpdateQueueResponse = "Update": queues::update;
        pause(PauseQueueRequest) -> UpdateQueueResponse = "Pause": queues::pause;
        resume(ResumeQueueRequest) -> UpdateQueueResponse = "Resume": queues::resume;
        purge(PurgeQueueRequest) -> PurgeQueueResponse = "Purge": queues::purge;
        retry_dead_letters(RetryDeadLettersRequest) -> RetryDeadLettersResponse = "RetryDeadLetters": queues::retry;
    }
    Workers in workers_server {
        claim(ClaimRequest) -> ClaimResponse = "Claim": workers::claim;
        heartbeat(HeartbeatRequest) -> HeartbeatResponse = "Heartbeat": workers::heartbeat;
        complete(CompleteRequest) -> CompleteResponse = "Complete": workers::complete;
    }
    Server in server_server {
        info(InfoRequest) -> InfoResponse = "Info": info::info;
        stats(StatsRequest) -> StatsResponse = "Stats": operate::stats;
        examine(ExamineRequest) -> ExamineResponse = "Examine": operate::examine;
        nodes(NodesRequest) -> NodesResponse = "Nodes": nodes::list;
        drain(DrainRequest) -> DrainResponse = "Drain": nodes::drain;
        {
            type BackupStream = BoxStream<'static, Result<v1::BackupPiece, Status>>;

            async fn backup(
                &self,
                _request: Request<v1::BackupRequest>,
            ) -> Result<Response<Self::BackupStream>, Status> {
                let rpc = "punctual.v1.Server/Backup";
                let verb = operate::backup(&self.0);
                Ok(Response::new(answer(&self.0, Protocol::Grpc, rpc, verb).await?))
            }
        }
    }
}

/// An answer that the contract does not allow: what is kept was checked, so this is a mistake of ours.
fn unprintable(error: json::JsonError) -> Fault {
    tracing::error!(%error, "an answer cannot be printed");
    Fault::new(&INTERNAL, "the answer cannot be written as JSON; the log says why")
}

/// The services as routes.
pub(crate) fn router(app: &Arc<App>) -> Router {
    let services = Services(app.clone());
    macro_rules! add {
        ($router:expr, $server:ty) => {{
            let server = <$server>::new(services.clone())
                .send_compressed(Gzip)
                .accept_compressed(Gzip)
                .max_decoding_message_size(MESSAGE_BYTES_MAX)
                .max_encoding_message_size(MESSAGE_BYTES_MAX);
            let path = format!("/{}/{{*rpc}}", <$server as NamedService>::NAME);
            $router.route_service(&path, server)
        }};
    }
    let router = add!(Router::new(), v1::schedules_server::SchedulesServer<Services>);
    let router = add!(router, v1::runs_server::RunsServer<Services>);
    let router = add!(router, v1::queues_server::QueuesServer<Services>);
    let router = add!(router, v1::workers_server::WorkersServer<Services>);
    let router = add!(router, v1::server_server::ServerServer<Services>);
    // Compressed too: some clients compress every request, and give up a server that does not read their first one.
    let health = tonic_health::pb::health_server::HealthServer::new(services)
        .send_compressed(Gzip)
        .accept_compressed(Gzip);
    let router = router.route_service("/grpc.health.v1.Health/{*rpc}", health);
    temporal::router(app, router)
}
