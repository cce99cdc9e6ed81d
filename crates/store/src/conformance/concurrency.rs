//! Many at once: of all who expect the same, one wins.

use std::collections::BTreeSet;

use jiff::SignedDuration;

use super::Subject;
use super::support::{Bed, all, new_queue, new_tree, next};
use crate::{Batch, NodeId, RunWrite, Sequence, ShardId, TreeKey, Unit};

pub(super) async fn exercise(subject: &impl Subject) {
    one_of_many_writers_wins(subject).await;
    one_of_many_creators_gets_the_name(subject).await;
    reserved_blocks_are_disjoint(subject).await;
    one_of_many_nodes_gets_the_shard(subject).await;
    a_queue_declared_by_many_is_one(subject).await;
}

async fn one_of_many_writers_wins(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let tree = bed.tree("nightly").await;
    for sequence in 1..10 {
        let mut batches = Vec::new();
        for _ in 0..8 {
            let run = RunWrite::Insert(bed.new_run().await);
            let unit = Unit { tree: Some(next(tree, sequence)), runs: vec![run], request: None };
            batches.push(Batch::of(vec![unit]));
        }
        let answers = all(batches.into_iter().map(|batch| bed.store.commit(batch))).await;
        let won =
            answers.into_iter().flat_map(|answer| answer.expect("the store answers")).filter(Result::is_ok);
        assert_eq!(won.count(), 1, "of all who expect the same sequence, one wins");
    }
    assert_eq!(bed.load(tree).await.expect("it is there").sequence, Sequence(10));
    assert_eq!(bed.live().await.len(), 9, "only winners wrote runs");
}

async fn one_of_many_creators_gets_the_name(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let first = bed.store.reserve(20).await.expect("keys are given");
    let creates = (first..first + 20).map(|key| {
        let unit = Unit { tree: Some(new_tree(TreeKey(key), "nightly")), runs: Vec::new(), request: None };
        bed.store.commit(Batch::of(vec![unit]))
    });

    let answers = all(creates).await;

    let won = answers.into_iter().flat_map(|answer| answer.expect("the store answers")).filter(Result::is_ok);
    assert_eq!(won.count(), 1);
    let stored = bed.store.timers(ShardId(0), None, 99).await.expect("the store answers");
    assert_eq!(stored.len(), 1, "the others left nothing");
}

async fn reserved_blocks_are_disjoint(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let counts = [1, 7, 30, 2, 11];
    let blocks = all((0..100).map(|place| bed.store.reserve(counts[place % 5]))).await;

    let mut keys = BTreeSet::new();
    for (place, first) in blocks.into_iter().enumerate() {
        let first = first.expect("keys are given");
        for key in first..first + i64::from(counts[place % 5]) {
            assert!(key > 0 && keys.insert(key), "{key} was given twice");
        }
    }
}

async fn one_of_many_nodes_gets_the_shard(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let nodes = (0..20).map(|node| NodeId(format!("node {node}").into()));
    let acquires = nodes.map(|node| bed.store.acquire(ShardId(3), node, SignedDuration::from_hours(1)));

    let leases = all(acquires).await;

    let held = leases.into_iter().filter_map(|lease| lease.expect("the store answers"));
    assert_eq!(held.count(), 1);
}

async fn a_queue_declared_by_many_is_one(subject: &impl Subject) {
    let bed = Bed::new(subject).await;

    let queues = all((0..20).map(|_| bed.store.create_queue(new_queue("default", "new")))).await;

    let keys: BTreeSet<_> = queues.into_iter().map(|queue| queue.expect("the store answers").queue).collect();
    assert_eq!(keys.len(), 1);
}
