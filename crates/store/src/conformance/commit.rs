//! Commits: compared by sequence and epoch, wholly or not at all, one answer for each unit.

use jiff::SignedDuration;
use punctual_core::Outcome;

use super::Subject;
use super::support::{Bed, at, bytes, closing, new_run, next};
use crate::{
    Batch, Conflict, Epoch, NodeId, RunKey, RunWrite, Sequence, ShardId, StoreError, TreeKey, TreeRef,
    TreeWrite, Unit,
};

pub(super) async fn exercise(subject: &impl Subject) {
    what_is_written_is_read(subject).await;
    what_did_not_change_is_left_out(subject).await;
    the_sequence_is_compared(subject).await;
    the_epoch_is_compared(subject).await;
    a_refused_run_refuses_its_schedule(subject).await;
    one_refused_unit_hurts_no_other(subject).await;
    units_of_a_batch_see_each_other(subject).await;
    a_retired_schedule_is_gone(subject).await;
}

fn moved(expected: u64, found: Option<u64>) -> Result<(), StoreError> {
    let (expected, found) = (Sequence(expected), found.map(Sequence));
    Err(StoreError::Conflict(Conflict::Sequence { expected, found }))
}

async fn what_is_written_is_read(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let tree = bed.tree("nightly").await;

    let stored = bed.load(tree).await.expect("it was written");

    assert_eq!((stored.tree, stored.shard, stored.sequence), (tree, ShardId(0), Sequence(1)));
    assert_eq!((&*stored.key.namespace, &*stored.key.schedule), ("default", "nightly"));
    assert_eq!(stored.definition, bytes("definition of nightly"));
    assert_eq!(stored.state, bytes("state after 0"));
    assert_eq!((stored.completion.clone(), stored.due_time), (None, Some(at(0))));
    let unknown = TreeRef::Key(TreeKey(tree.0 + 1_000));
    let asked = vec![unknown, TreeRef::Key(tree), TreeRef::Name(stored.key.clone())];
    let found = bed.store.load(asked).await.expect("the store answers");
    assert_eq!(found, [None, Some(stored.clone()), Some(stored)], "answers come in the order asked for");
}

async fn what_did_not_change_is_left_out(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let tree = bed.tree("nightly").await;
    let completion = Some(Some(bytes("result")));
    bed.write(TreeWrite { completion, ..next(tree, 1) }).await.expect("nobody was faster");

    bed.write(TreeWrite { due_time: None, ..next(tree, 2) }).await.expect("nobody was faster");
    let stored = bed.load(tree).await.expect("it is there");
    assert_eq!(stored.definition, bytes("definition of nightly"), "the definition stays");
    assert_eq!(stored.completion, Some(bytes("result")), "the completion stays");
    assert_eq!((stored.due_time, stored.sequence), (None, Sequence(3)), "the due time is always written");

    let definition = Some(bytes("another"));
    bed.write(TreeWrite { definition, completion: Some(None), ..next(tree, 3) })
        .await
        .expect("nobody was faster");
    let stored = bed.load(tree).await.expect("it is there");
    assert_eq!((stored.definition, stored.completion), (bytes("another"), None), "the inner nothing removes");
}

async fn the_sequence_is_compared(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let tree = bed.tree("nightly").await;

    assert_eq!(bed.write(next(tree, 1)).await, Ok(()));
    assert_eq!(bed.write(next(tree, 1)).await, moved(1, Some(2)), "the second with the same sequence loses");
    assert_eq!(bed.write(next(tree, 3)).await, moved(3, Some(2)), "the future is no better than the past");
    assert_eq!(bed.write(next(tree, u64::MAX)).await, moved(u64::MAX, Some(2)));
    let unknown = TreeKey(tree.0 + 1_000);
    assert_eq!(bed.write(next(unknown, 1)).await, moved(1, None), "nothing is there");
    assert_eq!(bed.load(unknown).await, None, "a refused write makes nothing");
    assert_eq!(bed.load(tree).await.expect("it is there").state, bytes("state after 1"));
}

async fn the_epoch_is_compared(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let tree = bed.tree("nightly").await;
    let fenced = |epoch| Err(StoreError::Fenced { epoch: Epoch(epoch) });
    let with = |epoch, sequence| TreeWrite { epoch: Some(Epoch(epoch)), ..next(tree, sequence) };
    let acquire =
        |node: &str| bed.store.acquire(ShardId(0), NodeId(node.into()), SignedDuration::from_hours(1));

    let first = acquire("one").await.expect("the store answers").expect("the shard is free");
    assert_eq!(bed.write(with(first.epoch.0, 1)).await, Ok(()));
    assert_eq!(
        bed.write(with(first.epoch.0 + 1, 2)).await,
        fenced(first.epoch.0 + 1),
        "nobody has that epoch"
    );

    bed.store.release(first.clone()).await.expect("the store answers");
    let second = acquire("two").await.expect("the store answers").expect("it was given up");
    assert!(second.epoch > first.epoch, "another owner, another epoch");
    assert_eq!(bed.write(with(first.epoch.0, 2)).await, fenced(first.epoch.0), "the old owner is refused");
    assert_eq!(bed.write(with(first.epoch.0, 9)).await, fenced(first.epoch.0), "the fence is judged first");
    assert_eq!(bed.write(with(second.epoch.0, 2)).await, Ok(()));
    assert_eq!(bed.write(next(tree, 3)).await, Ok(()), "commands have no epoch");
    let elsewhere = TreeWrite { shard: ShardId(1), ..with(second.epoch.0, 4) };
    assert_eq!(
        bed.write(elsewhere).await,
        fenced(second.epoch.0),
        "the epoch is that of the schedule's shard"
    );
}

async fn a_refused_run_refuses_its_schedule(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let tree = bed.tree("nightly").await;
    let known = bed.ready().await;
    let fresh = bed.new_run().await;
    let moved_run = |run| Err(StoreError::Conflict(Conflict::RunMoved { run }));

    let runs = vec![RunWrite::Insert(fresh.clone()), RunWrite::Insert(known.clone())];
    let ledger = vec![super::support::entry(1, 1)];
    let unit = Unit { tree: Some(TreeWrite { ledger, ..next(tree, 1) }), runs: runs.clone(), request: None };
    assert_eq!(bed.commit(unit).await, moved_run(known.run));
    assert_eq!(bed.load(tree).await.expect("it is there").sequence, Sequence(1), "the schedule is as it was");
    assert_eq!(bed.live().await.len(), 1, "neither run was written");
    let ledger = bed.store.ledger(tree, at(-9), at(9), 10).await.expect("the store answers");
    assert_eq!(ledger, [], "nor was the ledger");

    let stale = Unit { tree: Some(next(tree, 9)), runs, request: None };
    assert_eq!(bed.commit(stale).await, moved(9, Some(1)), "the schedule is judged first");

    let close = RunWrite::Close { run: fresh.run, attempt: None, closing: closing(Outcome::Succeeded) };
    let unit =
        Unit { tree: Some(next(tree, 1)), runs: vec![RunWrite::Insert(fresh.clone()), close], request: None };
    assert_eq!(
        bed.commit(unit).await,
        moved_run(fresh.run),
        "runs are judged by what was there before the unit"
    );
}

async fn one_refused_unit_hurts_no_other(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let trees = [bed.tree("a").await, bed.tree("b").await, bed.tree("c").await];
    let runs = [bed.new_run().await, bed.new_run().await, bed.new_run().await];

    let unit = |place: usize, sequence| Unit {
        tree: Some(next(trees[place], sequence)),
        runs: vec![RunWrite::Insert(runs[place].clone())],
        request: None,
    };
    let batch = Batch::of(vec![unit(0, 1), unit(1, 7), unit(2, 1)]);
    let answers = bed.store.commit(batch).await.expect("the store answers");

    assert_eq!(answers, [Ok(()), moved(7, Some(1)), Ok(())], "each unit has its own answer, in order");
    let live: Vec<RunKey> = bed.live().await.iter().map(|live| live.made.run).collect();
    assert_eq!(live, [runs[0].run, runs[2].run], "nothing of the refused unit was written");
    let answers = bed.store.commit(Batch::default()).await.expect("the store answers");
    assert_eq!(answers, [], "an empty batch is fine");
}

async fn units_of_a_batch_see_each_other(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let tree = TreeKey(bed.key().await);
    let run = new_run(RunKey(bed.key().await), bed.queue);

    let create =
        Unit { tree: Some(super::support::new_tree(tree, "nightly")), runs: Vec::new(), request: None };
    let advance =
        Unit { tree: Some(next(tree, 1)), runs: vec![RunWrite::Insert(run.clone())], request: None };
    let close = RunWrite::Close { run: run.run, attempt: None, closing: closing(Outcome::Cancelled) };
    let end = Unit { tree: Some(next(tree, 2)), runs: vec![close], request: None };
    let late = Unit { tree: Some(next(tree, 2)), runs: Vec::new(), request: None };
    let batch = Batch::of(vec![create, advance, end, late]);
    let answers = bed.store.commit(batch).await.expect("the store answers");

    assert_eq!(answers, [Ok(()), Ok(()), Ok(()), moved(2, Some(3))], "units are written in order");
}

async fn a_retired_schedule_is_gone(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let tree = bed.tree("nightly").await;
    let made = bed.new_run().await;
    let made = crate::NewRun { origin: Some((tree, super::support::start(5))), ..made };
    let ledger = vec![super::support::entry(1, 1)];
    let completion = Some(Some(bytes("result")));
    let write = TreeWrite { ledger, completion, ..next(tree, 1) };
    let unit = Unit { tree: Some(write), runs: vec![RunWrite::Insert(made.clone())], request: None };
    bed.commit(unit).await.expect("nobody was faster");

    bed.write(TreeWrite { retired: true, ..next(tree, 2) }).await.expect("nobody was faster");

    assert_eq!(bed.load(tree).await, None, "it is gone");
    assert_eq!(bed.load_name("nightly").await, None, "its name is free");
    let ledger = bed.store.ledger(tree, at(-9), at(9), 10).await.expect("the store answers");
    assert_eq!(ledger, [], "its ledger is gone");
    assert_eq!(bed.write(next(tree, 3)).await, moved(3, None), "nobody can write it any more");
    let runs = bed.store.load_runs(vec![made.run]).await.expect("the store answers");
    assert!(runs[0].is_some(), "its runs stay");
    let again = bed.tree("nightly").await;
    let stored = bed.load(again).await.expect("the name can be used again");
    assert_eq!(stored.completion, None, "nothing is inherited");
}
