//! Settings of queues that change, runs for later, the secret of a database, and its documents.

use std::sync::Arc;

use jiff::SignedDuration;
use punctual_core::Outcome;

use super::Subject;
use super::limits::rate;
use super::support::{Bed, at, closing};
use crate::{Bytes, Document, LiveState, NewRun, QueueDepth, QueueKey, QueueSettings, RunWrite};

pub(super) async fn exercise(subject: &impl Subject) {
    settings_are_kept(subject).await;
    a_run_for_later_backs_off_first(subject).await;
    the_first_secret_stays(subject).await;
    documents_are_written_by_who_saw_the_last(subject).await;
}

async fn settings_are_kept(subject: &impl Subject) {
    let mut bed = Bed::new(subject).await;
    let settings = QueueSettings {
        description: "for reports".into(),
        concurrency_max: Some(0),
        worker_concurrency_max: Some(u32::MAX),
        rate: rate(7, 60),
        key_concurrency_max: Some(1),
        key_rate: rate(u32::MAX, 1),
        priority_step: SignedDuration::new(-3, -5),
        paused: true,
    };
    let before = bed.store.queues(None).await.expect("the store answers").remove(0);
    let updated = bed.store.update_queue(bed.queue, settings.clone()).await.expect("the store answers");
    let updated = updated.expect("the queue is there");
    assert_eq!(updated.made.settings, settings);
    assert_eq!((&updated.made.name, updated.made.created_at), (&before.made.name, before.made.created_at));
    if !subject.forgets() {
        let queue = bed.queue;
        bed = Bed { store: subject.reopen(bed.store).await, queue };
    }
    assert_eq!(bed.store.queues(None).await, Ok(vec![updated.clone()]));
    let declared = bed.store.create_queue(before.made).await;
    assert_eq!(declared, Ok(updated), "who declares it again gets it as it is");
    let unknown = bed.store.update_queue(QueueKey(bed.queue.0 + 99), settings).await;
    assert_eq!(unknown, Ok(None));
}

async fn a_run_for_later_backs_off_first(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let made = NewRun { not_before: Some(at(500)), ..bed.new_run().await };
    bed.write_runs(vec![RunWrite::Insert(made.clone())]).await.expect("it is new");

    let live = bed.live().await.remove(0);
    assert_eq!((live.state, live.attempt), (LiveState::BackingOff { not_before: at(500) }, 0));
    assert_eq!(bed.claim(9).await, [], "it may not be claimed yet");
    let depth = bed.store.queue_depth(bed.queue).await;
    assert_eq!(depth, Ok(QueueDepth { backing_off: 1, ..QueueDepth::default() }));
    bed.write_runs(vec![RunWrite::Release { run: made.run }]).await.expect("it backs off");
    let claimed = bed.claim(9).await;
    assert_eq!((claimed[0].attempt, &claimed[0].made), (1, &made), "the run is what was made");
    let close = RunWrite::Close { run: made.run, attempt: Some(1), closing: closing(Outcome::Succeeded) };
    bed.write_runs(vec![close]).await.expect("it runs");
    let stored = bed.store.load_runs(vec![made.run]).await.expect("the store answers").remove(0);
    assert_eq!(stored.expect("it is kept").run.made, made);
}

async fn the_first_secret_stays(subject: &impl Subject) {
    let mut bed = Bed::new(subject).await;
    assert_eq!(bed.store.secret([7; 32]).await, Ok([7; 32]));
    assert_eq!(bed.store.secret([8; 32]).await, Ok([7; 32]));
    if !subject.forgets() {
        let queue = bed.queue;
        bed = Bed { store: subject.reopen(bed.store).await, queue };
    }
    assert_eq!(bed.store.secret([9; 32]).await, Ok([7; 32]));
}

async fn documents_are_written_by_who_saw_the_last(subject: &impl Subject) {
    let mut bed = Bed::new(subject).await;
    let (name, other): (Arc<str>, Arc<str>) = ("types/d\u{e9}fault".into(), "types/other".into());
    let bytes = |bytes: &[u8]| Bytes::from(bytes);
    let shown = |version, of: &[u8]| Some(Document { version, bytes: bytes(of) });
    assert_eq!(bed.store.document(name.clone()).await, Ok(None));
    assert_eq!(bed.store.put_document(name.clone(), 1, bytes(b"x")).await, Ok(false), "it is not there");
    assert_eq!(bed.store.put_document(name.clone(), 0, bytes(&[0, 255])).await, Ok(true));
    assert_eq!(bed.store.put_document(name.clone(), 0, bytes(b"x")).await, Ok(false), "it is there");
    assert_eq!(bed.store.document(name.clone()).await, Ok(shown(1, &[0, 255])));
    assert_eq!(bed.store.put_document(name.clone(), 1, bytes(b"")).await, Ok(true));
    assert_eq!(bed.store.put_document(name.clone(), 1, bytes(b"x")).await, Ok(false), "another was faster");
    assert_eq!(bed.store.put_document(other.clone(), 0, bytes(b"o")).await, Ok(true));
    if !subject.forgets() {
        let queue = bed.queue;
        bed = Bed { store: subject.reopen(bed.store).await, queue };
    }
    assert_eq!(bed.store.document(name).await, Ok(shown(2, b"")));
    assert_eq!(bed.store.document(other).await, Ok(shown(1, b"o")));
}
