//! Claims: ready runs, the oldest first, each to one worker, each a new attempt.

use std::collections::BTreeSet;

use super::Subject;
use super::support::{Bed, all, at, new_queue, new_run};
use crate::{Batch, Claim, LiveState, RunKey, RunWrite, Taken, Unit};

pub(super) async fn exercise(subject: &impl Subject) {
    the_oldest_go_first(subject).await;
    queues_are_apart(subject).await;
    each_run_goes_to_one_of_many_workers(subject).await;
}

async fn insert_many(bed: &Bed, count: u32) -> Vec<RunKey> {
    let first = bed.store.reserve(count).await.expect("keys are given");
    let keys: Vec<RunKey> = (first..first + i64::from(count)).map(RunKey).collect();
    let insert = |run: &RunKey| RunWrite::Insert(new_run(*run, bed.queue));
    let units = keys.iter().map(|run| Unit { tree: None, runs: vec![insert(run)], request: None });
    let answers = bed.store.commit(Batch::of(units.collect())).await.expect("the store answers");
    assert!(answers.iter().all(Result::is_ok));
    keys
}

async fn the_oldest_go_first(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    assert_eq!(bed.claim(5).await, [], "nothing is there");
    let keys = insert_many(&bed, 5).await;

    assert_eq!(bed.claim(0).await, [], "nothing was asked for");
    let claimed = bed.claim(2).await;
    assert_eq!(claimed.iter().map(|live| live.made.run).collect::<Vec<_>>(), keys[..2], "at most this many");
    for live in &claimed {
        assert_eq!(live.attempt, 1, "a new attempt begins");
        assert_eq!(live.state, LiveState::Running { worker: "worker".into(), started_at: at(77) });
        assert_eq!(live.made, new_run(live.made.run, bed.queue), "the run is what was made");
    }
    assert_eq!(bed.live().await[..2], claimed, "what was handed out is what is kept");
    let rest = bed.claim(9).await;
    assert_eq!(
        rest.iter().map(|live| live.made.run).collect::<Vec<_>>(),
        keys[2..],
        "nothing is claimed twice"
    );
    assert_eq!(bed.claim(9).await, []);
}

async fn queues_are_apart(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let other = bed.store.create_queue(new_queue("default", "other")).await.expect("it is declared").queue;
    insert_many(&bed, 1).await;

    let claim =
        Claim { queue: other, worker: "worker".into(), runs_max: 9, now: at(0), keeper: Default::default() };
    assert_eq!(bed.store.claim(claim).await, Ok(Taken::default()), "the run is in another queue");
    assert_eq!(bed.claim(9).await.len(), 1);
}

async fn each_run_goes_to_one_of_many_workers(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let keys = insert_many(&bed, 200).await;
    let claims = (0..50).map(|worker| {
        let worker = format!("worker {worker}").into();
        bed.store.claim(Claim {
            queue: bed.queue,
            worker,
            runs_max: 5,
            now: at(0),
            keeper: Default::default(),
        })
    });

    let answers = all(claims).await;

    let claimed: Vec<RunKey> = answers
        .into_iter()
        .flat_map(|taken| taken.expect("the store answers").runs)
        .map(|live| live.made.run)
        .collect();
    assert_eq!(claimed.len(), 200, "every run was handed out, and once");
    assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>(), keys.into_iter().collect());
}
