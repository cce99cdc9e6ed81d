//! Where started workflows go: a run on the queue of that name, for any worker.

use punctual_api::v1;
use punctual_temporal_api::temporal::api::enums::v1::WorkflowExecutionStatus as Status;
use punctual_temporal_api::temporal::api::schedule::v1 as wire;

use super::{Front, creation};

fn claim() -> v1::ClaimRequest {
    v1::ClaimRequest { queue: "reports".into(), ..crate::bed::claim(20) }
}

#[tokio::test]
async fn a_start_is_a_run_that_any_worker_can_take() {
    let mut front = Front::new().await;
    front.create(creation("s")).await.unwrap();
    let trigger = wire::SchedulePatch { trigger_immediately: Some(Default::default()), ..Default::default() };
    front.patch("s", "t", trigger).await.unwrap();

    let run = front.bed.client.workers.claim(claim()).await.unwrap().into_inner().runs.remove(0);

    assert_eq!(run.handler, "Report");
    let input = punctual_api::json::to_value(&run.input.clone().unwrap()).unwrap();
    assert_eq!(input, serde_json::json!({ "json": { "day": 1 } }), "our workers see JSON");
    let info = front.describe("s").await.unwrap().info.unwrap();
    assert_eq!(info.running_workflows[0].run_id, run.run_id);
    assert_eq!(info.recent_actions[0].start_workflow_status(), Status::Running);
    let end = v1::run_completion::End::Result(Default::default());
    front.bed.complete(&run, end).await;
    let info = front.describe("s").await.unwrap().info.unwrap();
    assert_eq!((info.running_workflows.len(), info.action_count), (0, 1));
    assert_eq!(info.recent_actions[0].start_workflow_status(), Status::Completed);
    let result = info.recent_actions[0].start_workflow_result.clone().unwrap();
    assert!(result.workflow_id.starts_with("report-20"), "{}", result.workflow_id);
    assert_eq!(result.run_id, run.run_id, "the one that it had while it ran");
    front.bed.stop().await;
}

#[tokio::test]
async fn an_update_by_our_own_clients_is_seen_by_temporals() {
    let mut front = Front::new().await;
    front.create(creation("s")).await.unwrap();
    front.bed.queue().await;
    front.bed.schedule("ours", "").await;
    for id in ["s", "ours"] {
        let before = front.describe(id).await.unwrap();
        assert_eq!(before.info.unwrap().update_time, None);
        let asked = v1::UpdateScheduleRequest {
            schedule_id: id.into(),
            schedule: Some(v1::Schedule { remaining_actions: Some(7), ..Default::default() }),
            update_mask: Some(prost_types::FieldMask { paths: vec!["remaining_actions".into()] }),
            ..Default::default()
        };
        front.bed.client.schedules.update(asked).await.unwrap();
        let after = front.describe(id).await.unwrap();
        assert!(after.info.unwrap().update_time.is_some(), "{id}");
        assert_eq!(after.schedule.unwrap().action, before.schedule.unwrap().action);
    }
    front.bed.stop().await;
}

#[tokio::test]
async fn a_schedule_of_another_client_is_shown_and_keeps_what_has_no_words_here() {
    let mut front = Front::new().await;
    front.bed.queue().await;
    let more = r#""spec": { "crons": [{ "text": "0 9 * * *" }] }, "policies": { "concurrency": 3, "catchup_count": 2 }"#;
    front.bed.schedule("ours", more).await;
    let found = front.describe("ours").await.unwrap();
    let workflow = found.schedule.clone().unwrap().action.unwrap().started_workflow().unwrap().unwrap();
    assert_eq!((workflow.workflow_type.unwrap().name.as_str(), workflow.workflow_id.as_str()), ("h", "ours"));
    assert_eq!(&*workflow.input.unwrap().payloads[0].data, br#"{"n":1}"#);
    let before = front.bed.describe("ours").await.schedule.unwrap();
    front
        .update(super::service::UpdateScheduleRequest {
            namespace: "default".into(),
            schedule_id: "ours".into(),
            schedule: found.schedule,
            ..Default::default()
        })
        .await
        .unwrap();
    let after = front.bed.describe("ours").await.schedule.unwrap();
    assert_eq!((after.spec, after.policies), (before.spec, before.policies));
    assert_eq!(front.list("ScheduleId = 'ours'").await.unwrap(), ["ours"]);
    front.bed.stop().await;
}
