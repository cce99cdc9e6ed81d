//! Starts of schedules become workflows of the cluster, once each, and their ends come back.

use history::history_event::Attributes;
use punctual_temporal_api::ScheduleAction;
use punctual_temporal_api::temporal::api::common::v1::Memo;
use punctual_temporal_api::temporal::api::enums::v1::{
    ScheduleOverlapPolicy as Overlap, WorkflowExecutionStatus as Status, WorkflowIdReusePolicy,
};
use punctual_temporal_api::temporal::api::history::v1 as history;
use punctual_temporal_api::temporal::api::schedule::v1 as wire;

use super::super::{creation, json, workflow};
use super::fake::Fake;
use super::{Durable, completed, count, failed, front, running, shown, trigger};

#[tokio::test]
async fn a_workflow_is_started_with_all_that_was_asked_and_told_how_the_last_one_ended() {
    let fake = Fake::new().await;
    let mut front = front(&fake).await;
    let mut asked = creation("s");
    let memo = Memo { fields: [("why".to_owned(), json("\"test\""))].into() };
    let info = punctual_temporal_api::temporal::api::workflow::v1::NewWorkflowExecutionInfo {
        memo: Some(memo.clone()),
        ..workflow()
    };
    asked.schedule.as_mut().unwrap().action = Some(ScheduleAction::start_workflow(&info));
    front.create(asked).await.unwrap();
    let described = front.describe("s").await.unwrap().schedule.unwrap().action.unwrap();
    let described = described.started_workflow().unwrap().unwrap();
    assert_eq!(
        (described.task_queue.unwrap().name.as_str(), described.memo),
        ("reports", Some(memo.clone()))
    );

    trigger(&mut front, "t1", Overlap::AllowAll).await;
    let first = fake.state.see(count(1)).await.remove(0).request;
    assert!(first.workflow_id.starts_with("report-20"), "{}", first.workflow_id);
    assert_eq!(first.workflow_type.unwrap().name, "Report");
    assert_eq!((first.task_queue.unwrap().name.as_str(), first.memo), ("reports", Some(memo)));
    assert_eq!(first.input, workflow().input);
    assert_eq!(
        first.workflow_id_reuse_policy,
        WorkflowIdReusePolicy::AllowDuplicate as i32,
        "a person asked"
    );
    let attributes = first.search_attributes.unwrap().indexed_fields;
    assert_eq!(&*attributes["TemporalScheduledById"].data, b"\"s\"");
    assert!(attributes.contains_key("TemporalScheduledStartTime"));
    assert_eq!((first.last_completion_result, first.continued_failure), (None, None));
    let running = front.describe("s").await.unwrap().info.unwrap().running_workflows;
    assert_eq!((running.len(), &running[0].workflow_id), (1, &first.workflow_id));

    fake.state.end(0, completed("\"res1\""));
    shown(&mut front, 1, Status::Completed).await;
    trigger(&mut front, "t2", Overlap::AllowAll).await;
    let second = fake.state.see(count(2)).await.remove(1).request;
    assert_eq!(second.last_completion_result.unwrap().payloads, [json("\"res1\"")]);
    fake.state.end(1, failed("oops"));
    shown(&mut front, 2, Status::Failed).await;
    trigger(&mut front, "t3", Overlap::AllowAll).await;
    let third = fake.state.see(count(3)).await.remove(2).request;
    assert_eq!(third.last_completion_result.unwrap().payloads, [json("\"res1\"")]);
    let failure = third.continued_failure.unwrap();
    assert_eq!(
        (failure.message.as_str(), failure.source.as_str()),
        ("oops", "test"),
        "as the cluster said it"
    );
    front.bed.stop().await;
}

#[tokio::test]
async fn those_in_the_way_are_cancelled_or_terminated_at_the_cluster() {
    let fake = Fake::new().await;
    let mut front = front(&fake).await;
    front.create(creation("s")).await.unwrap();
    trigger(&mut front, "t1", Overlap::AllowAll).await;
    fake.state.see(count(1)).await;
    trigger(&mut front, "t2", Overlap::CancelOther).await;
    let seen = fake.state.see(|list| list[0].told == ["cancel"]).await;
    assert_eq!(seen.len(), 1, "the next one waits for its end");
    let cancelled = history::WorkflowExecutionCanceledEventAttributes::default();
    fake.state.end(0, Attributes::WorkflowExecutionCanceledEventAttributes(cancelled));
    fake.state.see(count(2)).await;
    trigger(&mut front, "t3", Overlap::TerminateOther).await;
    fake.state.see(|list| list[1].told == ["terminate"] && list.len() == 3).await;
    front.bed.stop().await;
}

#[tokio::test]
async fn a_run_that_goes_on_as_another_one_has_not_ended() {
    let fake = Fake::new().await;
    let mut front = front(&fake).await;
    front.create(creation("s")).await.unwrap();
    trigger(&mut front, "t1", Overlap::AllowAll).await;
    fake.state.see(count(1)).await;
    let next = history::WorkflowExecutionContinuedAsNewEventAttributes {
        new_execution_run_id: "run-0-next".into(),
        ..Default::default()
    };
    fake.state.end(0, Attributes::WorkflowExecutionContinuedAsNewEventAttributes(next));
    trigger(&mut front, "t2", Overlap::Skip).await;
    let info = front.describe("s").await.unwrap().info.unwrap();
    assert_eq!((info.running_workflows.len(), info.overlap_skipped), (1, 1));
    fake.state.end(0, completed("1"));
    shown(&mut front, 1, Status::Completed).await;
    front.bed.stop().await;
}

#[tokio::test]
async fn nothing_is_lost_or_doubled_when_either_side_is_started_again() {
    let fake = Fake::new().await;
    let (durable, front, _) = Durable::begun(&fake).await;

    // The run that it was continued as has another request id: to ask for the start again would be refused.
    fake.state.workflows.send_modify(|list| list[0].request.request_id = "another".into());

    front.bed.stop().await;
    let mut front = durable.start().await;

    let (address, state) = (fake.address, fake.state.clone());
    fake.stop().await;
    trigger(&mut front, "t2", Overlap::AllowAll).await;
    let fake = Fake::at(address, state).await;
    fake.state.see(count(2)).await;
    fake.state.end(0, completed("1"));
    fake.state.end(1, completed("2"));
    running(&mut front, 0).await;
    let info = front.describe("s").await.unwrap().info.unwrap();
    assert_eq!(info.recent_actions.len(), 2);
    assert!(info.recent_actions.iter().all(|it| it.start_workflow_status() == Status::Completed));
    fake.state.see(|list| list.len() == 2 && list.iter().all(|it| it.asked == 1)).await;
    front.bed.stop().await;
}

#[tokio::test]
async fn a_time_of_the_spec_is_started_once_for_ever() {
    let fake = Fake::new().await;
    let mut front = front(&fake).await;
    let mut asked = creation("s");
    let every_second = wire::IntervalSpec {
        interval: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
        ..Default::default()
    };
    let spec = wire::ScheduleSpec { interval: vec![every_second], ..Default::default() };
    asked.schedule.as_mut().unwrap().spec = Some(spec);
    front.create(asked).await.unwrap();
    let first = fake.state.see(|list| !list.is_empty()).await.remove(0).request;
    assert_eq!(first.workflow_id_reuse_policy, WorkflowIdReusePolicy::RejectDuplicate as i32);
    front.bed.stop().await;
}

#[tokio::test]
async fn who_takes_over_a_cancelled_start_waits_for_its_end() {
    // Once a run that was asked to stop was simply over when its server was: the next workflow began beside the other one.
    let fake = Fake::new().await;
    let (durable, mut front, _) = Durable::begun(&fake).await;
    trigger(&mut front, "t2", Overlap::CancelOther).await;
    fake.state.see(|list| list[0].told == ["cancel"]).await;
    front.bed.stop().await;

    let front = durable.start().await;
    let seen = fake.state.see(|list| list[0].told == ["cancel", "cancel"]).await;
    assert_eq!(seen.len(), 1, "the next one waits for its end");
    let cancelled = history::WorkflowExecutionCanceledEventAttributes::default();
    fake.state.end(0, Attributes::WorkflowExecutionCanceledEventAttributes(cancelled));
    fake.state.see(count(2)).await;
    front.bed.stop().await;
}
