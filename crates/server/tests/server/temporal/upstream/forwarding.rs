//! Requests that are not ours go to the cluster and come back unchanged.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use punctual_temporal_api::temporal::api::common::v1::Payload;
use punctual_temporal_api::temporal::api::workflowservice::v1 as service;
use tonic::{Code, Request};

use super::super::{Front, creation, refusal};
use super::fake::Fake;
use super::front;

fn asked_namespace() -> service::DescribeNamespaceRequest {
    service::DescribeNamespaceRequest { namespace: "default".into(), ..Default::default() }
}

#[tokio::test]
async fn metadata_goes_both_ways_compressed_or_not() {
    let fake = Fake::new().await;
    let mut front = front(&fake).await;
    let mut asked = Request::new(asked_namespace());
    asked.metadata_mut().insert("client-name", "temporal-test".parse().unwrap());
    asked.metadata_mut().insert("authorization", "Bearer key".parse().unwrap());
    asked.metadata_mut().insert_bin("odd-bin", tonic::metadata::MetadataValue::from_bytes(&[0, 255]));

    let answer = front.client.describe_namespace(asked).await.unwrap();

    assert_eq!(answer.metadata().get("from-behind").unwrap(), "yes");
    assert_eq!(answer.metadata().get("grpc-encoding").unwrap(), "gzip");
    let heard = fake.state.metadata.lock().unwrap().clone();
    assert_eq!(heard.get("client-name").unwrap(), "temporal-test");
    assert_eq!(heard.get("authorization").unwrap(), "Bearer key");
    assert_eq!(heard.get("grpc-encoding").unwrap(), "gzip");
    assert_eq!(&*heard.get_bin("odd-bin").unwrap().to_bytes().unwrap(), [0, 255]);
    front.bed.stop().await;
}

#[tokio::test]
async fn refusals_come_with_their_details() {
    let fake = Fake::new().await;
    let mut front = front(&fake).await;
    let refused =
        front.client.describe_workflow_execution(service::DescribeWorkflowExecutionRequest::default());
    let (code, message, details) = refusal(&refused.await.unwrap_err());
    assert_eq!((code, message.as_str()), (Code::NotFound, "workflow not found"));
    assert_eq!(details, ["NotFoundFailure"]);
    let unserved = front.client.poll_activity_task_queue(service::PollActivityTaskQueueRequest::default());
    assert_eq!(unserved.await.unwrap_err().code(), Code::Unimplemented, "the cluster's word, not ours");
    front.bed.stop().await;
}

#[tokio::test]
async fn messages_stream_both_ways_while_the_call_is_open() {
    let fake = Fake::new().await;
    let front = front(&fake).await;
    let channel = tonic::transport::Channel::from_shared(format!("http://{}", front.bed.address)).unwrap();
    let mut client = tonic::client::Grpc::new(channel.connect().await.unwrap());
    client.ready().await.unwrap();
    let (say, said) = tokio::sync::mpsc::channel::<Payload>(1);
    let said = futures_util::stream::unfold(said, async |mut said| Some((said.recv().await?, said)));
    let codec = tonic_prost::ProstCodec::<Payload, Payload>::default();
    let path = "/some.Other/Echo".parse().unwrap();
    let mut heard = client.streaming(Request::new(said), path, codec).await.unwrap().into_inner();
    for number in 0..3_u8 {
        // The next message is sent when the one before has come back: nothing is held until the end.
        say.send(Payload { data: vec![number; 100_000].into(), ..Default::default() }).await.unwrap();
        assert_eq!(heard.next().await.unwrap().unwrap().data[0], number);
    }
    drop(say);
    assert!(heard.next().await.is_none());
    assert_eq!(heard.trailers().await.unwrap().unwrap().get("last-words").unwrap(), "bye");
    front.bed.stop().await;
}

#[tokio::test]
async fn a_deadline_is_kept_and_a_stop_does_not_wait() {
    let fake = Fake::new().await;
    let mut front = front(&fake).await;
    let mut asked = Request::new(service::GetWorkflowExecutionHistoryRequest::default());
    asked.set_timeout(Duration::from_millis(100));
    let begun = Instant::now();
    let late = front.client.get_workflow_execution_history(asked).await.unwrap_err();
    assert!(matches!(late.code(), Code::DeadlineExceeded | Code::Cancelled), "{late}");
    assert!(begun.elapsed() < Duration::from_secs(10));

    let mut client = front.client.clone();
    let (sent, waiting) = tokio::sync::oneshot::channel();
    let held = tokio::spawn(async move {
        sent.send(()).unwrap();
        client.get_workflow_execution_history(service::GetWorkflowExecutionHistoryRequest::default()).await
    });
    waiting.await.unwrap();
    assert!(front.bed.stop().await < Duration::from_secs(5));
    assert_eq!(held.await.unwrap().unwrap_err().code(), Code::Unavailable);
}

#[tokio::test]
async fn while_the_cluster_is_away_clients_hear_that_they_may_try_again() {
    let fake = Fake::new().await;
    let mut front = front(&fake).await;
    fake.stop().await;
    let away = front.client.describe_namespace(asked_namespace()).await.unwrap_err();
    assert_eq!(away.code(), Code::Unavailable);
    assert!(away.message().contains("the Temporal cluster at 127.0.0.1:"), "{away}");
    front.bed.stop().await;
}

#[tokio::test]
async fn schedules_and_health_stay_here_and_namespaces_are_the_clusters() {
    let fake = Fake::new().await;
    let mut front = front(&fake).await;
    front.create(creation("s")).await.unwrap();
    assert_eq!(front.list("").await.unwrap(), ["s"]);
    let mut asked = creation("s");
    asked.namespace = "theirs".into();
    front.create(asked.clone()).await.unwrap();
    asked.namespace = "nobodys".into();
    assert_eq!(front.create(asked).await.unwrap_err().code(), Code::NotFound);
    let channel = tonic::transport::Channel::from_shared(format!("http://{}", front.bed.address)).unwrap();
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel.connect().await.unwrap());
    let asked = tonic_health::pb::HealthCheckRequest { service: String::new() };
    health.check(asked).await.unwrap();
    front.bed.stop().await;
}

#[tokio::test]
async fn without_a_cluster_nothing_is_forwarded() {
    let mut front = Front::new().await;
    let refused =
        front.client.describe_workflow_execution(service::DescribeWorkflowExecutionRequest::default());
    assert_eq!(refused.await.unwrap_err().code(), Code::Unimplemented);
    front.bed.stop().await;
}
