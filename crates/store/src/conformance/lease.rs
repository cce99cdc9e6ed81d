//! Leases: one holder at a time, by the database's clock, and an epoch that only grows.

use jiff::SignedDuration;

use super::Subject;
use super::support::Bed;
use crate::{Lease, NodeId, ShardId, StoreError};

pub(super) async fn exercise(subject: &impl Subject) {
    one_node_holds_a_shard(subject).await;
    a_lease_ends_by_itself(subject).await;
    a_renewed_lease_lasts_longer(subject).await;
    what_was_lost_cannot_be_used(subject).await;
    shards_are_apart(subject).await;
    keys_are_given_once(subject).await;
}

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const MOMENT: SignedDuration = SignedDuration::from_millis(5);
const LONGER: SignedDuration = SignedDuration::from_millis(20);

async fn acquire(bed: &Bed, node: &str, ttl: SignedDuration) -> Option<Lease> {
    bed.store.acquire(ShardId(0), NodeId(node.into()), ttl).await.expect("the store answers")
}

async fn one_node_holds_a_shard(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    assert_eq!(bed.store.shards(), 4);
    let before = bed.store.now().await.expect("the store has a clock");

    let lease = acquire(&bed, "one", HOUR).await.expect("nobody holds it");

    let after = bed.store.now().await.expect("the store has a clock");
    assert_eq!((lease.shard, &*lease.node.0), (ShardId(0), "one"));
    let bounds = before.checked_add(HOUR).expect("in range")..=after.checked_add(HOUR).expect("in range");
    assert!(bounds.contains(&lease.expires_at), "{} is not in {bounds:?}", lease.expires_at);
    assert_eq!(acquire(&bed, "two", HOUR).await, None, "another node holds it");
    let again = acquire(&bed, "one", HOUR).await.expect("it is its own");
    assert!(again.epoch > lease.epoch, "taking it anew always moves the epoch");
}

async fn a_lease_ends_by_itself(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let first = acquire(&bed, "one", MOMENT).await.expect("nobody holds it");

    subject.advance(LONGER).await;

    let second = acquire(&bed, "two", HOUR).await.expect("its lease is over");
    assert!(second.epoch > first.epoch, "another owner, another epoch");
    assert_eq!(acquire(&bed, "one", HOUR).await, None, "the first has lost it");
}

async fn a_renewed_lease_lasts_longer(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let lease = acquire(&bed, "one", MOMENT).await.expect("nobody holds it");

    let renewed = bed.store.renew(lease.clone(), HOUR).await.expect("it was not lost");
    assert_eq!((renewed.epoch, &renewed.node), (lease.epoch, &lease.node), "renewing moves no epoch");
    assert!(renewed.expires_at > lease.expires_at);
    subject.advance(LONGER).await;

    assert_eq!(acquire(&bed, "two", HOUR).await, None, "it is still held");
    let late = bed.store.renew(renewed, MOMENT).await.expect("it was not lost");
    subject.advance(LONGER).await;
    let late = bed.store.renew(late, HOUR).await;
    assert!(late.is_ok(), "a lease that is over but that nobody took can be renewed");
}

async fn what_was_lost_cannot_be_used(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let first = acquire(&bed, "one", HOUR).await.expect("nobody holds it");
    bed.store.release(first.clone()).await.expect("the store answers");
    let fenced = Err(StoreError::Fenced { epoch: first.epoch });
    assert_eq!(bed.store.renew(first.clone(), HOUR).await, fenced, "it was given up");

    let second = acquire(&bed, "two", HOUR).await.expect("nobody has to wait");
    assert_eq!(bed.store.renew(first.clone(), HOUR).await, fenced, "it was lost");
    bed.store.release(first).await.expect("giving up what was lost is harmless");
    assert_eq!(acquire(&bed, "one", HOUR).await, None, "and takes it from nobody");
    assert!(bed.store.renew(second, HOUR).await.is_ok());
}

async fn shards_are_apart(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let (one, two) = (NodeId("one".into()), NodeId("two".into()));

    let first = bed.store.acquire(ShardId(1), one, HOUR).await.expect("the store answers");
    let second = bed.store.acquire(ShardId(2), two, HOUR).await.expect("the store answers");

    assert!(first.is_some() && second.is_some(), "each shard has a holder of its own");
}

async fn keys_are_given_once(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let first = bed.store.reserve(10).await.expect("keys are given");
    let second = bed.store.reserve(1).await.expect("keys are given");
    let queue =
        bed.store.create_queue(super::support::new_queue("default", "more")).await.expect("declared").queue;
    let third = bed.store.reserve(5).await.expect("keys are given");

    assert!(first > bed.queue.0 && second >= first + 10 && queue.0 > second && third > queue.0);
}
