//! What was answered is there after a restart.

use jiff::SignedDuration;
use punctual_core::{Outcome, ScheduleKey, StopKind};

use super::Subject;
use super::support::{Bed, at, bytes, closing, entry, next, start};
use crate::{
    Expected, NewRun, NodeId, RunKey, RunQuery, RunWrite, ScheduleQuery, ShardId, TreeKey, TreeRef,
    TreeWrite, Unit,
};

pub(super) async fn exercise(subject: &impl Subject) {
    if subject.forgets() {
        return;
    }
    everything_survives_a_restart(subject).await;
    the_fence_survives_a_restart(subject).await;
}

/// Everything that can be asked, as text.
async fn picture(bed: &Bed, trees: &[TreeKey], runs: &[RunKey]) -> String {
    let store = &bed.store;
    let mut picture = String::new();
    let refs = trees.iter().map(|tree| TreeRef::Key(*tree));
    let names = ["a", "b"].map(|name| TreeRef::Name(ScheduleKey::new("default", name)));
    picture += &format!("{:#?}", store.load(refs.chain(names).collect()).await);
    picture += &format!("{:#?}", store.timers(ShardId(0), None, 99).await);
    for tree in trees {
        picture += &format!("{:#?}", store.ledger(*tree, at(-99), at(99), 99).await);
        picture += &format!("{:#?}", store.closed_run(*tree, start(1)).await);
    }
    let namespace = || "default".into();
    let query = ScheduleQuery { namespace: namespace(), count: 99, ..ScheduleQuery::default() };
    picture += &format!("{:#?}", store.schedules(query).await);
    picture += &format!("{:#?}", store.queues(None).await);
    picture += &format!("{:#?}", store.queue_depth(bed.queue).await);
    picture += &format!("{:#?}", store.live_runs(Default::default(), None, 99).await);
    picture += &format!("{:#?}", store.load_runs(runs.to_vec()).await);
    let query = RunQuery { namespace: namespace(), count: 99, ..RunQuery::default() };
    picture += &format!("{:#?}", store.runs(query).await);
    for run in runs {
        picture += &format!("{:#?}", store.run_details(*run).await);
    }
    picture + &format!("{}", store.shards())
}

async fn everything_survives_a_restart(subject: &impl Subject) {
    let mut bed = Bed::new(subject).await;
    let (a, b, c) = (bed.tree("a").await, bed.tree("b").await, TreeKey(bed.key().await));
    let trees = [a, b, c];
    let keys = bed.store.reserve(4).await.expect("keys are given");
    let runs: Vec<RunKey> = (keys..keys + 4).map(RunKey).collect();
    let unit = |write: TreeWrite| Unit { tree: Some(write), runs: Vec::new(), request: None };
    let run = |write: RunWrite| Unit { tree: None, runs: vec![write], request: None };
    let insert = |place: usize| {
        let made = super::support::new_run(runs[place], bed.queue);
        RunWrite::Insert(NewRun { origin: (place == 0).then(|| (a, start(1))), ..made })
    };
    let close =
        |place: usize| RunWrite::Close { run: runs[place], attempt: None, closing: closing(Outcome::Failed) };
    let replaces = Expected::New { key: ScheduleKey::new("default", "b"), replaces: Some(b) };
    let tell = (Some(bytes("half")), Some(bytes("line")));
    let steps = vec![
        unit(TreeWrite { ledger: vec![entry(1, 1), entry(2, 9)], ..next(a, 1) }),
        unit(TreeWrite { completion: Some(Some(bytes("done"))), ..next(a, 2) }),
        unit(TreeWrite { definition: Some(bytes("new")), due_time: None, ..next(a, 3) }),
        unit(TreeWrite { expected: replaces, ..next(c, 0) }),
        run(insert(0)),
        run(insert(1)),
        run(insert(2)),
        run(RunWrite::Stop { run: runs[1], kind: StopKind::Cancel }),
        // Here a worker claims; see below.
        run(RunWrite::Details { run: runs[0], attempt: 1, progress: tell.0, log_tail: tell.1 }),
        run(RunWrite::Retry { run: runs[1], attempt: 1, not_before: at(9), failure: bytes("oops") }),
        run(close(0)),
        run(close(2)),
        unit(TreeWrite { retired: true, ..next(a, 4) }),
        run(RunWrite::Release { run: runs[1] }),
    ];
    for (place, step) in steps.into_iter().enumerate() {
        if place == 8 {
            assert_eq!(bed.claim(2).await.len(), 2);
        }
        bed.commit(step).await.unwrap_or_else(|error| panic!("step {place}: {error}"));
        let before = picture(&bed, &trees, &runs).await;
        let queue = bed.queue;
        let store = subject.reopen(bed.store).await;
        bed = Bed { store, queue };
        assert_eq!(picture(&bed, &trees, &runs).await, before, "step {place} is lost");
        assert!(bed.key().await > runs[3].0, "no key is given twice");
    }
}

async fn the_fence_survives_a_restart(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let hour = SignedDuration::from_hours(1);
    let node = || NodeId("one".into());
    let lease =
        bed.store.acquire(ShardId(2), node(), hour).await.expect("the store answers").expect("it is free");

    let store = subject.reopen(bed.store).await;

    let again =
        store.acquire(ShardId(2), node(), hour).await.expect("the store answers").expect("it is its own");
    assert!(again.epoch > lease.epoch, "an epoch is never given twice");
    let queue = bed.queue;
    let bed = Bed { store, queue };
    let tree = bed.tree("nightly").await;
    let stale = TreeWrite { shard: ShardId(2), epoch: Some(lease.epoch), ..next(tree, 1) };
    assert!(bed.write(stale).await.is_err(), "an owner from before the restart is refused");
}
