//! A server, a client of Temporal's contract beside our own, and what every story begins with.

use std::time::Duration;

use prost::{Message, Name};
use punctual_api::{json, v1};
use punctual_server::Config;
use punctual_temporal_api::google::rpc;
use punctual_temporal_api::temporal::api::common::v1::{Payload, Payloads};
use punctual_temporal_api::temporal::api::errordetails::v1::NotFoundFailure;
use punctual_temporal_api::temporal::api::failure::v1::failure::FailureInfo;
use punctual_temporal_api::temporal::api::failure::v1::{ApplicationFailureInfo, Failure};
use punctual_temporal_api::temporal::api::taskqueue::v1::TaskQueue;
use punctual_temporal_api::temporal::api::workflowservice::v1::workflow_service_client::WorkflowServiceClient;
use punctual_temporal_api::temporal::api::workflowservice::v1::{
    PollActivityTaskQueueRequest, PollActivityTaskQueueResponse, RecordActivityTaskHeartbeatRequest,
    RespondActivityTaskCanceledRequest, RespondActivityTaskCompletedRequest,
    RespondActivityTaskFailedRequest,
};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::bed::{self, Bed, config};

pub struct Bench {
    pub bed: Bed,
    pub temporal: WorkflowServiceClient<Channel>,
}

impl Bench {
    pub async fn new() -> Bench {
        Bench::with(config()).await
    }

    pub async fn with(config: Config) -> Bench {
        let mut bed = Bed::with(config).await;
        bed.queue().await;
        let temporal = connect(&bed).await;
        Bench { bed, temporal }
    }

    /// A schedule that starts by hand, on the queue `work`; `more` are further fields of its action.
    pub async fn schedule(&mut self, id: &str, more: &str) {
        let more = if more.is_empty() { String::new() } else { format!(", {more}") };
        let action =
            format!(r#"{{ "action": {{ "queue": {{ "queue": "work", "handler": "send"{more} }} }} }}"#);
        let schedule = Some(json::from_json(action.as_bytes()).unwrap());
        let asked = v1::CreateScheduleRequest { schedule, ..bed::creation(id, "") };
        self.bed.client.schedules.create(asked).await.unwrap();
    }

    /// Starts a run and takes it.
    pub async fn started(&mut self, id: &str) -> PollActivityTaskQueueResponse {
        self.bed.trigger(id).await;
        self.poll().await
    }

    /// The next task; it must come in time.
    pub async fn poll(&mut self) -> PollActivityTaskQueueResponse {
        let task = self.temporal.poll_activity_task_queue(patient(asking("w1"))).await.unwrap().into_inner();
        assert!(!task.task_token.is_empty(), "a task comes in time");
        task
    }

    pub async fn complete(
        &mut self,
        task: &PollActivityTaskQueueResponse,
        result: Option<Payloads>,
    ) -> Result<(), Status> {
        let (namespace, task_token) = ("default".to_owned(), task.task_token.clone());
        let asked =
            RespondActivityTaskCompletedRequest { namespace, task_token, result, ..Default::default() };
        self.temporal.respond_activity_task_completed(asked).await.map(drop)
    }

    pub async fn fail(
        &mut self,
        task: &PollActivityTaskQueueResponse,
        failure: Failure,
    ) -> Result<(), Status> {
        let (namespace, task_token) = ("default".to_owned(), task.task_token.clone());
        let failure = Some(failure);
        let asked = RespondActivityTaskFailedRequest { namespace, task_token, failure, ..Default::default() };
        self.temporal.respond_activity_task_failed(asked).await.map(drop)
    }

    pub async fn cancelled(&mut self, task: &PollActivityTaskQueueResponse) -> Result<(), Status> {
        let (namespace, task_token) = ("default".to_owned(), task.task_token.clone());
        let asked = RespondActivityTaskCanceledRequest { namespace, task_token, ..Default::default() };
        self.temporal.respond_activity_task_canceled(asked).await.map(drop)
    }

    /// Whether the attempt should stop.
    pub async fn beat(
        &mut self,
        task: &PollActivityTaskQueueResponse,
        details: Option<Payloads>,
    ) -> Result<bool, Status> {
        let (namespace, task_token) = ("default".to_owned(), task.task_token.clone());
        let asked =
            RecordActivityTaskHeartbeatRequest { namespace, task_token, details, ..Default::default() };
        let heard = self.temporal.record_activity_task_heartbeat(asked).await?;
        Ok(heard.into_inner().cancel_requested)
    }

    pub async fn run(&mut self, task: &PollActivityTaskQueueResponse) -> v1::Run {
        self.bed.run(&task.activity_id).await
    }

    pub async fn cancel(&mut self, task: &PollActivityTaskQueueResponse) {
        let asked = v1::CancelRunRequest { run_id: task.activity_id.clone(), ..Default::default() };
        self.bed.client.runs.cancel(asked).await.unwrap();
    }
}

pub async fn connect(bed: &Bed) -> WorkflowServiceClient<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{}", bed.address)).unwrap();
    WorkflowServiceClient::new(endpoint.connect().await.unwrap())
        .send_compressed(tonic::codec::CompressionEncoding::Gzip)
        .accept_compressed(tonic::codec::CompressionEncoding::Gzip)
        .max_decoding_message_size(16 * 1024 * 1024)
}

/// A poll of the queue `work` by a worker of this name.
pub fn asking(worker: &str) -> PollActivityTaskQueueRequest {
    PollActivityTaskQueueRequest {
        namespace: "default".into(),
        task_queue: Some(TaskQueue { name: "work".into(), ..TaskQueue::default() }),
        identity: worker.into(),
        worker_instance_key: format!("key of {worker}"),
        ..PollActivityTaskQueueRequest::default()
    }
}

/// As patient as a test is.
pub fn patient(asked: PollActivityTaskQueueRequest) -> tonic::Request<PollActivityTaskQueueRequest> {
    let mut request = tonic::Request::new(asked);
    request.set_timeout(Duration::from_secs(30));
    request
}

pub fn payload(encoding: &str, data: &[u8]) -> Payload {
    let metadata = [("encoding".to_owned(), encoding.as_bytes().to_vec())].into();
    Payload { metadata, data: data.to_vec().into(), ..Payload::default() }
}

pub fn in_json(text: &str) -> Option<Payloads> {
    Some(Payloads { payloads: vec![payload("json/plain", text.as_bytes())] })
}

pub fn application(info: ApplicationFailureInfo) -> Failure {
    Failure {
        message: "it broke".into(),
        stack_trace: "at line 7".into(),
        failure_info: Some(FailureInfo::ApplicationFailureInfo(info)),
        ..Failure::default()
    }
}

/// A failure of this type.
pub fn of_type(word: &str) -> Failure {
    application(ApplicationFailureInfo { r#type: word.into(), ..ApplicationFailureInfo::default() })
}

/// A refusal that says, as SDKs understand it, that there is no such attempt.
pub fn assert_not_found<T: std::fmt::Debug>(answer: Result<T, Status>) {
    let status = answer.unwrap_err();
    assert_eq!(status.code(), Code::NotFound, "{status}");
    let details = rpc::Status::decode(status.details()).unwrap().details;
    assert_eq!(details[0].type_url, NotFoundFailure::type_url());
}
