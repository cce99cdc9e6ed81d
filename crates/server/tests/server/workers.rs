//! Workers: claim by long poll, heartbeat, completion, retries, and reports that come too late.

use std::time::{Duration, Instant};

use punctual_api::{json, v1};
use serde_json::json as value;

use crate::bed::{Bed, claim, failure, result};
use crate::http;

#[tokio::test(flavor = "multi_thread")]
async fn a_long_poll_is_woken_by_a_start() {
    let mut bed = Bed::new().await;
    bed.queue().await;
    bed.schedule("s", "").await;
    for over_http in [false, true] {
        let (mut client, address) = (bed.client.clone(), bed.address);
        let begun = Instant::now();
        let waiting = tokio::spawn(async move {
            if over_http {
                let answer = http::call(address, "Workers/Claim", &claim(60)).await;
                json::from_json(&answer.body).unwrap()
            } else {
                client.workers.claim(claim(60)).await.unwrap().into_inner()
            }
        });
        bed.trigger("s").await;
        let claimed: v1::ClaimResponse = waiting.await.unwrap();
        let [run] = &claimed.runs[..] else { panic!("one run, found {claimed:?}") };
        assert_eq!((run.handler.as_str(), run.attempt, run.schedule_id.as_str()), ("h", 1, "s"));
        assert!(begun.elapsed() < Duration::from_secs(10));
        bed.complete(run, result(r#"{ "json": "done" }"#)).await;
    }
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_in_vain_gives_no_runs() {
    let mut bed = Bed::new().await;
    bed.queue().await;
    assert!(bed.client.workers.claim(claim(0)).await.unwrap().into_inner().runs.is_empty());
    let answer = http::call(bed.address, "Workers/Claim", &claim(1)).await;
    assert_eq!((answer.status, answer.json()), (200, value!({ "runs": [] })));
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_run_is_told_about_the_last_one() {
    let mut bed = Bed::new().await;
    bed.queue().await;
    bed.schedule("s", "").await;
    bed.trigger("s").await;
    let first = bed.claim().await;
    assert_eq!((first.last_result.as_ref(), first.last_failure.as_ref()), (None, None));
    bed.complete(&first, result(r#"{ "data": "AAEC" }"#)).await;

    bed.trigger("s").await;
    let second = bed.claim().await;
    assert_eq!(second.last_result, Some(json::from_json(br#"{ "data": "AAEC" }"#).unwrap()));
    let fatal = v1::Failure {
        kind: "fatal".into(),
        message: "no".into(),
        retryable: Some(false),
        ..Default::default()
    };
    let done = bed.complete(&second, v1::run_completion::End::Failure(fatal)).await;
    assert_eq!(done.state(), v1::report::Word::Recorded);

    bed.trigger("s").await;
    let third = bed.claim().await;
    assert_eq!(third.last_failure.unwrap().kind, "fatal");
    assert_eq!(third.last_result, second.last_result);
    let description = bed.describe("s").await;
    assert_eq!(description.last_failure.unwrap().message, "no");
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_keep_progress_and_lines_and_hear_of_a_cancel() {
    let mut bed = Bed::new().await;
    bed.queue().await;
    bed.schedule("s", "").await;
    bed.trigger("s").await;
    let run = bed.claim().await;
    let line = |text: &str| v1::LogLine { logged_at: None, attempt: 0, text: text.into() };
    let beat = v1::RunHeartbeat {
        run_id: run.run_id.clone(),
        token: run.token,
        progress: Some(json::from_json(br#"{ "json": { "done": 0.5 } }"#).unwrap()),
        log_lines: vec![line("half\nway"), line("on")],
    };
    let asked = |worker: &str, runs| v1::HeartbeatRequest {
        namespace: "default".into(),
        worker_id: worker.into(),
        runs,
        wait: None,
    };
    let answer = bed.client.workers.heartbeat(asked("w1", vec![beat.clone()])).await.unwrap().into_inner();
    assert_eq!(answer.runs[0].directive(), v1::directive::Word::GoOn);
    assert!(answer.runs[0].lease_expires_time.unwrap().seconds >= run.lease_expires_time.unwrap().seconds);
    let described = bed.run(&run.run_id).await;
    assert_eq!(described.progress, beat.progress);

    let quiet = v1::RunHeartbeat { progress: None, log_lines: Vec::new(), ..beat };
    // A worker that waits in its heartbeat hears of a cancel at once, long before its wait is over.
    let wait = Some(prost_types::Duration { seconds: 50, nanos: 0 });
    let waiting = v1::HeartbeatRequest { wait, ..asked("w1", vec![quiet.clone()]) };
    let mut workers = bed.client.workers.clone();
    let waiting = tokio::spawn(async move { workers.heartbeat(waiting).await });
    let cancel = v1::CancelRunRequest { run_id: run.run_id.clone(), ..Default::default() };
    bed.client.runs.cancel(cancel).await.unwrap();
    let heard = tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap().unwrap().unwrap();
    assert_eq!(heard.into_inner().runs[0].directive(), v1::directive::Word::Cancel);
    let over_http =
        http::call(bed.address, "Workers/Heartbeat", &asked("w1", vec![quiet.clone()])).await.json();
    assert_eq!(over_http["runs"][0]["directive"], "cancel");
    let stranger = bed.client.workers.heartbeat(asked("w2", vec![quiet])).await.unwrap().into_inner();
    assert_eq!(stranger.runs[0].directive(), v1::directive::Word::Gone);

    let done = v1::RunCompletion {
        run_id: run.run_id.clone(),
        token: run.token,
        end: Some(v1::run_completion::End::Cancelled(())),
        log_lines: vec![line("goodbye")],
    };
    let asked = v1::CompleteRequest { namespace: "default".into(), worker_id: "w1".into(), runs: vec![done] };
    let over_http = http::call(bed.address, "Workers/Complete", &asked).await.json();
    assert_eq!(over_http["runs"][0]["state"], "recorded");
    assert_eq!(bed.run(&run.run_id).await.outcome(), v1::outcome::Word::Cancelled);
    let logs = v1::RunLogsRequest { namespace: "default".into(), run_id: run.run_id.clone(), lines_max: 2 };
    let over_grpc = bed.client.runs.logs(logs.clone()).await.unwrap().into_inner();
    let texts: Vec<&str> = over_grpc.lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!((texts, over_grpc.truncated), (vec!["on", "goodbye"], true));
    assert_eq!(http::call(bed.address, "Runs/Logs", &logs).await.json(), json::to_value(&over_grpc).unwrap());
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_attempt_is_made_again_and_an_old_report_is_stale() {
    let mut bed = Bed::new().await;
    bed.queue().await;
    let action = r#""action": { "queue": { "queue": "work", "handler": "h", "retry": { "backoff_first": "0.010s" } } }"#;
    let mut creation = crate::bed::creation("s", "");
    creation.schedule = Some(json::from_json(format!("{{ {action} }}").as_bytes()).unwrap());
    bed.client.schedules.create(creation).await.unwrap();
    bed.trigger("s").await;

    let first = bed.claim().await;
    let report = bed.complete(&first, failure("flaky")).await;
    assert_eq!(report.state(), v1::report::Word::Retried);
    assert!(report.next_attempt_time.is_some());
    let second = bed.claim().await;
    assert_eq!((second.run_id.as_str(), second.attempt), (first.run_id.as_str(), 2));
    assert_eq!(bed.run(&first.run_id).await.failure.unwrap().kind, "flaky");

    let late = bed.complete(&first, result(r#"{ "json": 1 }"#)).await;
    assert_eq!(late.state(), v1::report::Word::Stale);
    let done = bed.complete(&second, result(r#"{ "json": 2 }"#)).await;
    assert_eq!(done.state(), v1::report::Word::Recorded);
    let again = bed.complete(&second, result(r#"{ "json": 2 }"#)).await;
    assert_eq!(again.state(), v1::report::Word::Recorded, "repeating a report is harmless");
    let run = bed.run(&first.run_id).await;
    assert_eq!((run.attempt, run.outcome()), (2, v1::outcome::Word::Succeeded));
    bed.stop().await;
}
