//! Start, stop, restart: what was acknowledged is still there, and a stop is quick.

use std::time::Duration;

use punctual_api::v1;
use punctual_server::Server;

use crate::bed::{Bed, claim, config, on_file, result};
use crate::http::{self, Events};

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_long_polls_and_watches_at_once() {
    let mut bed = Bed::new().await;
    bed.queue().await;
    let (mut client, address) = (bed.client.clone(), bed.address);
    let over_grpc = tokio::spawn(async move { client.workers.claim(claim(60)).await });
    let over_http = tokio::spawn(async move { http::call(address, "Workers/Claim", &claim(60)).await });
    let mut watch = Events::open(bed.address, "/v1/namespaces/default/watch").await;
    // Both polls have arrived when the metrics say so: they are connections with nothing answered.
    let idle = std::net::TcpStream::connect(bed.address).unwrap();
    for _ in 0..200 {
        let metrics = http::send(bed.address, "GET", "/metrics", b"").await.text();
        if metrics.contains("punctual_server_connections 5") {
            break;
        }
        tokio::task::yield_now().await;
    }

    let took = bed.stop().await;

    assert!(took < Duration::from_secs(5), "{took:?}");
    if let Ok(answer) = over_grpc.await.unwrap() {
        assert!(answer.into_inner().runs.is_empty());
    }
    assert!(matches!(over_http.await.unwrap().status, 0 | 200 | 503));
    assert_eq!(watch.next().await, None);
    drop(idle);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let mut bed = Bed::with(on_file(&file)).await;
    bed.queue().await;
    bed.schedule("s", "").await;
    bed.trigger("s").await;
    let claimed = bed.claim().await;
    let before = bed.describe("s").await;
    bed.stop().await;

    let mut bed = Bed::with(on_file(&file)).await;
    assert_eq!(bed.describe("s").await, before);
    let done = bed.complete(&claimed, result(r#"{ "json": 1 }"#)).await;
    assert_eq!(done.state(), v1::report::Word::Recorded, "the worker did not notice the restart");
    assert_eq!(bed.schedule("s", "").await.revision, 1, "repeating the creation is harmless");
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_has_one_server_and_a_port_has_one_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let bed = Bed::with(on_file(&file)).await;
    let Err(error) = Server::start(on_file(&file)).await else { panic!("two servers on one file") };
    assert!(error.to_string().contains("is in use by process"), "{error}");

    let mut config = config();
    config.listen = bed.address;
    let Err(error) = Server::start(config).await else { panic!("two servers on one port") };
    assert!(error.to_string().starts_with(&format!("cannot listen on {}", bed.address)), "{error}");
    assert_eq!(http::send(bed.address, "GET", "/readyz", b"").await.status, 200);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_works_and_starting_it_again_is_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    for _ in 0..2 {
        let mut config = on_file(&file);
        config.demo = true;
        let mut bed = Bed::with(config).await;
        let counted =
            bed.client.schedules.count(v1::CountSchedulesRequest::default()).await.unwrap().into_inner();
        assert_eq!(counted.count, 4);
        let asked = v1::WatchScheduleRequest { namespace: String::new(), schedule_id: "demo-echo".into() };
        let mut events = bed.client.schedules.watch(asked).await.unwrap().into_inner();
        let trigger = v1::TriggerScheduleRequest { schedule_id: "demo-echo".into(), ..Default::default() };
        bed.client.schedules.trigger(trigger).await.unwrap();
        loop {
            let event = events.message().await.unwrap().unwrap();
            if event.kind() == v1::event_kind::Word::RunCompleted {
                assert_eq!(event.outcome(), v1::outcome::Word::Succeeded);
                break;
            }
        }
        bed.stop().await;
    }
}
