//! Deduplication ids: no two live runs of a queue have the same one.

use punctual_core::Outcome;

use super::Subject;
use super::support::{Bed, all, at, bytes, closing, new_queue};
use crate::{Batch, Conflict, NewRun, RunKey, RunWrite, StoreError, Unit};

pub(super) async fn exercise(subject: &impl Subject) {
    a_live_run_keeps_others_out(subject).await;
    units_and_runs_are_judged_one_after_another(subject).await;
    of_many_at_once_one_gets_in(subject).await;
}

fn duplicate(run: RunKey) -> Result<(), StoreError> {
    Err(StoreError::Conflict(Conflict::Duplicate { run }))
}

async fn new_run(bed: &Bed, dedup: &str) -> NewRun {
    NewRun { dedup: Some(dedup.into()), ..bed.new_run().await }
}

fn insert(made: &NewRun) -> RunWrite {
    RunWrite::Insert(made.clone())
}

async fn a_live_run_keeps_others_out(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let (first, second, third) =
        (new_run(&bed, "a").await, new_run(&bed, "a").await, new_run(&bed, "b").await);
    bed.write_runs(vec![insert(&first)]).await.expect("nobody has it");
    assert_eq!(bed.write_runs(vec![insert(&second)]).await, duplicate(first.run));
    bed.write_runs(vec![insert(&third)]).await.expect("it is another one");
    let other = bed.store.create_queue(new_queue("default", "other")).await.expect("declared").queue;
    let elsewhere = NewRun { queue: other, ..new_run(&bed, "a").await };
    bed.write_runs(vec![insert(&elsewhere)]).await.expect("another queue has others");

    bed.claim(1).await;
    assert_eq!(bed.write_runs(vec![insert(&second)]).await, duplicate(first.run), "it runs");
    let retry = RunWrite::Retry { run: first.run, attempt: 1, not_before: at(5), failure: bytes("oops") };
    bed.write_runs(vec![retry]).await.expect("it runs");
    assert_eq!(bed.write_runs(vec![insert(&second)]).await, duplicate(first.run), "it backs off");
    let close = RunWrite::Close { run: first.run, attempt: None, closing: closing(Outcome::Failed) };
    let both = vec![close.clone(), insert(&second)];
    assert_eq!(bed.write_runs(both).await, duplicate(first.run), "it was live before the unit");
    bed.write_runs(vec![close]).await.expect("it is live");
    bed.write_runs(vec![insert(&second)]).await.expect("it has ended");
    let stored = bed.store.load_runs(vec![first.run, second.run]).await.expect("the store answers");
    for (stored, made) in stored.into_iter().zip([first, second]) {
        assert_eq!(stored.expect("it is kept").run.made, made, "both are kept as they were made");
    }
}

async fn units_and_runs_are_judged_one_after_another(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let made = [new_run(&bed, "a").await, new_run(&bed, "b").await, new_run(&bed, "a").await];
    assert_eq!(bed.write_runs(made.iter().map(insert).collect()).await, duplicate(made[0].run));
    assert_eq!(bed.live().await, [], "the unit has written nothing");
    let again = vec![insert(&made[1]), insert(&made[1])];
    let moved = Err(StoreError::Conflict(Conflict::RunMoved { run: made[1].run }));
    assert_eq!(bed.write_runs(again).await, moved, "a key is used once");

    let unit = |made: &NewRun| Unit { tree: None, runs: vec![insert(made)], request: None };
    let batch = Batch::of(made.iter().map(unit).collect());
    let answers = bed.store.commit(batch).await.expect("the store answers");
    assert_eq!(answers, [Ok(()), Ok(()), duplicate(made[0].run)], "a unit sees those before");
}

async fn of_many_at_once_one_gets_in(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let mut batches = Vec::new();
    for _ in 0..20 {
        let unit = Unit { tree: None, runs: vec![insert(&new_run(&bed, "a").await)], request: None };
        batches.push(Batch::of(vec![unit]));
    }
    let answers = all(batches.into_iter().map(|batch| bed.store.commit(batch))).await;
    let won = answers.into_iter().flat_map(|answer| answer.expect("the store answers")).filter(Result::is_ok);
    assert_eq!(won.count(), 1);
    assert_eq!(bed.live().await.len(), 1);
}
