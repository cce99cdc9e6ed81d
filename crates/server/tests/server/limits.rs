//! Sizes and slowness: every bound is told, none of them ends the server.

use std::time::Duration;

use punctual_api::v1;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::bed::{Bed, config};
use crate::http;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_refused_by_its_bound() {
    let mut bed = Bed::new().await;
    let path = "/v1/namespaces/default/schedules";
    let body = vec![b' '; 4 * 1024 * 1024 + 1];
    let answer = http::send(bed.address, "POST", path, &body).await;
    assert_eq!(
        (answer.status, answer.json()["reason"].as_str()),
        (413, Some("body_too_large")),
        "{}",
        answer.head
    );

    let answer = http::send(bed.address, "GET", &format!("{path}?prefix={}", "x".repeat(17_000)), b"").await;
    assert_eq!((answer.status, answer.json()["reason"].as_str()), (414, Some("uri_too_long")));
    let headers = format!("x-large: {}\r\n", "y".repeat(70_000));
    let answer = http::raw(bed.address, &http::request("GET", path, &headers, b"")).await;
    assert_eq!((answer.status, answer.json()["reason"].as_str()), (431, Some("headers_too_large")));
    let headers = format!("x-large: {}\r\n", "y".repeat(500_000));
    let answer = http::raw(bed.address, &http::request("GET", path, &headers, b"")).await;
    assert!(matches!(answer.status, 0 | 431), "{}", answer.head);
    let many: String = (0..200).map(|number| format!("x-{number}: y\r\n")).collect();
    let answer = http::raw(bed.address, &http::request("GET", path, &many, b"")).await;
    assert!(matches!(answer.status, 0 | 431), "{}", answer.head);

    let asked = v1::ListSchedulesRequest { prefix: "x".repeat(17 * 1024 * 1024), ..Default::default() };
    let status = bed.client.schedules.list(asked).await.unwrap_err();
    assert!(matches!(status.code(), tonic::Code::OutOfRange | tonic::Code::ResourceExhausted), "{status:?}");
    assert_eq!(http::send(bed.address, "GET", path, b"").await.status, 200);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_http_at_all_ends_its_connection_only() {
    let bed = Bed::new().await;
    for bytes in [
        &b"\0\0\0\0"[..],
        b"GET\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff",
        b"\x16\x03\x01\x02\x00",
    ] {
        let mut stream = TcpStream::connect(bed.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
    }
    assert_eq!(http::send(bed.address, "GET", "/healthz", b"").await.status, 200);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_site_cannot_use_a_browser() {
    let bed = Bed::new().await;
    let evil =
        http::request("POST", "/v1/namespaces/default/queues", "origin: http://evil.example\r\n", b"{}");
    let answer = http::raw(bed.address, &evil).await;
    assert_eq!((answer.status, answer.json()["reason"].as_str()), (403, Some("foreign_origin")));
    let own = http::request("GET", "/v1/info", "origin: http://test\r\n", b"");
    assert_eq!(http::raw(bed.address, &own).await.status, 200);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_beyond_the_bound_wait_their_turn() {
    let mut config = config();
    config.connections_max = 2;
    let bed = Bed::with(config).await;
    // The bed's own client has one place, this one the other.
    let held = TcpStream::connect(bed.address).await.unwrap();
    let address = bed.address;
    let waiting = tokio::spawn(async move { http::send(address, "GET", "/healthz", b"").await.status });
    let early = tokio::time::timeout(Duration::from_millis(200), async {
        while !waiting.is_finished() {
            tokio::task::yield_now().await;
        }
    });
    assert!(early.await.is_err(), "it waits while both places are taken");
    drop(held);
    assert_eq!(waiting.await.unwrap(), 200);
    bed.stop().await;
}
