//! Clients ask what the cluster can do before anything else: they are answered while it is away, too.

use std::time::Duration;

use punctual_temporal_api::temporal::api::schedule::v1 as wire;
use punctual_temporal_api::temporal::api::workflowservice::v1 as service;
use tonic::{Code, Request, Response, Status};

use super::super::{Front, creation};
use super::fake::Fake;
use super::front;
use crate::bed::{Bed, config};

async fn asked(front: &mut Front) -> Result<Response<service::GetSystemInfoResponse>, Status> {
    front.client.get_system_info(service::GetSystemInfoRequest {}).await
}

async fn release(front: &mut Front) -> String {
    asked(front).await.unwrap().into_inner().server_version
}

#[tokio::test]
async fn the_last_answer_stays_while_the_cluster_is_away() {
    let fake = Fake::new().await;
    let mut front = front(&fake).await;
    front.create(creation("s")).await.unwrap();
    let answer = asked(&mut front).await.unwrap();
    assert_eq!(answer.metadata().get("from-behind").unwrap(), "yes", "all of the answer is the cluster's");
    assert_eq!(answer.into_inner().server_version, "1.99.0");
    *fake.state.release.lock().unwrap() = Ok("1.99.1".into());
    assert_eq!(release(&mut front).await, "1.99.1", "nothing remembered is told while the cluster is there");

    let (address, state) = (fake.address, fake.state.clone());
    fake.stop().await;
    // A client that comes now, as the command line does each time.
    let mut front = Front::on(front.bed).await;
    let answer = asked(&mut front).await.unwrap();
    assert_eq!(answer.metadata().get("from-behind").unwrap(), "yes");
    assert_eq!(answer.into_inner().server_version, "1.99.1");
    assert_eq!(front.list("").await.unwrap(), ["s"]);
    front.describe("s").await.unwrap();
    let pause = wire::SchedulePatch { pause: "the cluster is away".into(), ..Default::default() };
    front.patch("s", "p1", pause).await.unwrap();
    assert!(front.describe("s").await.unwrap().schedule.unwrap().state.unwrap().paused);

    *state.release.lock().unwrap() = Ok("1.99.2".into());
    let _fake = Fake::at(address, state).await;
    assert_eq!(release(&mut front).await, "1.99.2");
    front.bed.stop().await;
}

#[tokio::test]
async fn before_the_first_answer_ours_is_given() {
    let fake = Fake::new().await;
    let mut front = front(&fake).await;
    fake.stop().await;
    let can = asked(&mut front).await.unwrap().into_inner().capabilities.unwrap();
    assert!(can.supports_schedules);
    front.bed.stop().await;
}

#[tokio::test]
async fn a_refusal_is_told_and_not_remembered() {
    let fake = Fake::new().await;
    let mut front = front(&fake).await;
    assert_eq!(release(&mut front).await, "1.99.0");
    *fake.state.release.lock().unwrap() = Err(Status::permission_denied("not you"));
    let refused = asked(&mut front).await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::PermissionDenied, "not you"));
    // Part of it is there, and says that the rest is not.
    *fake.state.release.lock().unwrap() = Err(Status::unavailable("no hosts"));
    assert_eq!(release(&mut front).await, "1.99.0");
    front.bed.stop().await;
}

#[tokio::test]
async fn a_cluster_that_says_nothing_is_not_waited_for_longer_than_clients_wait() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = config();
    config.temporal_upstream = format!("http://{}", silent.local_addr().unwrap());
    let mut front = Front::on(Bed::with(config).await).await;
    let mut asked = Request::new(service::GetSystemInfoRequest {});
    asked.set_timeout(Duration::from_secs(2));
    front.client.get_system_info(asked).await.expect("an answer within the time that the client has");
    front.bed.stop().await;
}
