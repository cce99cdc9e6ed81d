//! What clients ask before anything else: the server, its namespaces, its health.

use punctual_temporal_api::temporal::api::enums::v1::NamespaceState;
use punctual_temporal_api::temporal::api::workflowservice::v1 as service;
use tonic::Code;
use tonic::codec::CompressionEncoding::Gzip;
use tonic::transport::Channel;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};

use super::{Front, creation};

#[tokio::test]
async fn the_server_says_what_it_can_do() {
    let mut front = Front::new().await;
    let info = front.client.get_system_info(service::GetSystemInfoRequest {}).await.unwrap().into_inner();
    assert!(info.server_version.starts_with("1."), "clients refuse other versions");
    let can = info.capabilities.unwrap();
    assert!(can.supports_schedules && can.internal_error_differentiation && can.encoded_failure_attributes);
    let cluster =
        front.client.get_cluster_info(service::GetClusterInfoRequest {}).await.unwrap().into_inner();
    assert_eq!((cluster.persistence_store.as_str(), cluster.cluster_id.len()), ("memory", 36));
    let again = front.client.get_cluster_info(service::GetClusterInfoRequest {}).await.unwrap().into_inner();
    assert_eq!(again, cluster);
    front.bed.stop().await;
}

#[tokio::test]
async fn health_is_answered_compressed_too() {
    let front = Front::new().await;
    let channel =
        Channel::from_shared(format!("http://{}", front.bed.address)).unwrap().connect().await.unwrap();
    let mut health = HealthClient::new(channel).send_compressed(Gzip).accept_compressed(Gzip);
    let service = "temporal.api.workflowservice.v1.WorkflowService".into();
    let answer = health.check(HealthCheckRequest { service }).await.unwrap().into_inner();
    assert_eq!(answer.status(), ServingStatus::Serving);
    front.bed.stop().await;
}

#[tokio::test]
async fn namespaces_are_made_described_and_kept_apart() {
    let mut front = Front::new().await;
    let register = service::RegisterNamespaceRequest { namespace: "billing".into(), ..Default::default() };
    front.client.register_namespace(register.clone()).await.unwrap();
    let again = front.client.register_namespace(register).await.unwrap_err();
    assert_eq!(again.code(), Code::AlreadyExists);
    let describe = |namespace: &str, id: &str| service::DescribeNamespaceRequest {
        namespace: namespace.into(),
        id: id.into(),
        ..Default::default()
    };
    let found = front.client.describe_namespace(describe("billing", "")).await.unwrap().into_inner();
    let info = found.namespace_info.clone().unwrap();
    assert_eq!((info.name.as_str(), info.state()), ("billing", NamespaceState::Registered));
    assert_eq!(found.config.as_ref().unwrap().workflow_execution_retention_ttl.unwrap().seconds, 7 * 86_400);
    let by_id = front.client.describe_namespace(describe("", &info.id)).await.unwrap().into_inner();
    assert_eq!(by_id, found);
    assert_eq!(front.client.describe_namespace(describe("x", "")).await.unwrap_err().code(), Code::NotFound);
    let list = service::ListNamespacesRequest { page_size: 1, ..Default::default() };
    let first = front.client.list_namespaces(list.clone()).await.unwrap().into_inner();
    assert_eq!(first.namespaces, [found]);
    let next = service::ListNamespacesRequest { next_page_token: first.next_page_token, ..list };
    let last = front.client.list_namespaces(next).await.unwrap().into_inner();
    assert_eq!(last.namespaces[0].namespace_info.as_ref().unwrap().name, "default");
    assert!(last.next_page_token.is_empty());

    let mut asked = creation("s");
    asked.namespace = "billing".into();
    front.create(asked).await.unwrap();
    assert_eq!(front.describe("s").await.unwrap_err().code(), Code::NotFound, "it is in the other one");
    front.bed.stop().await;
}
