//! Limits that come and go while runs do, by a clock that jumps: whatever happens, no limit is exceeded and nobody is
//! forgotten.
//!
//! Unlike the comparison with the reference store this asks for no particular order: keys get their turns in the middle of
//! the work, and lose them again.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::SignedDuration;
use punctual_core::Outcome;

use super::Subject;
use super::model::{Declared, KEYS, WORKERS};
use super::support::{Bed, Random, at, bytes, closing};
use crate::{Claim, LiveRun, LiveState, NewRun, QueueSettings, Rate, RunKey, RunWrite};

const STEPS: usize = 250;

/// Tries it with the numbers of one seed.
pub async fn exercise(subject: &impl Subject, seed: u64) {
    let mut bed = Bed::new(subject).await;
    let mut random = Random(seed);
    let mut declared = Declared::new(QueueSettings::default());
    let mut clock = 0;
    for step in 0..STEPS {
        match random.below(12) {
            0..=2 => insert(&bed, &mut random).await,
            3 if random.one_in(3) => {
                declared = Declared::new(settings(&mut random));
                let updated = bed.store.update_queue(bed.queue, declared.settings.clone()).await;
                assert!(updated.expect("the store answers").is_some());
            }
            4 if random.one_in(6) && !subject.forgets() => {
                let queue = bed.queue;
                bed = Bed { store: subject.reopen(bed.store).await, queue };
            }
            5 | 6 => change(&bed, &mut random).await,
            _ => {
                clock += random.below(9) as i64 - if random.one_in(4) { random.below(40) as i64 } else { 0 };
                let worker: Arc<str> = WORKERS[random.below(3)].into();
                let claim = Claim {
                    queue: bed.queue,
                    worker,
                    runs_max: random.below(6),
                    now: at(clock),
                    keeper: Default::default(),
                };
                let taken = bed.store.claim(claim.clone()).await.expect("the store answers").runs;
                assert!(taken.len() <= claim.runs_max, "at most this many");
                assert!(taken.is_empty() || !declared.settings.paused, "nobody gets anything");
                declared.check(bed.queue, &claim.worker, &bed.live().await, &taken);
            }
        }
        if step % 25 == 0 {
            check_depth(&bed).await;
        }
    }
    everybody_goes_in_the_end(&bed, clock + 10_000).await;
}

fn settings(random: &mut Random) -> QueueSettings {
    let mut rate = |times| {
        let (starts_max, seconds) = (1 + random.below(4) as u32, 1 + random.below(40) as i64);
        random.one_in(times).then_some(Rate { starts_max, per: SignedDuration::from_secs(seconds) })
    };
    let (rate, key_rate) = (rate(3), rate(2));
    QueueSettings {
        concurrency_max: random.one_in(3).then(|| random.below(9) as u32),
        worker_concurrency_max: random.one_in(3).then(|| random.below(4) as u32),
        rate,
        key_concurrency_max: random.one_in(2).then(|| random.below(4) as u32),
        key_rate,
        paused: random.one_in(10),
        ..QueueSettings::default()
    }
}

async fn insert(bed: &Bed, random: &mut Random) {
    let mut runs = Vec::new();
    for _ in 0..1 + random.below(4) {
        runs.push(RunWrite::Insert(NewRun {
            key: KEYS[random.below(KEYS.len())].into(),
            priority: random.below(5) as i16,
            created_at: at(random.below(50) as i64),
            not_before: random.one_in(5).then(|| at(0)),
            ..bed.new_run().await
        }));
    }
    bed.write_runs(runs).await.expect("they are new");
}

/// What may happen to a run between claims.
async fn change(bed: &Bed, random: &mut Random) {
    let live = bed.live().await;
    let Some(LiveRun { made, attempt, state, .. }) = random.pick(&live).cloned() else { return };
    let run = made.run;
    let close = |attempt| RunWrite::Close { run, attempt, closing: closing(Outcome::Failed) };
    let write = match (state, random.below(3)) {
        (LiveState::Ready, _) => close(None),
        (LiveState::BackingOff { .. }, _) => RunWrite::Release { run },
        (LiveState::Running { .. }, 0) => {
            RunWrite::Retry { run, attempt, not_before: at(0), failure: bytes("oops") }
        }
        (LiveState::Running { .. }, 1) => {
            RunWrite::HandOver { run, attempt, worker: WORKERS[random.below(3)].into() }
        }
        (LiveState::Running { .. }, _) => close(Some(attempt)),
    };
    bed.write_runs(vec![write]).await.expect("it is where it was seen");
}

async fn check_depth(bed: &Bed) {
    let depth = bed.store.queue_depth(bed.queue).await.expect("the store answers");
    let live = bed.live().await;
    let ready = live.iter().filter(|live| live.state == LiveState::Ready).count() as u64;
    assert_eq!((depth.ready, depth.ready + depth.backing_off + depth.running), (ready, live.len() as u64));
    assert_eq!(depth.first_made_at.is_some(), ready > 0);
}

/// With generous limits that still make keys take turns, everything that waits is handed out.
async fn everybody_goes_in_the_end(bed: &Bed, second: i64) {
    let generous = QueueSettings { key_concurrency_max: Some(10_000), ..QueueSettings::default() };
    bed.store.update_queue(bed.queue, generous).await.expect("the store answers");
    let waiting = keys(bed.live().await.into_iter().filter(|run| run.state == LiveState::Ready));
    let claim = Claim {
        queue: bed.queue,
        worker: "last".into(),
        runs_max: usize::MAX,
        now: at(second),
        keeper: Default::default(),
    };
    let taken = bed.store.claim(claim).await.expect("the store answers").runs;
    assert_eq!(keys(taken), waiting, "nobody is forgotten");
}

fn keys(runs: impl IntoIterator<Item = LiveRun>) -> BTreeSet<RunKey> {
    runs.into_iter().map(|run| run.made.run).collect()
}
