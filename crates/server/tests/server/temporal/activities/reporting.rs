//! Reports: retries as the policy and the worker say, reports that come twice or too late, and reports by name.

use std::time::Duration;

use punctual_api::v1;
use punctual_temporal_api::temporal::api::common::v1::Payloads;
use punctual_temporal_api::temporal::api::failure::v1::ApplicationFailureInfo;
use punctual_temporal_api::temporal::api::workflowservice::v1::{
    PollActivityTaskQueueResponse, RecordActivityTaskHeartbeatByIdRequest,
    RespondActivityTaskCanceledByIdRequest, RespondActivityTaskCompletedByIdRequest,
    RespondActivityTaskCompletedRequest, RespondActivityTaskFailedByIdRequest,
};
use tonic::Code;

use super::bench::{Bench, application, assert_not_found, in_json, of_type, payload};

const QUICK: &str =
    r#""retry": { "attempts_max": 3, "backoff_first": "0.010s", "non_retryable": ["Fatal"] }"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_attempt_is_made_again_as_the_policy_says() {
    let mut bench = Bench::new().await;
    bench.schedule("s", QUICK).await;
    let first = bench.started("s").await;
    let details = in_json(r#"{ "card": 1 }"#);
    let info =
        ApplicationFailureInfo { r#type: "Declined".into(), details, ..ApplicationFailureInfo::default() };
    bench.fail(&first, application(info)).await.unwrap();
    let second = bench.poll().await;
    assert_eq!((second.activity_id.as_str(), second.attempt), (first.activity_id.as_str(), 2));
    let failure = bench.run(&first).await.failure.unwrap();
    assert_eq!((failure.kind.as_str(), failure.message.as_str()), ("Declined", "it broke"));
    assert_eq!(
        failure.details,
        Some(punctual_api::json::from_json(br#"{ "json": { "card": 1 } }"#).unwrap())
    );
    let logs = v1::RunLogsRequest { run_id: first.activity_id.clone(), ..v1::RunLogsRequest::default() };
    let lines = bench.bed.client.runs.logs(logs).await.unwrap().into_inner().lines;
    assert!(lines[0].text.contains("at line 7"), "{lines:?}");

    assert_not_found(bench.complete(&first, None).await);
    bench.fail(&second, of_type("Declined")).await.unwrap();
    let third = bench.poll().await;
    bench.fail(&third, of_type("Declined")).await.unwrap();
    let run = bench.run(&first).await;
    assert_eq!((run.attempt, run.outcome()), (3, v1::outcome::Word::Failed));
    bench.bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_nothing_mends_ends_the_run() {
    let mut bench = Bench::new().await;
    bench.schedule("s", QUICK).await;
    let by_type = bench.started("s").await;
    bench.fail(&by_type, of_type("Fatal")).await.unwrap();
    let by_flag = bench.started("s").await;
    let info = ApplicationFailureInfo { non_retryable: true, ..ApplicationFailureInfo::default() };
    bench.fail(&by_flag, application(info)).await.unwrap();
    for task in [by_type, by_flag] {
        let run = bench.run(&task).await;
        assert_eq!((run.attempt, run.outcome()), (1, v1::outcome::Word::Failed));
    }
    bench.bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_may_say_when_the_next_attempt_is() {
    let mut bench = Bench::new().await;
    bench.schedule("slow", r#""retry": { "backoff_first": "3600s", "backoff_max": "3600s" }"#).await;
    let task = bench.started("slow").await;
    let next_retry_delay = Some(prost_types::Duration { seconds: 0, nanos: 10_000_000 });
    let info = ApplicationFailureInfo { next_retry_delay, ..ApplicationFailureInfo::default() };
    bench.fail(&task, application(info)).await.unwrap();
    let second = bench.poll().await;
    assert_eq!(second.attempt, 2, "long before the hour of the policy");
    bench.complete(&second, None).await.unwrap();
    bench.bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_counts_once_and_repeating_it_is_harmless() {
    let mut bench = Bench::new().await;
    bench.schedule("s", QUICK).await;
    let task = bench.started("s").await;
    bench.complete(&task, in_json("1")).await.unwrap();
    bench.complete(&task, in_json("1")).await.unwrap();
    assert_not_found(bench.complete(&task, in_json("2")).await);
    assert_not_found(bench.fail(&task, of_type("Late")).await);
    assert_not_found(bench.cancelled(&task).await);
    assert_not_found(bench.beat(&task, None).await);
    let run = bench.run(&task).await;
    assert_eq!(run.result, Some(punctual_api::json::from_json(br#"{ "json": 1 }"#).unwrap()));

    // Of reports that come at the same time one counts, and all hear which.
    let task = bench.started("s").await;
    let reports = (0..8).map(|number: u32| {
        let mut client = bench.temporal.clone();
        let asked = RespondActivityTaskCompletedRequest {
            namespace: "default".into(),
            task_token: task.task_token.clone(),
            result: in_json(&number.to_string()),
            ..RespondActivityTaskCompletedRequest::default()
        };
        tokio::spawn(async move { (number, client.respond_activity_task_completed(asked).await) })
    });
    let mut counted = Vec::new();
    for report in reports.collect::<Vec<_>>() {
        match report.await.unwrap() {
            (number, Ok(_)) => counted.push(number),
            (_, refused) => assert_not_found(refused),
        }
    }
    let [number] = counted[..] else { panic!("one counts, found {counted:?}") };
    let kept = punctual_api::json::from_json(format!(r#"{{ "json": {number} }}"#).as_bytes()).unwrap();
    assert_eq!(bench.run(&task).await.result, Some(kept));
    bench.bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_after_the_end_of_the_lease_or_the_run_does_not_count() {
    let mut bench = Bench::new().await;
    let more = format!(r#"{QUICK}, "timeouts": {{ "heartbeat": "1s" }}"#);
    bench.schedule("s", &more).await;
    let silent = bench.started("s").await;
    let second = bench.poll().await;
    assert_eq!((second.attempt, second.activity_id.as_str()), (2, silent.activity_id.as_str()));
    assert_not_found(bench.complete(&silent, in_json("1")).await);
    assert_not_found(bench.beat(&silent, None).await);
    bench.complete(&second, in_json("2")).await.unwrap();
    assert_eq!(bench.run(&second).await.attempt, 2);

    let task = bench.started("s").await;
    let asked = v1::TerminateRunRequest { run_id: task.activity_id.clone(), ..Default::default() };
    bench.bed.client.runs.terminate(asked).await.unwrap();
    assert_not_found(bench.beat(&task, None).await);
    assert_not_found(bench.complete(&task, None).await);
    assert_eq!(bench.run(&task).await.outcome(), v1::outcome::Word::Terminated);
    bench.bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_token_does_nothing() {
    let mut bench = Bench::new().await;
    bench.schedule("s", "").await;
    let task = bench.started("s").await;
    let garbage = PollActivityTaskQueueResponse { task_token: b"\xff\xff".to_vec(), ..task.clone() };
    assert_eq!(bench.complete(&garbage, None).await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(bench.beat(&garbage, None).await.unwrap_err().code(), Code::InvalidArgument);
    // The last letters are the name of the worker that has it.
    let mut token = task.task_token.clone();
    *token.last_mut().unwrap() ^= 1;
    let stranger = PollActivityTaskQueueResponse { task_token: token, ..task.clone() };
    assert_not_found(bench.complete(&stranger, None).await);
    assert_not_found(bench.beat(&stranger, None).await);
    let elsewhere = RespondActivityTaskCompletedRequest {
        namespace: "other".into(),
        task_token: task.task_token.clone(),
        ..RespondActivityTaskCompletedRequest::default()
    };
    assert_not_found(bench.temporal.respond_activity_task_completed(elsewhere).await);
    bench.complete(&task, None).await.unwrap();
    bench.bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_can_be_meant_by_its_names() {
    let mut bench = Bench::new().await;
    bench.schedule("s", QUICK).await;
    let task = bench.started("s").await;
    let names = |task: &PollActivityTaskQueueResponse| {
        let execution = task.workflow_execution.clone().unwrap();
        ("default".to_owned(), execution.workflow_id, execution.run_id, task.activity_id.clone())
    };
    let (namespace, workflow_id, run_id, activity_id) = names(&task);
    let beat = RecordActivityTaskHeartbeatByIdRequest {
        namespace,
        workflow_id,
        run_id,
        activity_id,
        details: in_json("7"),
        ..Default::default()
    };
    for other in [
        RecordActivityTaskHeartbeatByIdRequest { workflow_id: "other".into(), ..beat.clone() },
        RecordActivityTaskHeartbeatByIdRequest { run_id: "99".into(), ..beat.clone() },
        RecordActivityTaskHeartbeatByIdRequest { activity_id: "99".into(), ..beat.clone() },
        RecordActivityTaskHeartbeatByIdRequest { activity_id: "send".into(), ..beat.clone() },
        RecordActivityTaskHeartbeatByIdRequest { namespace: "other".into(), ..beat.clone() },
    ] {
        assert_not_found(bench.temporal.record_activity_task_heartbeat_by_id(other).await);
    }
    let heard = bench.temporal.record_activity_task_heartbeat_by_id(beat.clone()).await.unwrap();
    assert!(!heard.into_inner().cancel_requested);
    let failed = RespondActivityTaskFailedByIdRequest {
        namespace: beat.namespace.clone(),
        activity_id: beat.activity_id.clone(),
        failure: Some(of_type("Oops")),
        last_heartbeat_details: in_json("8"),
        ..Default::default()
    };
    bench.temporal.respond_activity_task_failed_by_id(failed).await.unwrap();
    let second = bench.poll().await;
    assert_eq!((second.attempt, second.heartbeat_details.clone()), (2, in_json("8")));
    let completed = RespondActivityTaskCompletedByIdRequest {
        namespace: beat.namespace.clone(),
        workflow_id: beat.workflow_id.clone(),
        activity_id: beat.activity_id.clone(),
        result: in_json("9"),
        ..Default::default()
    };
    bench.temporal.respond_activity_task_completed_by_id(completed.clone()).await.unwrap();
    assert_eq!(bench.run(&task).await.outcome(), v1::outcome::Word::Succeeded);
    assert_not_found(bench.temporal.respond_activity_task_completed_by_id(completed).await);

    let task = bench.started("s").await;
    bench.cancel(&task).await;
    let (namespace, workflow_id, run_id, activity_id) = names(&task);
    let cancelled = RespondActivityTaskCanceledByIdRequest {
        namespace,
        workflow_id,
        run_id,
        activity_id,
        ..Default::default()
    };
    bench.temporal.respond_activity_task_canceled_by_id(cancelled).await.unwrap();
    assert_eq!(bench.run(&task).await.outcome(), v1::outcome::Word::Cancelled);
    bench.bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_too_large_fails_the_run_for_good() {
    let mut bench = Bench::new().await;
    bench.schedule("s", QUICK).await;
    let large = || Some(Payloads { payloads: vec![payload("binary/plain", &vec![0; 1024 * 1024])] });
    let task = bench.started("s").await;
    bench.complete(&task, large()).await.unwrap();
    let run = bench.run(&task).await;
    assert_eq!((run.attempt, run.outcome()), (1, v1::outcome::Word::Failed));
    assert_eq!(run.failure.unwrap().kind, "payload_too_large");

    let task = bench.started("s").await;
    assert!(bench.beat(&task, large()).await.unwrap(), "the worker is told to stop");
    assert_eq!(bench.run(&task).await.failure.unwrap().kind, "payload_too_large");
    assert_not_found(bench.beat(&task, None).await);
    assert!(tokio::time::timeout(Duration::from_secs(20), bench.bed.stop()).await.is_ok());
}
