//! What stands around the verbs: health, readiness, metrics, the OpenAPI document, the page for people.

use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};

use crate::bed::Bed;
use crate::http;

#[tokio::test(flavor = "multi_thread")]
async fn a_ready_server_says_so_everywhere() {
    let bed = Bed::new().await;
    let get = |path: &'static str| http::send(bed.address, "GET", path, b"");
    assert_eq!(get("/healthz").await.json()["alive"], true);
    let ready = get("/readyz").await;
    assert_eq!((ready.status, ready.json()["ready"].as_bool()), (200, Some(true)));
    let page = get("/").await;
    assert!(page.head.contains("text/html") && page.text().contains("/openapi.json"));
    assert_eq!(get("/openapi.json").await.json(), punctual_api::openapi::document());

    let channel = tonic::transport::Endpoint::from_shared(format!("http://{}", bed.address)).unwrap();
    let mut health = HealthClient::new(channel.connect().await.unwrap());
    let checked = health.check(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert_eq!(checked.status(), ServingStatus::Serving);
    let mut watch = health.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_requests_runs_and_queues() {
    let mut bed = Bed::new().await;
    bed.queue().await;
    bed.schedule("s", "").await;
    bed.trigger("s").await;
    http::send(bed.address, "GET", "/v1/namespaces/default/schedules/nobody", b"").await;
    http::send(bed.address, "POST", "/v1/namespaces/default/schedules", b"{").await;

    let answer = http::send(bed.address, "GET", "/metrics", b"").await;
    assert!(answer.head.contains("text/plain; version=0.0.4"), "{}", answer.head);
    let text = answer.text();
    for line in [
        "punctual_server_requests_total{protocol=\"grpc\",rpc=\"punctual.v1.Schedules/Trigger\",code=\"ok\"} 1",
        "punctual_server_requests_total{protocol=\"http\",rpc=\"punctual.v1.Schedules/Describe\",code=\"not_found\"} 1",
        "punctual_server_requests_total{protocol=\"http\",rpc=\"punctual.v1.Schedules/Create\",code=\"invalid_argument\"} 1",
        "punctual_queue_runs{namespace=\"default\",queue=\"work\",state=\"queued\"} 1",
        "punctual_occurrences_total{verdict=\"started\"} 1",
        "punctual_server_watchers 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    for name in [
        "punctual_start_lateness_seconds_bucket",
        "punctual_commit_batch_size_count",
        "punctual_runs_closed_total",
    ] {
        assert!(text.contains(name), "{name}");
    }
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_rpc_is_unimplemented_and_not_a_web_page() {
    let bed = Bed::new().await;
    let bytes = http::request("POST", "/punctual.v1.Nothing/Do", "content-type: application/grpc\r\n", b"");
    let answer = http::raw(bed.address, &bytes).await;
    assert!(answer.head.contains("grpc-status: 12"), "{}", answer.head);
    bed.stop().await;
}
