//! Polls: what a task says, how long a poll is held, and what becomes of runs whose worker went away.

use std::time::{Duration, Instant};

use punctual_api::v1;
use punctual_temporal_api::ScheduleAction;
use punctual_temporal_api::temporal::api::common::v1::Payloads;
use punctual_temporal_api::temporal::api::enums::v1::WorkflowExecutionStatus;
use punctual_temporal_api::temporal::api::schedule::v1::SchedulePatch;
use punctual_temporal_api::temporal::api::workflowservice::v1::{
    PollActivityTaskQueueRequest, PollActivityTaskQueueResponse, RecordWorkerHeartbeatRequest,
    RespondActivityTaskCompletedRequest, ShutdownWorkerRequest,
};
use tonic::Code;
use tonic::transport::Endpoint;

use super::super::{Front, creation};

use super::bench::{Bench, asking, connect, in_json, patient, payload};

#[tokio::test(flavor = "multi_thread")]
async fn a_task_says_what_an_sdk_needs() {
    let mut bench = Bench::new().await;
    let more = r#""input": { "json": { "customer": 7 } },
        "timeouts": { "start_to_close": "60s", "schedule_to_close": "300s", "heartbeat": "10s" },
        "retry": { "attempts_max": 5, "backoff_first": "2s", "backoff_factor": 1.5, "backoff_max": "9s", "non_retryable": ["Fatal"] }"#;
    bench.schedule("s", more).await;
    let task = bench.started("s").await;

    assert_eq!(task.activity_type.as_ref().unwrap().name, "send");
    assert_eq!(task.workflow_type.as_ref().unwrap().name, "send");
    assert_eq!((task.workflow_namespace.as_str(), task.attempt), ("default", 1));
    assert_eq!(task.input, in_json(r#"{"customer":7}"#));
    assert_eq!(task.heartbeat_details, None);
    let run = bench.run(&task).await;
    let execution = task.workflow_execution.clone().unwrap();
    assert_eq!((execution.workflow_id, execution.run_id), (run.name.clone(), run.run_id.clone()));
    assert!(run.worker_id.contains("w1"), "{}", run.worker_id);
    let seconds = |length: &Option<prost_types::Duration>| length.as_ref().unwrap().seconds;
    let timeouts = [&task.start_to_close_timeout, &task.schedule_to_close_timeout, &task.heartbeat_timeout];
    assert_eq!(timeouts.map(seconds), [60, 300, 10]);
    let retry = task.retry_policy.clone().unwrap();
    assert_eq!((retry.maximum_attempts, retry.backoff_coefficient), (5, 1.5));
    assert_eq!((seconds(&retry.initial_interval), seconds(&retry.maximum_interval)), (2, 9));
    assert_eq!(retry.non_retryable_error_types, ["Fatal"]);
    assert_eq!(task.scheduled_time, run.created_at);
    assert_eq!((task.started_time, task.current_attempt_scheduled_time), (run.started_at, run.created_at));
    let header = task.header.clone().unwrap().fields;
    assert_eq!(&*header["punctual-schedule-id"].data, br#""s""#);
    assert!(header["punctual-nominal-time"].data.starts_with(b"\"20"));

    bench.complete(&task, in_json(r#"{ "sent": 3 }"#)).await.unwrap();
    let run = bench.run(&task).await;
    assert_eq!(run.outcome(), v1::outcome::Word::Succeeded);
    let sent = punctual_api::json::from_json(br#"{ "json": { "sent": 3 } }"#).unwrap();
    assert_eq!(run.result, Some(sent), "JSON is JSON to whoever asks by our own contract");
    bench.bed.trigger("s").await;
    assert_eq!(bench.bed.claim().await.last_result, run.result, "the next run is told of it");
    bench.bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_of_temporal_scheduled_comes_byte_for_byte() {
    let mut front = Front::new().await;
    let mut secret = payload("binary/encrypted", &[0, 255]);
    secret.metadata.insert("key".into(), vec![1, 2]);
    let given = Payloads { payloads: vec![secret, payload("json/plain", b"9007199254740993")] };
    let mut asked = creation("s");
    let action = asked.schedule.as_mut().unwrap().action.as_mut().unwrap();
    let mut workflow = action.started_workflow().unwrap().unwrap();
    workflow.input = Some(given.clone());
    *action = ScheduleAction::start_workflow(&workflow);
    front.create(asked).await.unwrap();
    let now = SchedulePatch { trigger_immediately: Some(Default::default()), ..Default::default() };
    front.patch("s", "t", now).await.unwrap();
    let mut asked = asking("w1");
    asked.task_queue.as_mut().unwrap().name = "reports".into();
    let task = front.client.poll_activity_task_queue(patient(asked)).await.unwrap().into_inner();
    assert_eq!(task.activity_type.unwrap().name, "Report");
    assert_eq!(task.input, Some(given.clone()));
    let done = RespondActivityTaskCompletedRequest {
        namespace: "default".into(),
        task_token: task.task_token,
        result: Some(given),
        ..Default::default()
    };
    front.client.respond_activity_task_completed(done).await.unwrap();
    let result = front.describe("s").await.unwrap().info.unwrap().recent_actions[0].clone();
    assert_eq!(result.start_workflow_status(), WorkflowExecutionStatus::Completed);
    front.bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_our_own_contract_come_as_payloads_and_results_of_any_form_are_kept() {
    let mut bench = Bench::new().await;
    bench.schedule("bytes", r#""input": { "data": "AAEC" }"#).await;
    bench.schedule("none", "").await;
    let task = bench.started("bytes").await;
    assert_eq!(task.input.as_ref().unwrap().payloads, [payload("binary/plain", &[0, 1, 2])]);
    bench.complete(&task, task.input.clone()).await.unwrap();
    let bytes = punctual_api::json::from_json(br#"{ "data": "AAEC" }"#).unwrap();
    assert_eq!(bench.run(&task).await.result, Some(bytes));
    let task = bench.started("none").await;
    assert!(task.input.as_ref().is_none_or(|input| input.payloads.is_empty()));
    bench.complete(&task, None).await.unwrap();
    assert_eq!(bench.run(&task).await.result, None);
    bench.bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_is_held_until_a_run_starts_or_its_client_is_about_to_give_up() {
    let mut bench = Bench::new().await;
    bench.schedule("s", "").await;
    let mut other = connect(&bench.bed).await;
    let waiting = tokio::spawn(async move { other.poll_activity_task_queue(patient(asking("w1"))).await });
    bench.bed.trigger("s").await;
    let task = waiting.await.unwrap().unwrap().into_inner();
    assert_eq!(task.attempt, 1);

    let begun = Instant::now();
    let mut hasty = tonic::Request::new(asking("w1"));
    hasty.set_timeout(Duration::from_millis(500));
    let empty = bench.temporal.poll_activity_task_queue(hasty).await.unwrap().into_inner();
    assert_eq!(empty, PollActivityTaskQueueResponse::default());
    assert!(begun.elapsed() >= Duration::from_millis(350), "it was held for {:?}", begun.elapsed());
    bench.bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_end_with_their_worker_and_with_the_server() {
    let mut bench = Bench::new().await;
    let mut polls = Vec::new();
    for worker in ["w1", "w1", "w2"] {
        let mut other = connect(&bench.bed).await;
        let asked = patient(asking(worker));
        polls.push(tokio::spawn(async move { other.poll_activity_task_queue(asked).await }));
    }
    let gone = ShutdownWorkerRequest {
        namespace: "default".into(),
        identity: "w1".into(),
        worker_instance_key: "key of w1".into(),
        task_queue: "work".into(),
        ..ShutdownWorkerRequest::default()
    };
    // Whether the polls are there before it or come after it, they end.
    bench.temporal.shutdown_worker(gone).await.unwrap();
    let begun = Instant::now();
    let third = polls.pop().unwrap();
    for poll in polls {
        assert_eq!(poll.await.unwrap().unwrap().into_inner(), PollActivityTaskQueueResponse::default());
    }
    assert!(!third.is_finished(), "another worker's poll goes on");
    bench.bed.stop().await;
    // The server ends it with an empty answer, or with its connection if it had not arrived yet.
    let last = third.await.unwrap();
    assert!(last.is_err() || last.unwrap().into_inner().task_token.is_empty());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_declared_later_is_an_empty_one_before() {
    let mut bench = Bench::new().await;
    let later = || {
        let mut asked = asking("w1");
        asked.task_queue.as_mut().unwrap().name = "later".into();
        asked
    };
    let mut hasty = tonic::Request::new(later());
    hasty.set_timeout(Duration::from_millis(200));
    let empty = bench.temporal.poll_activity_task_queue(hasty).await.unwrap().into_inner();
    assert_eq!(empty, PollActivityTaskQueueResponse::default());

    let mut other = connect(&bench.bed).await;
    let asked = patient(later());
    let waiting = tokio::spawn(async move { other.poll_activity_task_queue(asked).await });
    let queue = Some(v1::Queue { queue: "later".into(), ..v1::Queue::default() });
    let asked = v1::CreateQueueRequest { namespace: "default".into(), queue, request_id: String::new() };
    bench.bed.client.queues.create(asked).await.unwrap();
    let run = v1::RunOrder { handler: "h".into(), ..v1::RunOrder::default() };
    let asked = v1::EnqueueRequest {
        namespace: "default".into(),
        queue: "later".into(),
        runs: vec![run],
        ..v1::EnqueueRequest::default()
    };
    bench.bed.client.runs.enqueue(asked).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().into_inner().activity_type.unwrap().name, "h");
    bench.bed.stop().await;
}

/// An answer that is on its way when its worker goes away is lost, and nobody can know it; a claim that is being written is not.
const SILENT_MAX: u32 = 15;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_worker_went_away_while_it_was_handed_out_goes_to_another() {
    let mut bench = Bench::new().await;
    bench
        .schedule(
            "s",
            r#""retry": { "attempts_max": 2, "backoff_first": "0.001s" }, "timeouts": { "heartbeat": "2s" }"#,
        )
        .await;
    let mut silent = 0;
    for round in 0..60_u64 {
        let mut other = connect(&bench.bed).await;
        let polling =
            tokio::spawn(async move { other.poll_activity_task_queue(patient(asking("gone"))).await });
        bench.bed.trigger("s").await;
        // Aborted at another moment each time, so that some die while their claim is being written.
        tokio::time::sleep(Duration::from_micros(round * 50)).await;
        polling.abort();
        let (heard, begun) = (polling.await.ok().map(|answer| answer.unwrap().into_inner()), Instant::now());
        let task = match heard.filter(|task| !task.task_token.is_empty()) {
            Some(task) => task,
            None => tokio::time::timeout(Duration::from_secs(25), bench.poll()).await.unwrap(),
        };
        silent += u32::from(begun.elapsed() > Duration::from_secs(1));
        bench.complete(&task, None).await.unwrap();
        assert_eq!(bench.run(&task).await.outcome(), v1::outcome::Word::Succeeded);
    }
    eprintln!("{silent} silent");
    assert!(silent <= SILENT_MAX, "{silent} runs were given back only because their worker was silent");
    bench.bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_that_make_no_sense_are_refused_and_worker_heartbeats_are_heard() {
    let mut bench = Bench::new().await;
    let nowhere = PollActivityTaskQueueRequest { task_queue: None, ..asking("w1") };
    let refused = bench.temporal.poll_activity_task_queue(nowhere).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let mut calls = asking("w1");
    calls.task_queue.as_mut().unwrap().name = "punctual.calls".into();
    let refused = bench.temporal.poll_activity_task_queue(calls).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let nobody = PollActivityTaskQueueRequest { namespace: "nobody".into(), ..asking("w1") };
    let refused = bench.temporal.poll_activity_task_queue(nobody).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    bench.temporal.record_worker_heartbeat(RecordWorkerHeartbeatRequest::default()).await.unwrap();
    bench.bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_does_more_than_activities_is_told_so() {
    let bench = Bench::new().await;
    let channel =
        Endpoint::from_shared(format!("http://{}", bench.bed.address)).unwrap().connect().await.unwrap();
    for rpc in ["PollWorkflowTaskQueue", "PollNexusTaskQueue"] {
        let mut client = tonic::client::Grpc::new(channel.clone());
        client.ready().await.unwrap();
        let path = format!("/temporal.api.workflowservice.v1.WorkflowService/{rpc}").parse().unwrap();
        let codec =
            tonic_prost::ProstCodec::<PollActivityTaskQueueRequest, PollActivityTaskQueueResponse>::default();
        let refused = client.unary(tonic::Request::new(asking("w1")), path, codec).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unimplemented);
        assert!(refused.message().contains("activities only"), "{refused}");
    }
    bench.bed.stop().await;
}
