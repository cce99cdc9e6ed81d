//! What an operator asks: numbers, an examination, a copy that can be started from, traces.

use punctual_api::v1;
use punctual_api::v1::health::Word;

use crate::bed::{Bed, config, on_file, result};
use crate::calls::{Target, answer};
use crate::http::send;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stats_count_what_happened_and_show_what_happens() {
    let mut bed = Bed::new().await;
    bed.queue().await;
    bed.schedule("s", "").await;
    bed.trigger("s").await;
    let run = bed.claim().await;
    let stats = bed.client.server.stats(v1::StatsRequest {}).await.unwrap().into_inner();
    assert_eq!((stats.started, stats.running_count), (1, 1));
    assert_eq!(stats.longest[0].run_id, run.run_id);
    assert_eq!(stats.lateness.last().unwrap().count, 1);
    assert_eq!(stats.queues[0].queue.as_ref().unwrap().queue, "work");
    bed.complete(&run, v1::run_completion::End::Cancelled(())).await;
    let over_http = send(bed.address, "GET", "/v1/stats", b"").await;
    assert_eq!(
        (over_http.status, &over_http.json()["closed"]["cancelled"]),
        (200, &1.into()),
        "{}",
        over_http.text()
    );
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_examination_finds_nothing_wrong_and_a_copy_goes_on_where_the_server_was() {
    let folder = tempfile::tempdir().unwrap();
    let mut bed = Bed::with(on_file(&folder.path().join("a.db"))).await;
    bed.queue().await;
    bed.schedule("s", "").await;
    bed.trigger("s").await;
    let examined = bed.client.server.examine(v1::ExamineRequest::default()).await.unwrap().into_inner();
    let checks: Vec<&str> = examined.findings.iter().map(|finding| finding.check.as_str()).collect();
    assert_eq!(
        checks,
        ["timers", "clock", "quarantine", "queues", "engine", "file", "rows", "size", "dead_letters"]
    );
    assert!(examined.findings.iter().all(|finding| finding.health == Word::Fine as i32), "{examined:?}");

    let mut pieces = bed.client.server.backup(v1::BackupRequest {}).await.unwrap().into_inner();
    let (mut copy, mut total) = (Vec::new(), 0);
    while let Some(piece) = pieces.message().await.unwrap() {
        copy.extend(piece.data);
        total = piece.total_bytes;
    }
    assert_eq!(copy.len() as u64, total);
    let restored = folder.path().join("b.db");
    std::fs::write(&restored, &copy).unwrap();
    bed.stop().await;
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("copy-")), "{left:?}");

    let mut bed = Bed::with(on_file(&restored)).await;
    assert_eq!(bed.claim().await.schedule_id, "s");
    bed.stop().await;

    // What keeps nothing cannot be copied, and says so.
    let mut bed = Bed::with(config()).await;
    let refused = bed.client.server.backup(v1::BackupRequest {}).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::Unimplemented);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scheduled_run_becomes_one_trace() {
    let mut collector = Target::answering(&[&answer("200 OK", "", "{}")]).await;
    let mut config = config();
    config.otlp_endpoint = format!("http://{}", collector.address);
    let mut bed = Bed::with(config).await;
    bed.queue().await;
    bed.schedule("s", "").await;
    bed.trigger("s").await;
    let run = bed.claim().await;
    bed.complete(
        &run,
        v1::run_completion::End::Failure(v1::Failure { retryable: Some(false), ..Default::default() }),
    )
    .await;

    let spans = spans(&mut collector).await;

    assert_eq!(names(&spans), ["occurrence", "start", "wait", "attempt"]);
    assert!(spans[1..].iter().all(|span| span["parentSpanId"] == spans[0]["spanId"]));
    assert_eq!(spans[3]["status"]["code"], 2);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_without_a_schedule_becomes_one_trace_whoever_ends_it() {
    let mut collector = Target::answering(&[&answer("200 OK", "", "{}")]).await;
    let mut config = config();
    config.otlp_endpoint = format!("http://{}", collector.address);
    let mut bed = Bed::with(config).await;
    bed.queue().await;
    let enqueue = || v1::EnqueueRequest {
        queue: "work".into(),
        runs: vec![v1::RunOrder { handler: "h".into(), ..Default::default() }],
        ..Default::default()
    };
    bed.client.runs.enqueue(enqueue()).await.unwrap();
    let run = bed.claim().await;
    bed.complete(&run, result(r#"{ "json": 7 }"#)).await;

    let done = spans(&mut collector).await;

    assert_eq!(names(&done), ["run", "wait", "attempt"]);
    assert!(done[1..].iter().all(|span| span["parentSpanId"] == done[0]["spanId"]));
    let about = |spans: &[serde_json::Value], key: &str| {
        let of = spans[0]["attributes"].as_array().unwrap().iter().find(|attribute| attribute["key"] == key);
        of.map(|attribute| attribute["value"]["stringValue"].as_str().unwrap().to_owned())
    };
    assert_eq!(about(&done, "punctual.run_id"), Some(run.run_id));
    assert_eq!(about(&done, "punctual.schedule_id"), None, "it has none");

    // No worker ever had this one.
    let made = bed.client.runs.enqueue(enqueue()).await.unwrap().into_inner().runs.remove(0);
    let asked = v1::TerminateRunRequest { run_id: made.run_id.clone(), ..Default::default() };
    bed.client.runs.terminate(asked).await.unwrap();
    let ended = spans(&mut collector).await;
    assert_eq!(names(&ended), ["run"]);
    assert_eq!(about(&ended, "punctual.outcome").as_deref(), Some("terminated"));
    assert_eq!(about(&ended, "punctual.run_id"), Some(made.run_id));
    bed.stop().await;
    assert_eq!(collector.got().len(), 2, "each was sent once");
}

/// The spans of the next trace.
async fn spans(collector: &mut Target) -> Vec<serde_json::Value> {
    let got = collector.news.recv().await.unwrap();
    assert!(got.head.starts_with("POST /v1/traces "), "{}", got.head);
    let sent: serde_json::Value = serde_json::from_str(&got.body).unwrap();
    let spans = sent["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    assert!(spans.iter().all(|span| span["traceId"] == spans[0]["traceId"]));
    spans.clone()
}

fn names(spans: &[serde_json::Value]) -> Vec<&str> {
    spans.iter().map(|span| span["name"].as_str().unwrap()).collect()
}
