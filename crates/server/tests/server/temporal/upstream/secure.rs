//! A cluster over TLS must prove who it is, and is shown our key for our own requests alone.

use punctual_server::{Config, Server};
use punctual_temporal_api::temporal::api::enums::v1::{
    ScheduleOverlapPolicy as Overlap, WorkflowExecutionStatus as Status,
};
use punctual_temporal_api::temporal::api::workflowservice::v1 as service;
use punctual_testkit::certificate;
use tonic::Code;

use super::super::{Front, creation};
use super::fake::Fake;
use super::{completed, count, shown, trigger};
use crate::bed::{Bed, config};

/// A server that trusts the fake's authority and knows the cluster by this name.
fn trusting(fake: &Fake, name: &str) -> Config {
    let mut config = config();
    config.temporal_upstream = format!("https://{name}:{}", fake.address.port());
    config.temporal_upstream_ca = certificate::root().display().to_string();
    config
}

fn asked_namespace() -> service::DescribeNamespaceRequest {
    service::DescribeNamespaceRequest { namespace: "default".into(), ..Default::default() }
}

#[tokio::test]
async fn workflows_start_over_tls_with_the_key_that_a_file_has() {
    let fake = Fake::secure().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, "open-sesame\n").unwrap();
    let mut config = trusting(&fake, "localhost");
    config.temporal_upstream_key_file = file.display().to_string();
    let mut front = Front::on(Bed::with(config).await).await;

    front.create(creation("s")).await.unwrap();
    let heard = fake.state.metadata.lock().unwrap().clone();
    assert_eq!(heard.get("authorization").unwrap(), "Bearer open-sesame");
    assert_eq!(heard.get("temporal-namespace").unwrap(), "default");
    trigger(&mut front, "t1", Overlap::AllowAll).await;
    fake.state.see(count(1)).await;
    fake.state.end(0, completed("1"));
    shown(&mut front, 1, Status::Completed).await;

    front.client.describe_namespace(asked_namespace()).await.unwrap();
    let heard = fake.state.metadata.lock().unwrap().clone();
    assert_eq!(heard.get("authorization"), None, "a client has the rights that it shows itself");
    front.bed.stop().await;
}

#[tokio::test]
async fn whoever_cannot_prove_to_be_the_cluster_hears_nothing() {
    let fake = Fake::secure().await;
    let mut unknown = trusting(&fake, "localhost");
    unknown.temporal_upstream_ca.clear();
    for config in [trusting(&fake, "127.0.0.1"), unknown] {
        let mut front = Front::on(Bed::with(config).await).await;
        let away = front.client.describe_namespace(asked_namespace()).await.unwrap_err();
        assert_eq!(away.code(), Code::Unavailable);
        assert!(away.message().contains("certificate"), "{away}");
        front.bed.stop().await;
    }
}

#[tokio::test]
async fn files_that_are_not_what_they_should_be_are_refused_by_name() {
    let fake = Fake::secure().await;
    let folder = tempfile::tempdir().unwrap();
    let (missing, empty) = (folder.path().join("missing"), folder.path().join("empty"));
    std::fs::write(&empty, "\n").unwrap();
    for file in [missing.display().to_string(), empty.display().to_string()] {
        let mut authorities = trusting(&fake, "localhost");
        authorities.temporal_upstream_ca = file.clone();
        let mut key = trusting(&fake, "localhost");
        key.temporal_upstream_key_file = file;
        for (config, name) in [(authorities, "temporal_upstream_ca"), (key, "temporal_upstream_key_file")] {
            let Err(error) = Server::start(config).await else { panic!("{name} was accepted") };
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
