//! Queues over the wire: enqueue without a schedule, limits that change while runs wait, dead letters.

use punctual_api::v1;

use crate::bed::{Bed, claim};

fn order(handler: &str) -> v1::RunOrder {
    let retry = Some(v1::RetryPolicy { attempts_max: Some(1), ..Default::default() });
    v1::RunOrder { handler: handler.into(), retry, ..Default::default() }
}

async fn enqueue(bed: &mut Bed, runs: Vec<v1::RunOrder>, request_id: &str) -> Vec<v1::EnqueuedRun> {
    let request_id = request_id.into();
    let asked = v1::EnqueueRequest { queue: "work".into(), runs, request_id, ..Default::default() };
    bed.client.runs.enqueue(asked).await.unwrap().into_inner().runs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_without_a_schedule_are_enqueued_once_and_by_priority() {
    let mut bed = Bed::new().await;
    bed.queue().await;
    let runs = vec![
        order("first"),
        v1::RunOrder { priority: -5, ..order("urgent") },
        v1::RunOrder { priority: 5, key: "k".into(), deduplication_id: "d".into(), ..order("later") },
    ];
    let made = enqueue(&mut bed, runs.clone(), "r1").await;
    let again = enqueue(&mut bed, runs, "r1").await;
    assert_eq!(
        again.iter().map(|run| &run.run_id).collect::<Vec<_>>(),
        made.iter().map(|run| &run.run_id).collect::<Vec<_>>()
    );

    let mut handlers = Vec::new();
    for _ in 0..3 {
        handlers.push(bed.claim().await.handler);
    }
    assert_eq!(handlers, ["urgent", "first", "later"]);
    let run = bed.run(&made[2].run_id).await;
    assert_eq!((run.priority, run.key.as_str(), run.deduplication_id.as_str()), (5, "k", "d"));
    assert_eq!((run.schedule_id.as_str(), run.name.as_str()), ("", "later"));
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_change_at_once_and_describe_tells_them() {
    let mut bed = Bed::new().await;
    bed.queue().await;
    let settings = Some(v1::Queue {
        concurrency_max: Some(1),
        rate: Some(v1::Rate { starts_max: 100, per: Some(prost_types::Duration { seconds: 1, nanos: 0 }) }),
        description: "nightly work".into(),
        ..Default::default()
    });
    let asked = v1::UpdateQueueRequest { queue: "work".into(), settings, ..Default::default() };
    bed.client.queues.update(asked).await.unwrap();
    enqueue(&mut bed, vec![order("a"), order("b")], "").await;
    let held = bed.claim().await;
    assert!(bed.client.workers.claim(claim(0)).await.unwrap().into_inner().runs.is_empty());

    // Only what the mask names is changed.
    let mask = prost_types::FieldMask { paths: vec!["concurrency_max".into()] };
    let settings = Some(v1::Queue { concurrency_max: Some(2), ..Default::default() });
    let asked = v1::UpdateQueueRequest {
        queue: "work".into(),
        settings,
        update_mask: Some(mask),
        ..Default::default()
    };
    let described = bed.client.queues.update(asked).await.unwrap().into_inner().description.unwrap();
    let queue = described.queue.unwrap();
    assert_eq!((queue.concurrency_max, queue.description.as_str()), (Some(2), "nightly work"));
    assert_eq!(queue.rate.unwrap().starts_max, 100);
    let second = bed.claim().await;
    assert_ne!(second.run_id, held.run_id);

    let asked = v1::DescribeQueueRequest { queue: "work".into(), ..Default::default() };
    let described = bed.client.queues.describe(asked).await.unwrap().into_inner().description.unwrap();
    assert_eq!((described.running_count, described.workers[0].running_count), (2, 2));
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_queue_waits_and_a_dead_letter_can_be_tried_again() {
    let mut bed = Bed::new().await;
    bed.queue().await;
    let pause = v1::PauseQueueRequest { queue: "work".into(), ..Default::default() };
    bed.client.queues.pause(pause).await.unwrap();
    let made = enqueue(&mut bed, vec![order("a")], "").await;
    assert!(bed.client.workers.claim(claim(0)).await.unwrap().into_inner().runs.is_empty());
    let resume = v1::ResumeQueueRequest { queue: "work".into(), ..Default::default() };
    bed.client.queues.resume(resume).await.unwrap();

    let run = bed.claim().await;
    bed.complete(&run, v1::run_completion::End::Failure(v1::Failure::default())).await;
    assert!(bed.run(&made[0].run_id).await.dead_letter);
    let asked = v1::ListRunsRequest { queue: "work".into(), dead_letters: true, ..Default::default() };
    assert_eq!(bed.client.runs.list(asked.clone()).await.unwrap().into_inner().runs.len(), 1);
    let retry = v1::RetryRunRequest { run_id: made[0].run_id.clone(), ..Default::default() };
    let retried = bed.client.runs.retry(retry.clone()).await.unwrap().into_inner().run_id;
    assert!(bed.client.runs.retry(retry).await.is_err());
    assert!(bed.client.runs.list(asked).await.unwrap().into_inner().runs.is_empty());
    assert_eq!(bed.claim().await.run_id, retried);

    enqueue(&mut bed, vec![order("b"), order("c")], "").await;
    let purge = v1::PurgeQueueRequest { queue: "work".into(), ..Default::default() };
    let purged = bed.client.queues.purge(purge).await.unwrap().into_inner();
    assert_eq!((purged.count, purged.more), (2, false));
    bed.stop().await;
}
