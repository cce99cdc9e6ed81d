//! What an operator asks: numbers, an examination, a copy that can be started from, traces.

use punctual_api::v1;
use punctual_api::v1::health::Word;

use crate::bed::{Bed, config, on_file};
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

    let got = collector.news.recv().await.unwrap();

    assert!(got.head.starts_with("POST /v1/traces "), "{}", got.head);
    let sent: serde_json::Value = serde_json::from_str(&got.body).unwrap();
    let spans = sent["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["occurrence", "start", "wait", "attempt"]);
    assert!(spans.iter().all(|span| span["traceId"] == spans[0]["traceId"]));
    assert!(spans[1..].iter().all(|span| span["parentSpanId"] == spans[0]["spanId"]));
    assert_eq!(spans[3]["status"]["code"], 2);
    bed.stop().await;
}
