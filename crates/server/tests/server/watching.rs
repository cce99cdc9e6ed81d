//! Watching: what happens is told as it happens, to gRPC streams and server-sent events alike.

use punctual_api::v1;

use crate::bed::{Bed, config, result};
use crate::http::{self, Events};

#[tokio::test(flavor = "multi_thread")]
async fn both_kinds_of_watcher_hear_the_same() {
    let mut bed = Bed::new().await;
    bed.queue().await;
    let asked = v1::WatchScheduleRequest { namespace: String::new(), schedule_id: "s".into() };
    let mut over_grpc = bed.client.schedules.watch(asked).await.unwrap().into_inner();
    let mut over_http = Events::open(bed.address, "/v1/namespaces/default/schedules/s/watch").await;
    let mut everything = Events::open(bed.address, "/v1/namespaces/default/watch").await;

    bed.schedule("other", "").await;
    bed.schedule("s", "").await;
    bed.trigger("s").await;
    let run = bed.claim().await;
    bed.complete(&run, result(r#"{ "json": null }"#)).await;

    assert_eq!(everything.next().await.unwrap().1["schedule_id"], "other");
    let mut heard = Vec::new();
    loop {
        let event = over_grpc.message().await.unwrap().unwrap();
        let (name, data) = over_http.next().await.unwrap();
        assert_eq!(punctual_api::json::to_value(&event).unwrap(), data);
        assert_eq!((event.schedule_id.as_str(), name.as_str()), ("s", event.kind().as_str_name()));
        assert_eq!(everything.next().await.unwrap().1, data);
        heard.push(event.clone());
        if event.kind() == v1::event_kind::Word::RunCompleted {
            break;
        }
    }
    let kinds: Vec<&str> = heard.iter().map(|event| event.kind().as_str_name()).collect();
    assert_eq!(kinds.first(), Some(&"created"), "{kinds:?}");
    let last = heard.last().unwrap();
    assert_eq!((last.outcome(), last.run_id.as_str()), (v1::outcome::Word::Succeeded, run.run_id.as_str()));
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_are_bounded_and_end_when_the_server_stops() {
    let mut config = config();
    config.watchers_max = 1;
    let mut bed = Bed::with(config).await;
    let mut first = Events::open(bed.address, "/v1/namespaces/default/watch").await;

    let refused = http::send(bed.address, "GET", "/v1/namespaces/default/watch", b"").await;
    assert_eq!((refused.status, refused.json()["reason"].as_str()), (429, Some("too_many_watchers")));
    let refused = bed.client.schedules.watch(v1::WatchScheduleRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::ResourceExhausted);

    let took = bed.stop().await;
    assert_eq!(first.next().await, None);
    assert!(took.as_secs() < 5, "{took:?}");
}
