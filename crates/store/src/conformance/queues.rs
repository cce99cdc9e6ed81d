//! Queues: declared once, listed by name, and how much is in them.

use punctual_core::Outcome;

use super::Subject;
use super::support::{Bed, at, bytes, closing, new_queue};
use crate::{NewQueue, QueueDepth, QueueKey, QueueSettings, RunWrite};

pub(super) async fn exercise(subject: &impl Subject) {
    a_queue_is_declared_once(subject).await;
    the_depth_follows_the_runs(subject).await;
}

async fn a_queue_is_declared_once(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let create = async |queue| bed.store.create_queue(queue).await.expect("the store answers");
    let first = create(new_queue("default", "alpha")).await;
    assert_eq!(first.made, new_queue("default", "alpha"));

    let changed =
        NewQueue { settings: QueueSettings::default(), created_at: at(9), ..new_queue("default", "alpha") };
    assert_eq!(create(changed).await, first, "one of the same name is given back as it is");
    let elsewhere = create(new_queue("another", "alpha")).await;
    assert_ne!(elsewhere.queue, first.queue, "another namespace has queues of its own");

    let names = async |namespace: Option<&str>| -> Vec<(String, String)> {
        let queues = bed.store.queues(namespace.map(Into::into)).await.expect("the store answers");
        queues.iter().map(|queue| (queue.made.namespace.to_string(), queue.made.name.to_string())).collect()
    };
    let pair = |namespace: &str, name: &str| (namespace.to_string(), name.to_string());
    let (alpha, work) = (pair("default", "alpha"), pair("default", "work"));
    assert_eq!(names(Some("default")).await, [alpha.clone(), work.clone()], "by name");
    assert_eq!(names(None).await, [pair("another", "alpha"), alpha, work], "of all namespaces");
    assert_eq!(names(Some("nowhere")).await, []);
}

async fn the_depth_follows_the_runs(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let expect = async |ready, backing_off, running| {
        let depth = bed.store.queue_depth(bed.queue).await.expect("the store answers");
        assert_eq!(
            depth,
            QueueDepth { ready, backing_off, running, first_made_at: (ready > 0).then_some(at(2)) }
        );
    };
    expect(0, 0, 0).await;
    let runs = [bed.ready().await.run, bed.ready().await.run, bed.ready().await.run];
    expect(3, 0, 0).await;
    bed.claim(2).await;
    expect(1, 0, 2).await;
    let retry = RunWrite::Retry { run: runs[0], attempt: 1, not_before: at(5), failure: bytes("oops") };
    bed.write_runs(vec![retry.clone()]).await.expect("the attempt runs");
    expect(1, 1, 1).await;
    bed.write_runs(vec![retry]).await.expect_err("the attempt is over");
    expect(1, 1, 1).await;
    bed.write_runs(vec![RunWrite::Release { run: runs[0] }]).await.expect("it backs off");
    bed.write_runs(vec![RunWrite::Release { run: runs[0] }]).await.expect("it is harmless");
    expect(2, 0, 1).await;
    for (run, attempt) in [(runs[1], Some(1)), (runs[2], None)] {
        let close = RunWrite::Close { run, attempt, closing: closing(Outcome::Succeeded) };
        bed.write_runs(vec![close]).await.expect("it is live");
    }
    expect(1, 0, 0).await;
    let unknown = bed.store.queue_depth(QueueKey(bed.queue.0 + 1_000)).await;
    assert_eq!(unknown, Ok(QueueDepth::default()));
}
