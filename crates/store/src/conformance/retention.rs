//! Retention: what is old goes, a bounded number of rows at a time, and nothing else.

use jiff::Timestamp;
use punctual_core::Outcome;

use super::Subject;
use super::support::{Bed, at, bytes, closing, entry, next, start};
use crate::{Closing, NewRun, Retention, RunDetails, RunWrite, TreeWrite};

pub(super) async fn exercise(subject: &impl Subject) {
    old_runs_go_with_their_details(subject).await;
    old_ledger_entries_go(subject).await;
    it_is_done_in_parts(subject).await;
    what_is_too_much_goes(subject).await;
}

fn retention(runs_before: Timestamp, ledger_before: Timestamp, rows_max: usize) -> Retention {
    Retention { runs_before, ledger_before, runs_max: None, ledger_max: None, rows_max }
}

async fn retire_all(bed: &Bed, retention: Retention) -> u64 {
    let mut removed = 0;
    loop {
        let count = bed.store.retire(retention).await.expect("the store answers");
        assert!(count <= retention.rows_max as u64, "at most this many rows at a time");
        removed += count;
        if count == 0 {
            return removed;
        }
    }
}

async fn close_at(bed: &Bed, made: &NewRun, second: i64) {
    let closing = Closing { closed_at: at(second), ..closing(Outcome::Succeeded) };
    let tell = RunWrite::Details { run: made.run, attempt: 0, progress: Some(bytes("x")), log_tail: None };
    let close = RunWrite::Close { run: made.run, attempt: None, closing };
    bed.write_runs(vec![RunWrite::Insert(made.clone())]).await.expect("it is new");
    bed.write_runs(vec![tell, close]).await.expect("it is live");
}

async fn old_runs_go_with_their_details(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let tree = bed.tree("nightly").await;
    let live = bed.ready().await;
    let mut runs = Vec::new();
    for second in [30, 10, 20] {
        let made = NewRun { origin: Some((tree, start(second))), ..bed.new_run().await };
        close_at(&bed, &made, second).await;
        runs.push(made.run);
    }

    assert_eq!(retire_all(&bed, retention(at(20), Timestamp::MIN, 100)).await, 1, "only what ended before");

    let kept = bed.store.load_runs(runs.clone()).await.expect("the store answers");
    let kept: Vec<bool> = kept.iter().map(Option::is_some).collect();
    assert_eq!(kept, [true, false, true], "what ended at that moment stays");
    let details = async |run| bed.store.run_details(run).await.expect("the store answers");
    assert_eq!(details(runs[1]).await, RunDetails::default(), "its details went with it");
    assert_ne!(details(runs[0]).await, RunDetails::default());
    let found = async |second| bed.store.closed_run(tree, start(second)).await.expect("the store answers");
    assert_eq!((found(10).await, found(20).await), (None, Some(runs[2])));
    assert_eq!(retire_all(&bed, retention(Timestamp::MAX, Timestamp::MIN, 100)).await, 2);
    assert_eq!(bed.live().await.len(), 1, "a live run is never too old");
    assert_eq!(bed.live().await[0].made, live);
}

async fn old_ledger_entries_go(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let trees = [bed.tree("a").await, bed.tree("b").await];
    for tree in trees {
        let ledger = vec![entry(10, 10), entry(1, 20), entry(30, 30)];
        bed.write(TreeWrite { ledger, ..next(tree, 1) }).await.expect("nobody was faster");
    }

    assert_eq!(
        retire_all(&bed, retention(Timestamp::MIN, at(21), 100)).await,
        2,
        "one of each was decided before"
    );

    for tree in trees {
        let left = bed.store.ledger(tree, at(0), at(99), 9).await.expect("the store answers");
        assert_eq!(left, [entry(1, 20), entry(30, 30)]);
    }
    assert_eq!(retire_all(&bed, retention(Timestamp::MIN, Timestamp::MAX, 100)).await, 4);
}

async fn it_is_done_in_parts(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let tree = bed.tree("a").await;
    for second in 0..5 {
        close_at(&bed, &bed.new_run().await, second).await;
    }
    let ledger = (0..5).map(|second| entry(second, second)).collect();
    bed.write(TreeWrite { ledger, ..next(tree, 1) }).await.expect("nobody was faster");

    let removed = retire_all(&bed, retention(Timestamp::MAX, Timestamp::MAX, 3)).await;

    assert_eq!(removed, 10);
    assert_eq!(bed.store.ledger(tree, at(-1), at(99), 9).await, Ok(Vec::new()));
}

async fn what_is_too_much_goes(subject: &impl Subject) {
    let mut bed = Bed::new(subject).await;
    let live = bed.ready().await.run;
    let mut runs = Vec::new();
    for second in [50, 10, 40, 30, 20, 60] {
        let made = bed.new_run().await;
        close_at(&bed, &made, second).await;
        runs.push(made.run);
    }
    let trees = [bed.tree("a").await, bed.tree("b").await];
    for (tree, places) in trees.into_iter().zip([[1, 5, 3], [2, 6, 4]]) {
        let ledger = places.map(|place| entry(place, place)).to_vec();
        bed.write(TreeWrite { ledger, ..next(tree, 1) }).await.expect("nobody was faster");
    }
    if !subject.forgets() {
        let queue = bed.queue;
        bed = Bed { store: subject.reopen(bed.store).await, queue };
    }
    let left = async |bed: &Bed| {
        let kept = bed.store.load_runs(runs.clone()).await.expect("the store answers");
        let kept: Vec<usize> = (0..6).filter(|place| kept[*place].is_some()).collect();
        let mut decided = Vec::new();
        for tree in trees {
            let entries = bed.store.ledger(tree, at(0), at(99), 99).await.expect("the store answers");
            decided.extend(entries.iter().map(|entry| entry.from.duration_since(at(0)).as_secs()));
        }
        (kept, decided)
    };
    let most = |runs_max, ledger_max, rows_max| Retention {
        runs_max: Some(runs_max),
        ledger_max: Some(ledger_max),
        ..retention(Timestamp::MIN, Timestamp::MIN, rows_max)
    };
    assert_eq!(retire_all(&bed, most(6, 6, 100)).await, 0, "it is not too much");
    assert_eq!(retire_all(&bed, most(4, 4, 1)).await, 4);
    let kept = left(&bed).await;
    assert_eq!(kept, (vec![2, 3, 4, 5], vec![3, 5, 4, 6]), "the first ones made, the first ones decided");
    let aged = Retention { runs_before: at(35), ..most(3, u64::MAX, 2) };
    assert_eq!(retire_all(&bed, aged).await, 3, "too much or too old");
    assert_eq!(left(&bed).await.0, [5]);
    bed.write(TreeWrite { ledger: vec![entry(9, 9)], ..next(trees[0], 2) }).await.expect("nobody was faster");
    bed.write(TreeWrite { retired: true, ..next(trees[1], 2) }).await.expect("nobody was faster");
    assert_eq!(retire_all(&bed, most(1, 3, 9)).await, 0, "what went with its schedule counts no more");
    assert_eq!(retire_all(&bed, most(0, 0, 9)).await, 4);
    assert_eq!(bed.live().await[0].made.run, live, "a live run is never too much");
}
