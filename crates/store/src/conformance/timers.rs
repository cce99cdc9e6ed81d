//! Timers: what the owner of a shard reads when it begins.

use jiff::Timestamp;

use super::Subject;
use super::support::{Bed, at, new_tree, next};
use crate::{ShardId, TreeKey, TreeWrite};

pub(super) async fn exercise(subject: &impl Subject) {
    timers_come_by_shard_and_key(subject).await;
    times_are_exact(subject).await;
}

async fn timers_come_by_shard_and_key(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let mut trees = Vec::new();
    for place in 0..6_u32 {
        let tree = TreeKey(bed.key().await);
        let shard = ShardId(place % 2);
        let due_time = (place != 4).then(|| at(-i64::from(place)));
        let write = TreeWrite { shard, due_time, ..new_tree(tree, &format!("tree {place}")) };
        bed.write(write).await.expect("a new schedule is written");
        trees.push(tree);
    }
    let expected = [(trees[0], Some(at(0))), (trees[2], Some(at(-2))), (trees[4], None)];
    let timers = |after, count| bed.store.timers(ShardId(0), after, count);

    assert_eq!(timers(None, 10).await.expect("the store answers"), expected, "by ascending key");
    assert_eq!(timers(None, 2).await.expect("the store answers"), expected[..2], "at most this many");
    assert_eq!(
        timers(Some(trees[0]), 10).await.expect("the store answers"),
        expected[1..],
        "after one of them"
    );
    assert_eq!(timers(Some(trees[1]), 1).await.expect("the store answers"), expected[1..2], "after any key");
    assert_eq!(timers(Some(trees[4]), 10).await.expect("the store answers"), []);
    assert_eq!(timers(None, 0).await.expect("the store answers"), []);

    let write = TreeWrite { due_time: Some(at(50)), ..next(trees[4], 1) };
    bed.write(write).await.expect("nobody was faster");
    bed.write(TreeWrite { retired: true, ..next(trees[0], 1) }).await.expect("nobody was faster");
    let expected = [(trees[2], Some(at(-2))), (trees[4], Some(at(50)))];
    assert_eq!(
        timers(None, 10).await.expect("the store answers"),
        expected,
        "they say what was written last"
    );
}

async fn times_are_exact(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let tree = bed.tree("nightly").await;
    let times = [Timestamp::UNIX_EPOCH, Timestamp::MIN, Timestamp::MAX, at(3), Timestamp::constant(-5, -1)];
    for (sequence, time) in (1..).zip(times) {
        let write = TreeWrite { due_time: Some(time), ..next(tree, sequence) };
        bed.write(write).await.expect("nobody was faster");

        assert_eq!(bed.load(tree).await.expect("it is there").due_time, Some(time));
        let timers = bed.store.timers(ShardId(0), None, 9).await.expect("the store answers");
        assert_eq!(timers, [(tree, Some(time))]);
    }
}
