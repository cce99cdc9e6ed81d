//! Requests: heard once, remembered as long as the runs of their time.

use jiff::Timestamp;

use super::Subject;
use super::support::{Bed, all, at, next};
use crate::{Batch, Conflict, NewRun, Retention, RunKey, RunRequest, RunWrite, StoreError, Unit};

pub(super) async fn exercise(subject: &impl Subject) {
    a_request_is_heard_once(subject).await;
    a_refused_unit_leaves_no_request(subject).await;
    of_many_at_once_one_is_heard(subject).await;
    a_request_is_forgotten_in_time(subject).await;
}

fn request(id: &str, runs: &[&NewRun]) -> RunRequest {
    let runs = runs.iter().map(|made| made.run).collect();
    RunRequest { namespace: "default".into(), id: id.into(), runs, made_at: at(50) }
}

/// A unit that makes runs because somebody asked for them.
fn unit(id: &str, made: &[&NewRun]) -> Unit {
    let runs = made.iter().map(|made| RunWrite::Insert((*made).clone())).collect();
    Unit { tree: None, runs, request: Some(request(id, made)) }
}

fn repeated(runs: &[RunKey]) -> Result<(), StoreError> {
    Err(StoreError::Conflict(Conflict::Repeated { runs: runs.to_vec() }))
}

async fn a_request_is_heard_once(subject: &impl Subject) {
    let mut bed = Bed::new(subject).await;
    let dedup = Some("same".into());
    let (first, second) = (NewRun { dedup, ..bed.new_run().await }, bed.new_run().await);
    bed.commit(unit("r", &[&first, &second])).await.expect("it is new");
    if !subject.forgets() {
        let queue = bed.queue;
        bed = Bed { store: subject.reopen(bed.store).await, queue };
    }

    let again = NewRun { run: RunKey(bed.key().await), ..first.clone() };
    let known = repeated(&[first.run, second.run]);
    assert_eq!(bed.commit(unit("r", &[&again])).await, known, "although the run itself is a duplicate");
    assert_eq!(bed.commit(unit("r", &[&first, &second])).await, known, "although the keys are used");
    assert_eq!(bed.commit(unit("r", &[])).await, known);
    assert_eq!(bed.live().await.len(), 2, "nothing was made again");
    bed.commit(unit("s", &[])).await.expect("it is another one");
    assert_eq!(bed.commit(unit("s", &[])).await, repeated(&[]), "it made nothing");
    let elsewhere = RunRequest { namespace: "elsewhere".into(), ..request("r", &[]) };
    let elsewhere = Unit { request: Some(elsewhere), ..Unit::default() };
    bed.commit(elsewhere).await.expect("another namespace has others");
}

async fn a_refused_unit_leaves_no_request(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let made = bed.ready().await;
    bed.commit(unit("r", &[&made])).await.expect_err("the key is used");
    let tree = bed.tree("nightly").await;
    let stale = Unit { tree: Some(next(tree, 7)), ..unit("r", &[]) };
    bed.commit(stale).await.expect_err("the schedule has moved");
    bed.commit(unit("r", &[])).await.expect("nobody has heard it");
    let stale = Unit { tree: Some(next(tree, 7)), ..unit("r", &[]) };
    let refusal = bed.commit(stale).await.expect_err("both refuse it");
    assert!(matches!(refusal, StoreError::Conflict(Conflict::Sequence { .. })), "the schedule comes first");
}

async fn of_many_at_once_one_is_heard(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let mut batches = Vec::new();
    for _ in 0..20 {
        batches.push(Batch::of(vec![unit("r", &[&bed.new_run().await])]));
    }
    let answers = all(batches.into_iter().map(|batch| bed.store.commit(batch))).await;
    let answers = answers.into_iter().flat_map(|answer| answer.expect("the store answers"));
    let live = bed.live().await;
    assert_eq!(live.len(), 1);
    let (heard, others): (Vec<_>, Vec<_>) = answers.partition(Result::is_ok);
    assert_eq!(heard.len(), 1);
    assert!(others.iter().all(|answer| *answer == repeated(&[live[0].made.run])), "all hear of the same run");
}

async fn a_request_is_forgotten_in_time(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    for id in ["a", "b", "c"] {
        bed.commit(unit(id, &[])).await.expect("it is new");
    }
    let retention = |second| Retention {
        runs_before: at(second),
        ledger_before: Timestamp::MIN,
        runs_max: None,
        ledger_max: None,
        rows_max: 2,
    };
    let retire = async |second| bed.store.retire(retention(second)).await.expect("the store answers");
    assert_eq!(retire(50).await, 0);
    assert_eq!(bed.commit(unit("a", &[])).await, repeated(&[]), "it is not too old");
    assert_eq!((retire(51).await, retire(51).await, retire(51).await), (2, 1, 0), "some at a time");
    bed.commit(unit("a", &[])).await.expect("it is forgotten");
}
