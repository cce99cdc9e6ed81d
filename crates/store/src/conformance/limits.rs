//! Limits of a queue as a whole: never exceeded, and lifted as soon as there is room or time.

use jiff::{SignedDuration, Timestamp};
use punctual_core::Outcome;

use super::Subject;
use super::support::{Bed, all, at, bytes, closing};
use crate::{Claim, LiveRun, QueueKey, QueueSettings, Rate, RunKey, RunWrite, Taken};

pub(super) async fn exercise(subject: &impl Subject) {
    a_queue_has_so_many_running(subject).await;
    a_worker_has_so_many_running(subject).await;
    workers_who_claim_at_once_share_the_room(subject).await;
    a_rate_holds_in_every_window(subject).await;
    a_rate_holds_when_the_clock_goes_back(subject).await;
    a_rate_outlives_a_restart(subject).await;
    counts_outlive_a_restart(subject).await;
    nobody_gets_anything_from_a_paused_queue(subject).await;
}

pub(super) fn rate(starts_max: u32, seconds: i64) -> Option<Rate> {
    Some(Rate { starts_max, per: SignedDuration::from_secs(seconds) })
}

/// Makes the queue of a test have these settings.
pub(super) async fn set(bed: &Bed, settings: QueueSettings) {
    let updated = bed.store.update_queue(bed.queue, settings.clone()).await.expect("the store answers");
    assert_eq!(updated.expect("the queue is there").made.settings, settings);
}

/// Claims for a worker at a second.
pub(super) async fn claim_at(bed: &Bed, worker: &str, runs_max: usize, second: i64) -> Taken {
    let claim = Claim {
        queue: bed.queue,
        worker: worker.into(),
        runs_max,
        now: at(second),
        keeper: Default::default(),
    };
    bed.store.claim(claim).await.expect("the store answers")
}

/// Ends runs that run.
pub(super) async fn close(bed: &Bed, runs: impl IntoIterator<Item = LiveRun>) {
    let close = |run: LiveRun| {
        let closing = closing(Outcome::Succeeded);
        RunWrite::Close { run: run.made.run, attempt: Some(run.attempt), closing }
    };
    bed.write_runs(runs.into_iter().map(close).collect()).await.expect("they run");
}

pub(super) fn keys(taken: &Taken) -> Vec<RunKey> {
    taken.runs.iter().map(|run| run.made.run).collect()
}

async fn ready(bed: &Bed, count: usize) {
    for _ in 0..count {
        bed.ready().await;
    }
}

async fn a_queue_has_so_many_running(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    set(&bed, QueueSettings { concurrency_max: Some(3), ..QueueSettings::default() }).await;
    ready(&bed, 6).await;

    let first = claim_at(&bed, "one", 2, 0).await;
    assert_eq!((first.runs.len(), first.next_time), (2, None));
    let second = claim_at(&bed, "two", 9, 0).await;
    assert_eq!((second.runs.len(), second.next_time), (1, None), "no time will help, only an end");
    assert_eq!(claim_at(&bed, "two", 9, 0).await, Taken::default());

    close(&bed, second.runs).await;
    let third = claim_at(&bed, "one", 9, 0).await;
    assert_eq!(third.runs.len(), 1, "one has ended, so there is room for one");
    let run = third.runs[0].made.run;
    let retry = RunWrite::Retry { run, attempt: 1, not_before: at(5), failure: bytes("oops") };
    bed.write_runs(vec![retry]).await.expect("it runs");
    assert_eq!(claim_at(&bed, "one", 9, 0).await.runs.len(), 1, "what backs off takes no room");

    set(&bed, QueueSettings { concurrency_max: Some(1), ..QueueSettings::default() }).await;
    assert_eq!(bed.live().await.len(), 5, "a lower bound stops nothing");
    close(&bed, first.runs).await;
    assert_eq!(claim_at(&bed, "one", 9, 0).await, Taken::default(), "one still runs");
    set(&bed, QueueSettings::default()).await;
    assert_eq!(claim_at(&bed, "one", 9, 0).await.runs.len(), 1, "without a bound all may go");
}

async fn a_worker_has_so_many_running(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let settings = QueueSettings { worker_concurrency_max: Some(2), ..QueueSettings::default() };
    set(&bed, settings.clone()).await;
    ready(&bed, 9).await;

    let one = claim_at(&bed, "one", 9, 0).await;
    assert_eq!(one.runs.len(), 2);
    assert_eq!(claim_at(&bed, "one", 9, 0).await, Taken::default());
    assert_eq!(claim_at(&bed, "two", 9, 0).await.runs.len(), 2, "each worker has a bound of its own");

    let hand_over =
        |to: &str| RunWrite::HandOver { run: one.runs[0].made.run, attempt: 1, worker: to.into() };
    bed.write_runs(vec![hand_over("nobody")]).await.expect("it runs");
    assert_eq!(claim_at(&bed, "one", 9, 0).await.runs.len(), 1, "what was handed over is another's");
    bed.write_runs(vec![hand_over("three")]).await.expect("it runs");
    assert_eq!(claim_at(&bed, "three", 9, 0).await.runs.len(), 1, "it counts for whoever has it");
    set(&bed, QueueSettings::default()).await;
    assert_eq!(claim_at(&bed, "four", 3, 0).await.runs.len(), 3, "without a bound all may go");
    set(&bed, settings).await;
    ready(&bed, 5).await;
    for (worker, room) in [("one", 0), ("three", 0), ("four", 0), ("nobody", 2)] {
        assert_eq!(claim_at(&bed, worker, 9, 0).await.runs.len(), room, "{worker}: all that run count");
    }
}

async fn workers_who_claim_at_once_share_the_room(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let settings = QueueSettings { concurrency_max: Some(7), rate: rate(5, 60), ..QueueSettings::default() };
    set(&bed, settings).await;
    ready(&bed, 20).await;

    let claims = (0..10).map(|worker| {
        let worker = format!("worker {worker}").into();
        bed.store.claim(Claim {
            queue: bed.queue,
            worker,
            runs_max: 3,
            now: at(0),
            keeper: Default::default(),
        })
    });
    let taken = all(claims).await;

    let count = taken.into_iter().map(|taken| taken.expect("the store answers").runs.len()).sum::<usize>();
    assert_eq!(count, 5, "whoever claims at the same time");
}

async fn a_rate_holds_in_every_window(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    set(&bed, QueueSettings { rate: rate(3, 10), ..QueueSettings::default() }).await;
    assert_eq!(claim_at(&bed, "one", 9, 0).await, Taken::default(), "nothing waits");
    ready(&bed, 9).await;

    assert_eq!(claim_at(&bed, "one", 1, 0).await.next_time, None, "it got what it wanted");
    let taken = claim_at(&bed, "one", 9, 4).await;
    assert_eq!(
        (taken.runs.len(), taken.next_time),
        (2, Some(at(10))),
        "the window of the first one ends then"
    );
    let nothing = Taken { runs: Vec::new(), next_time: Some(at(10)) };
    assert_eq!(claim_at(&bed, "one", 9, 9).await, nothing, "it is not over yet");
    close(&bed, taken.runs).await;
    assert_eq!(claim_at(&bed, "one", 9, 9).await, nothing, "starts count, not what runs");
    let taken = claim_at(&bed, "one", 9, 10).await;
    assert_eq!((taken.runs.len(), taken.next_time), (1, Some(at(14))), "the window rolls");
    let taken = claim_at(&bed, "one", 9, 14).await;
    assert_eq!((taken.runs.len(), taken.next_time), (2, Some(at(20))));

    set(&bed, QueueSettings { rate: rate(4, 10), ..QueueSettings::default() }).await;
    assert_eq!(claim_at(&bed, "one", 1, 14).await.runs.len(), 1, "a higher rate holds at once");
    set(&bed, QueueSettings { rate: rate(1, 10), ..QueueSettings::default() }).await;
    let taken = claim_at(&bed, "one", 9, 20).await;
    assert_eq!((taken.runs.len(), taken.next_time), (0, Some(at(24))), "so does a lower one");
    assert_eq!(claim_at(&bed, "one", 9, 24).await.runs.len(), 1);
    ready(&bed, 1).await;
    set(&bed, QueueSettings::default()).await;
    assert_eq!(claim_at(&bed, "one", 9, 24).await.runs.len(), 2, "without a rate all may go");
}

async fn a_rate_holds_when_the_clock_goes_back(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    set(&bed, QueueSettings { rate: rate(2, 10), ..QueueSettings::default() }).await;
    ready(&bed, 40).await;
    let mut starts = Vec::new();
    for second in [100, 95, 96, 106, 109, 110, 101, 111, 90, 130, 105, 129, 140, 135, 141, 139] {
        let taken = claim_at(&bed, "one", 1, second).await;
        starts.extend(taken.runs.iter().map(|_| at(second)));
    }
    assert!(starts.len() > 4, "some went");
    assert_within(&starts, 2, 10);
}

/// In no window of this length are there more.
pub(super) fn assert_within(starts: &[Timestamp], starts_max: usize, seconds: i64) {
    for first in starts {
        let end = *first + SignedDuration::from_secs(seconds);
        let count = starts.iter().filter(|start| *start >= first && **start < end).count();
        assert!(count <= starts_max, "{count} starts within {seconds} seconds from {first}: {starts:?}");
    }
}

async fn reopen(subject: &impl Subject, bed: Bed) -> Bed {
    let queue: QueueKey = bed.queue;
    if subject.forgets() { bed } else { Bed { store: subject.reopen(bed.store).await, queue } }
}

async fn a_rate_outlives_a_restart(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let settings = QueueSettings { rate: rate(3, 10), ..QueueSettings::default() };
    set(&bed, settings).await;
    ready(&bed, 9).await;
    assert_eq!(claim_at(&bed, "one", 2, 0).await.runs.len(), 2);

    let bed = reopen(subject, bed).await;

    let taken = claim_at(&bed, "one", 9, 5).await;
    assert_eq!((taken.runs.len(), taken.next_time), (1, Some(at(10))), "the window goes on");
    let bed = reopen(subject, bed).await;
    assert_eq!(claim_at(&bed, "one", 9, 9).await.runs, []);
    assert_eq!(claim_at(&bed, "one", 9, 10).await.runs.len(), 2);
}

async fn counts_outlive_a_restart(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let settings = QueueSettings {
        concurrency_max: Some(3),
        worker_concurrency_max: Some(2),
        ..QueueSettings::default()
    };
    set(&bed, settings).await;
    ready(&bed, 9).await;
    let taken = claim_at(&bed, "one", 9, 0).await;

    let bed = reopen(subject, bed).await;

    assert_eq!(claim_at(&bed, "one", 9, 0).await, Taken::default());
    assert_eq!(claim_at(&bed, "two", 9, 0).await.runs.len(), 1);
    close(&bed, taken.runs).await;
    assert_eq!(claim_at(&bed, "one", 9, 0).await.runs.len(), 2);
}

async fn nobody_gets_anything_from_a_paused_queue(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    ready(&bed, 1).await;
    set(&bed, QueueSettings { paused: true, ..QueueSettings::default() }).await;
    assert_eq!(claim_at(&bed, "one", 9, 0).await, Taken::default());
    ready(&bed, 1).await;
    set(&bed, QueueSettings::default()).await;
    assert_eq!(claim_at(&bed, "one", 9, 0).await.runs.len(), 2);
    let unknown = Claim {
        queue: QueueKey(bed.queue.0 + 99),
        worker: "one".into(),
        runs_max: 9,
        now: at(0),
        keeper: Default::default(),
    };
    assert_eq!(bed.store.claim(unknown).await, Ok(Taken::default()), "nobody has declared it");
}
