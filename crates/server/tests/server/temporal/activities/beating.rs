//! Heartbeats: details are kept and handed on, and a cancel is heard.

use punctual_api::v1;

use super::bench::{Bench, assert_not_found, in_json, of_type};

#[tokio::test(flavor = "multi_thread")]
async fn details_are_progress_and_the_next_attempt_is_told_them() {
    let mut bench = Bench::new().await;
    bench.schedule("s", r#""retry": { "backoff_first": "0.010s" }"#).await;
    let first = bench.started("s").await;
    assert!(!bench.beat(&first, in_json(r#"{ "done": 1 }"#)).await.unwrap());
    assert!(!bench.beat(&first, in_json(r#"{ "done": 2 }"#)).await.unwrap());
    assert!(!bench.beat(&first, None).await.unwrap(), "a heartbeat without details forgets none");
    let shown = punctual_api::json::from_json(br#"{ "json": { "done": 2 } }"#).unwrap();
    assert_eq!(bench.run(&first).await.progress, Some(shown));
    bench.fail(&first, of_type("Oops")).await.unwrap();
    let second = bench.poll().await;
    assert_eq!(second.heartbeat_details, in_json(r#"{ "done": 2 }"#));
    bench.complete(&second, None).await.unwrap();
    bench.bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_is_heard_and_the_worker_decides_how_it_ends() {
    let mut bench = Bench::new().await;
    bench.schedule("s", r#""retry": { "backoff_first": "0.010s" }"#).await;
    let obeys = bench.started("s").await;
    assert!(!bench.beat(&obeys, None).await.unwrap());
    bench.cancel(&obeys).await;
    assert!(bench.beat(&obeys, None).await.unwrap());
    bench.cancelled(&obeys).await.unwrap();
    assert_eq!(bench.run(&obeys).await.outcome(), v1::outcome::Word::Cancelled);
    assert_not_found(bench.beat(&obeys, None).await);
    assert_not_found(bench.complete(&obeys, None).await);

    let finishes = bench.started("s").await;
    bench.cancel(&finishes).await;
    bench.complete(&finishes, in_json("1")).await.unwrap();
    assert_eq!(bench.run(&finishes).await.outcome(), v1::outcome::Word::Succeeded);

    let fails = bench.started("s").await;
    bench.cancel(&fails).await;
    bench.fail(&fails, of_type("Oops")).await.unwrap();
    let run = bench.run(&fails).await;
    assert_eq!(
        (run.attempt, run.outcome()),
        (1, v1::outcome::Word::Cancelled),
        "nobody wants another attempt"
    );
    bench.bed.stop().await;
}
