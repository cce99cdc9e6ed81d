//! Keys with limits of their own: each has its turn, none exceeds its limits, and rank counts within a key.

use std::sync::Arc;

use super::Subject;
use super::limits::{assert_within, claim_at, close, keys, rate, set};
use super::support::{Bed, at, bytes};
use crate::{NewRun, QueueSettings, RunKey, RunWrite, Taken};

pub(super) async fn exercise(subject: &impl Subject) {
    keys_are_served_in_turn(subject).await;
    a_key_that_comes_late_waits_for_one_round(subject).await;
    rank_counts_within_a_key(subject).await;
    a_key_has_so_many_running(subject).await;
    a_key_has_a_rate(subject).await;
    a_rate_of_a_key_holds_when_the_clock_goes_back(subject).await;
    limits_of_keys_and_of_the_queue_hold_together(subject).await;
    what_waits_no_more_is_passed_over(subject).await;
    keys_outlive_a_restart(subject).await;
    limits_of_keys_come_and_go(subject).await;
    without_limits_keys_mean_nothing(subject).await;
}

/// A run of this key that is ready.
async fn ready(bed: &Bed, key: &str) -> RunKey {
    let made = NewRun { key: key.into(), ..bed.new_run().await };
    bed.write_runs(vec![RunWrite::Insert(made.clone())]).await.expect("it is new");
    made.run
}

async fn ready_all(bed: &Bed, keys: &str) {
    for key in keys.chars() {
        ready(bed, &key.to_string()).await;
    }
}

fn served(taken: &Taken) -> String {
    taken.runs.iter().map(|run| &*run.made.key).collect()
}

fn each_one(key_concurrency_max: u32) -> QueueSettings {
    QueueSettings { key_concurrency_max: Some(key_concurrency_max), ..QueueSettings::default() }
}

async fn keys_are_served_in_turn(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    set(&bed, each_one(100)).await;
    ready_all(&bed, "aaaaabbcaa").await;

    let taken = claim_at(&bed, "one", 99, 0).await;

    assert_eq!(served(&taken), "abcabaaaaa", "nobody waits because another has much to do");
    assert_eq!(taken.next_time, None);
    assert_eq!(taken.runs[0].attempt, 1, "a new attempt begins");
}

async fn a_key_that_comes_late_waits_for_one_round(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    set(&bed, each_one(100)).await;
    ready_all(&bed, "aaaabbbb").await;
    assert_eq!(served(&claim_at(&bed, "one", 3, 0).await), "aba");
    ready_all(&bed, "cc").await;
    assert_eq!(served(&claim_at(&bed, "one", 5, 0).await), "bacba", "not before those who wait already");
}

async fn rank_counts_within_a_key(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    set(&bed, each_one(100)).await;
    let mut runs = Vec::new();
    for (key, priority) in [("a", 0), ("a", -3), ("b", 5), ("b", 4), ("a", -3)] {
        let made = NewRun { key: key.into(), priority, ..bed.new_run().await };
        bed.write_runs(vec![RunWrite::Insert(made.clone())]).await.expect("it is new");
        runs.push(made.run);
    }
    let expected = [1, 3, 4, 2, 0].map(|place: usize| runs[place]);
    assert_eq!(keys(&claim_at(&bed, "one", 9, 0).await), expected);
}

async fn a_key_has_so_many_running(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    set(&bed, each_one(2)).await;
    ready_all(&bed, "aaaab").await;
    // No key is a key like any other.
    ready(&bed, "").await;

    let taken = claim_at(&bed, "one", 99, 0).await;
    assert_eq!(served(&taken), "aba");
    assert_eq!(taken.runs.len(), 4);
    assert_eq!(claim_at(&bed, "two", 99, 0).await, Taken::default(), "only an end helps");

    let first = taken.runs[0].clone();
    let retry = RunWrite::Retry { run: first.made.run, attempt: 1, not_before: at(5), failure: bytes("") };
    bed.write_runs(vec![retry]).await.expect("it runs");
    let next = claim_at(&bed, "two", 99, 0).await;
    assert_eq!(served(&next), "a", "what backs off takes no room");
    bed.write_runs(vec![RunWrite::Release { run: first.made.run }]).await.expect("it backs off");
    assert_eq!(claim_at(&bed, "two", 99, 0).await, Taken::default());
    close(&bed, next.runs).await;
    let next = claim_at(&bed, "two", 99, 0).await;
    assert_eq!((served(&next), next.runs[0].attempt), ("a".into(), 2), "it kept its place in line");

    set(&bed, each_one(4)).await;
    assert_eq!(served(&claim_at(&bed, "two", 99, 0).await), "a", "a higher bound holds at once");
    set(&bed, each_one(1)).await;
    ready_all(&bed, "ac").await;
    assert_eq!(served(&claim_at(&bed, "two", 99, 0).await), "c", "so does a lower one");
}

async fn a_key_has_a_rate(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    set(&bed, QueueSettings { key_rate: rate(2, 10), ..QueueSettings::default() }).await;
    ready_all(&bed, "aaaab").await;

    let taken = claim_at(&bed, "one", 2, 0).await;
    assert_eq!((served(&taken), taken.next_time), ("ab".into(), None));
    let taken = claim_at(&bed, "one", 9, 4).await;
    assert_eq!((served(&taken), taken.next_time), ("a".into(), Some(at(10))), "its rate holds it back");
    ready_all(&bed, "bc").await;
    let taken = claim_at(&bed, "one", 9, 6).await;
    assert_eq!((served(&taken), taken.next_time), ("bc".into(), Some(at(10))), "others go meanwhile");
    ready_all(&bed, "b").await;
    let taken = claim_at(&bed, "one", 9, 10).await;
    assert_eq!((served(&taken), taken.next_time), ("ab".into(), Some(at(14))), "the windows roll");
    close(&bed, bed.live().await.into_iter().filter(|run| run.attempt > 0)).await;
    let taken = claim_at(&bed, "one", 9, 13).await;
    assert_eq!((served(&taken), taken.next_time), ("".into(), Some(at(14))), "starts count, not what runs");
    assert_eq!(served(&claim_at(&bed, "one", 9, 20).await), "a");
    // Long after, when nothing is left to know about these keys.
    ready_all(&bed, "bbcc").await;
    assert_eq!(served(&claim_at(&bed, "one", 9, 500).await), "bcbc");
}

async fn a_rate_of_a_key_holds_when_the_clock_goes_back(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    set(&bed, QueueSettings { key_rate: rate(2, 10), ..QueueSettings::default() }).await;
    let mut starts = Vec::new();
    // At 120 the windows are over, so a store may forget them; then the clock says that they are not.
    for second in [100, 105, 120, 108, 109, 125, 110, 104, 126, 140, 127, 130] {
        ready_all(&bed, if second == 120 { "b" } else { "a" }).await;
        let taken = claim_at(&bed, "one", 1, second).await;
        starts.extend(taken.runs.iter().filter(|run| &*run.made.key == "a").map(|_| at(second)));
        close(&bed, taken.runs).await;
    }
    assert!(starts.len() > 3, "some went: {starts:?}");
    assert_within(&starts, 2, 10);
}

async fn limits_of_keys_and_of_the_queue_hold_together(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let settings = QueueSettings {
        concurrency_max: Some(4),
        worker_concurrency_max: Some(3),
        rate: rate(6, 10),
        key_concurrency_max: Some(2),
        key_rate: rate(3, 10),
        ..QueueSettings::default()
    };
    set(&bed, settings).await;
    ready_all(&bed, "aaaaabbbbbcccccddddd").await;
    let mut starts: Vec<(Arc<str>, jiff::Timestamp)> = Vec::new();
    for second in 0..60 {
        for worker in ["one", "two"] {
            let taken = claim_at(&bed, worker, 1 + second as usize % 4, second).await;
            starts.extend(taken.runs.iter().map(|run| (run.made.key.clone(), at(second))));
            let running = bed.live().await.into_iter().filter(|run| run.attempt > 0);
            let running: Vec<_> = running.collect();
            assert!(running.len() <= 4, "the queue's bound");
            for key in ["a", "b", "c", "d"] {
                assert!(running.iter().filter(|run| &*run.made.key == key).count() <= 2, "the key's bound");
            }
            if second % 3 == 0 {
                close(&bed, running.into_iter().take(2)).await;
            }
        }
    }
    assert_eq!(starts.len(), 20, "all of them went in the end");
    assert_within(&starts.iter().map(|(_, at)| *at).collect::<Vec<_>>(), 6, 10);
    for key in ["a", "b", "c", "d"] {
        let of_key: Vec<_> = starts.iter().filter(|(of, _)| &**of == key).map(|(_, at)| *at).collect();
        assert_within(&of_key, 3, 10);
    }
}

async fn what_waits_no_more_is_passed_over(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    set(&bed, each_one(1)).await;
    let runs =
        [ready(&bed, "a").await, ready(&bed, "a").await, ready(&bed, "b").await, ready(&bed, "a").await];
    let end = |run| RunWrite::Close {
        run,
        attempt: None,
        closing: super::support::closing(punctual_core::Outcome::Cancelled),
    };
    bed.write_runs(vec![end(runs[0])]).await.expect("it is live");
    bed.write_runs(vec![end(runs[2])]).await.expect("it is live");
    assert_eq!(keys(&claim_at(&bed, "one", 9, 0).await), [runs[1]]);
    bed.write_runs(vec![end(runs[1]), end(runs[3])]).await.expect("they are live");
    assert_eq!(claim_at(&bed, "one", 9, 0).await, Taken::default());
    let again = ready(&bed, "a").await;
    assert_eq!(keys(&claim_at(&bed, "one", 9, 0).await), [again]);
}

async fn keys_outlive_a_restart(subject: &impl Subject) {
    if subject.forgets() {
        return;
    }
    let told = [story(subject, false).await, story(subject, true).await];
    assert_eq!(told[0], told[1], "turns, windows and counts are kept");
}

async fn story(subject: &impl Subject, restarts: bool) -> String {
    let mut bed = Bed::new(subject).await;
    set(&bed, QueueSettings { key_rate: rate(2, 10), ..each_one(2) }).await;
    ready_all(&bed, "aaaabbbc").await;
    let mut story = String::new();
    for (second, runs_max) in [(0, 2), (1, 1), (2, 9), (5, 9), (10, 1), (11, 9), (30, 9)] {
        if restarts {
            let queue = bed.queue;
            bed = Bed { store: subject.reopen(bed.store).await, queue };
        }
        let taken = claim_at(&bed, "one", runs_max, second).await;
        story += &format!("{} until {:?}; ", served(&taken), taken.next_time);
        if second == 5 {
            close(&bed, bed.live().await.into_iter().filter(|run| run.attempt > 0)).await;
            ready_all(&bed, "cda").await;
        }
    }
    story
}

async fn limits_of_keys_come_and_go(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    ready_all(&bed, "aaabbb").await;
    assert_eq!(served(&claim_at(&bed, "one", 1, 0).await), "a", "by rank alone");
    set(&bed, each_one(2)).await;
    let taken = claim_at(&bed, "one", 9, 0).await;
    assert_eq!((served(&taken).matches('a').count(), taken.runs.len()), (1, 3), "what runs counts");
    set(&bed, QueueSettings { key_rate: rate(1, 10), ..each_one(9) }).await;
    assert_eq!(claim_at(&bed, "one", 9, 1).await.runs.len(), 2, "each once");
    set(&bed, QueueSettings { concurrency_max: Some(50), ..QueueSettings::default() }).await;
    ready_all(&bed, "bba").await;
    assert_eq!(served(&claim_at(&bed, "one", 9, 1).await), "bba", "by rank again");
    set(&bed, QueueSettings { key_rate: rate(1, 10), ..QueueSettings::default() }).await;
    ready_all(&bed, "aabb").await;
    assert_eq!(claim_at(&bed, "one", 9, 1).await.runs.len(), 2, "windows begin anew");
}

async fn without_limits_keys_mean_nothing(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    set(&bed, QueueSettings { concurrency_max: Some(4), ..QueueSettings::default() }).await;
    ready_all(&bed, "aaab").await;
    assert_eq!(served(&claim_at(&bed, "one", 9, 0).await), "aaab");
}
