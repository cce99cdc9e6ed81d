//! Temporal's contract, by its own generated client: every rpc, its refusals, and what they carry.

mod looking;
mod schedules;
mod filters;
mod refusals;
mod runs;
mod surroundings;
mod activities;
mod upstream;

use prost::Message;
use punctual_temporal_api::ScheduleAction;
use punctual_temporal_api::google::rpc;
use punctual_temporal_api::temporal::api::common::v1 as common;
use punctual_temporal_api::temporal::api::operatorservice::v1 as operator;
use punctual_temporal_api::temporal::api::schedule::v1 as schedule;
use punctual_temporal_api::temporal::api::taskqueue::v1::TaskQueue;
use punctual_temporal_api::temporal::api::workflow::v1::NewWorkflowExecutionInfo;
use punctual_temporal_api::temporal::api::workflowservice::v1 as service;
use service::workflow_service_client::WorkflowServiceClient;
use tonic::codec::CompressionEncoding::Gzip;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::bed::Bed;

/// A server and a client that speaks to it as Temporal's clients do: everything compressed.
pub struct Front {
    pub bed: Bed,
    pub client: WorkflowServiceClient<Channel>,
    pub operator: operator::operator_service_client::OperatorServiceClient<Channel>,
}

impl Front {
    pub async fn new() -> Front {
        Front::on(Bed::new().await).await
    }

    pub async fn on(bed: Bed) -> Front {
        let channel = Channel::from_shared(format!("http://{}", bed.address)).unwrap();
        let channel = channel.connect().await.unwrap();
        let client = WorkflowServiceClient::new(channel.clone());
        let operator = operator::operator_service_client::OperatorServiceClient::new(channel);
        Front {
            bed,
            client: client.send_compressed(Gzip).accept_compressed(Gzip),
            operator: operator.send_compressed(Gzip).accept_compressed(Gzip),
        }
    }

    pub async fn create(&mut self, asked: service::CreateScheduleRequest) -> Result<Vec<u8>, Status> {
        Ok(self.client.create_schedule(asked).await?.into_inner().conflict_token)
    }

    pub async fn describe(&mut self, id: &str) -> Result<service::DescribeScheduleResponse, Status> {
        let asked = service::DescribeScheduleRequest { namespace: "default".into(), schedule_id: id.into() };
        Ok(self.client.describe_schedule(asked).await?.into_inner())
    }

    pub async fn patch(
        &mut self,
        id: &str,
        request: &str,
        patch: schedule::SchedulePatch,
    ) -> Result<(), Status> {
        let asked = service::PatchScheduleRequest {
            namespace: "default".into(),
            schedule_id: id.into(),
            request_id: request.into(),
            patch: Some(patch),
            ..Default::default()
        };
        self.client.patch_schedule(asked).await.map(drop)
    }

    pub async fn update(&mut self, asked: service::UpdateScheduleRequest) -> Result<(), Status> {
        self.client.update_schedule(asked).await.map(drop)
    }

    pub async fn delete(&mut self, id: &str) -> Result<(), Status> {
        let asked = service::DeleteScheduleRequest {
            namespace: "default".into(),
            schedule_id: id.into(),
            ..Default::default()
        };
        self.client.delete_schedule(asked).await.map(drop)
    }

    pub async fn list(&mut self, query: &str) -> Result<Vec<String>, Status> {
        let asked = service::ListSchedulesRequest {
            namespace: "default".into(),
            query: query.into(),
            ..Default::default()
        };
        let listed = self.client.list_schedules(asked).await?.into_inner().schedules;
        Ok(listed.into_iter().map(|entry| entry.schedule_id).collect())
    }

    pub async fn add_attributes(&mut self, attributes: &[(&str, i32)]) -> Result<(), Status> {
        let asked = operator::AddSearchAttributesRequest {
            namespace: "default".into(),
            search_attributes: attributes.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect(),
        };
        self.operator.add_search_attributes(asked).await.map(drop)
    }
}

/// A workflow of the type `Report` on the task queue `reports`.
pub fn workflow() -> NewWorkflowExecutionInfo {
    NewWorkflowExecutionInfo {
        workflow_id: "report".into(),
        workflow_type: Some(common::WorkflowType { name: "Report".into() }),
        task_queue: Some(TaskQueue { name: "reports".into(), ..Default::default() }),
        input: Some(common::Payloads { payloads: vec![json("{\"day\":1}")] }),
        ..Default::default()
    }
}

pub fn json(text: &str) -> common::Payload {
    common::Payload {
        metadata: [("encoding".to_owned(), b"json/plain".to_vec())].into(),
        data: text.to_owned().into(),
        ..Default::default()
    }
}

/// A request to create a schedule that starts nothing by itself.
pub fn creation(id: &str) -> service::CreateScheduleRequest {
    service::CreateScheduleRequest {
        namespace: "default".into(),
        schedule_id: id.into(),
        request_id: format!("create-{id}"),
        schedule: Some(schedule::Schedule {
            spec: Some(schedule::ScheduleSpec::default()),
            action: Some(ScheduleAction::start_workflow(&workflow())),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// The same with this cron string.
pub fn with_cron(id: &str, cron: &str) -> service::CreateScheduleRequest {
    let mut asked = creation(id);
    let spec = schedule::ScheduleSpec { cron_string: vec![cron.into()], ..Default::default() };
    asked.schedule.as_mut().unwrap().spec = Some(spec);
    asked
}

/// What a refusal carries: its code, its words, and the names of its details, from the bytes that clients read.
pub fn refusal(status: &Status) -> (Code, String, Vec<String>) {
    let carried = rpc::Status::decode(status.details()).unwrap();
    assert_eq!((carried.code, &*carried.message), (status.code() as i32, status.message()));
    let details = carried.details.iter().map(|detail| detail.type_url.rsplit('.').next().unwrap().to_owned());
    (status.code(), status.message().to_owned(), details.collect())
}
