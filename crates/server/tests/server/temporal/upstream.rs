//! A cluster behind this server: what is not ours reaches it as it came.

mod fake;
mod forwarding;
mod capabilities;
mod secure;
mod starts;
mod callbacks;
mod left;

use history::history_event::Attributes;
use punctual_server::Config;
use punctual_temporal_api::temporal::api::common::v1::Payloads;
use punctual_temporal_api::temporal::api::enums::v1::{
    ScheduleOverlapPolicy as Overlap, WorkflowExecutionStatus as Status,
};
use punctual_temporal_api::temporal::api::failure::v1::Failure;
use punctual_temporal_api::temporal::api::history::v1 as history;
use punctual_temporal_api::temporal::api::schedule::v1 as wire;

use super::{Front, creation, json};
use crate::bed::{Bed, config, on_file};
use fake::{Fake, Workflow};

/// A server in front of a cluster.
async fn front(fake: &Fake) -> Front {
    Front::on(Bed::with(before(fake)).await).await
}

fn before(fake: &Fake) -> Config {
    let mut config = config();
    config.temporal_upstream = format!("http://{}", fake.address);
    config
}

/// The same with a file, so that it can be started again.
struct Durable {
    config: Config,
    _directory: tempfile::TempDir,
}

impl Durable {
    fn before(fake: &Fake) -> Durable {
        let directory = tempfile::tempdir().unwrap();
        let mut config = on_file(&directory.path().join("punctual.db"));
        config.temporal_upstream = before(fake).temporal_upstream;
        Durable { config, _directory: directory }
    }

    /// One whose schedule `s` has started a workflow.
    async fn begun(fake: &Fake) -> (Durable, Front, Workflow) {
        let durable = Durable::before(fake);
        let mut front = durable.start().await;
        front.create(creation("s")).await.unwrap();
        trigger(&mut front, "t1", Overlap::AllowAll).await;
        let workflow = fake.state.see(count(1)).await.remove(0);
        (durable, front, workflow)
    }

    async fn start(&self) -> Front {
        Front::on(Bed::with(self.config.clone()).await).await
    }

    /// The same server without the cluster.
    async fn start_alone(&self) -> Front {
        let mut config = self.config.clone();
        config.temporal_upstream.clear();
        Front::on(Bed::with(config).await).await
    }
}

/// Starts one workflow.
async fn trigger(front: &mut Front, request: &str, overlap: Overlap) {
    let trigger = wire::TriggerImmediatelyRequest { overlap_policy: overlap.into(), ..Default::default() };
    let patch = wire::SchedulePatch { trigger_immediately: Some(trigger), ..Default::default() };
    front.patch("s", request, patch).await.unwrap();
}

fn completed(text: &str) -> Attributes {
    Attributes::WorkflowExecutionCompletedEventAttributes(
        history::WorkflowExecutionCompletedEventAttributes {
            result: Some(Payloads { payloads: vec![json(text)] }),
            ..Default::default()
        },
    )
}

fn failed(message: &str) -> Attributes {
    let failure = Some(Failure { message: message.into(), source: "test".into(), ..Default::default() });
    Attributes::WorkflowExecutionFailedEventAttributes(history::WorkflowExecutionFailedEventAttributes {
        failure,
        ..Default::default()
    })
}

/// Waits until the last start of the schedule has this status.
async fn shown(front: &mut Front, count: usize, status: Status) {
    let mut statuses = Vec::new();
    for _ in 0..600 {
        let recent = front.describe("s").await.unwrap().info.unwrap().recent_actions;
        statuses = recent.iter().map(wire::ScheduleActionResult::start_workflow_status).collect();
        if statuses.len() == count && statuses.last() == Some(&status) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{count} starts, the last {status:?}, were wanted; found {statuses:?}");
}

fn count(count: usize) -> impl Fn(&[Workflow]) -> bool {
    move |list| list.len() == count
}

/// Waits until so many workflows are shown as running.
async fn running(front: &mut Front, wanted: usize) {
    for _ in 0..600 {
        let info = front.describe("s").await.unwrap().info.unwrap();
        if info.running_workflows.len() == wanted {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("there never were {wanted} workflows running");
}
