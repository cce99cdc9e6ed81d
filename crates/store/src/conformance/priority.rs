//! Priorities: lower ones go sooner, equals by key, and nobody waits for ever.

use jiff::SignedDuration;

use super::Subject;
use super::limits::{claim_at, keys, set};
use super::support::{Bed, at, bytes};
use crate::{NewRun, QueueSettings, RunKey, RunWrite};

pub(super) async fn exercise(subject: &impl Subject) {
    lower_ones_go_sooner(subject).await;
    old_ones_go_before_better_ones_in_the_end(subject).await;
    a_rank_is_frozen_when_the_run_is_made(subject).await;
    the_depth_tells_who_is_first_in_line(subject).await;
}

async fn ready(bed: &Bed, priority: i16, second: i64) -> RunKey {
    let made = NewRun { priority, created_at: at(second), ..bed.new_run().await };
    bed.write_runs(vec![RunWrite::Insert(made.clone())]).await.expect("it is new");
    let stored = bed.store.load_runs(vec![made.run]).await.expect("the store answers").remove(0);
    assert_eq!(stored.expect("it is there").run.made, made, "the run is what was made");
    made.run
}

async fn lower_ones_go_sooner(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let mut runs = Vec::new();
    for priority in [0, 5, -5, 0, i16::MAX, i16::MIN, -5] {
        runs.push(ready(&bed, priority, 0).await);
    }
    let expected = [5, 2, 6, 0, 3, 1, 4].map(|place: usize| runs[place]);
    assert_eq!(keys(&claim_at(&bed, "one", 3, 0).await), expected[..3]);
    assert_eq!(keys(&claim_at(&bed, "one", 9, 0).await), expected[3..], "equals by key");

    let retry = RunWrite::Retry { run: runs[5], attempt: 1, not_before: at(5), failure: bytes("oops") };
    bed.write_runs(vec![retry, RunWrite::Release { run: runs[5] }]).await.expect("it runs");
    ready(&bed, 0, -9).await;
    assert_eq!(keys(&claim_at(&bed, "one", 1, 0).await), [runs[5]], "a place in line is kept");
}

async fn old_ones_go_before_better_ones_in_the_end(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let step = SignedDuration::from_secs(10);
    set(&bed, QueueSettings { priority_step: step, ..QueueSettings::default() }).await;
    let old = ready(&bed, 3, 0).await;
    let mut better = Vec::new();
    for second in [10, 29, 30, 31, 50] {
        better.push(ready(&bed, 0, second).await);
    }
    let claimed = keys(&claim_at(&bed, "one", 9, 99).await);
    let expected = [better[0], better[1], old, better[2], better[3], better[4]];
    assert_eq!(claimed, expected, "each step counts as ten seconds of waiting");
}

async fn a_rank_is_frozen_when_the_run_is_made(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let with = |seconds| QueueSettings {
        priority_step: SignedDuration::from_secs(seconds),
        ..QueueSettings::default()
    };
    set(&bed, with(100)).await;
    let first = ready(&bed, 1, 0).await;
    set(&bed, with(1)).await;
    let second = ready(&bed, 1, 50).await;
    assert_eq!(keys(&claim_at(&bed, "one", 9, 99).await), [second, first]);
}

async fn the_depth_tells_who_is_first_in_line(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let first = async || bed.store.queue_depth(bed.queue).await.expect("the store answers").first_made_at;
    assert_eq!(first().await, None);
    ready(&bed, 0, 7).await;
    assert_eq!(first().await, Some(at(7)));
    ready(&bed, 9, 5).await;
    assert_eq!(first().await, Some(at(7)));
    ready(&bed, -1, 9).await;
    assert_eq!(first().await, Some(at(9)), "the first in line, not the oldest");
    claim_at(&bed, "one", 2, 99).await;
    assert_eq!(first().await, Some(at(5)));
    claim_at(&bed, "one", 2, 99).await;
    assert_eq!(first().await, None);
}
