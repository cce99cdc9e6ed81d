//! The ledger: what became of occurrences, in ranges.

use punctual_core::{Entry, Miss, NotStarted, Origin, RequestKey, Skip, Verdict};

use super::Subject;
use super::support::{Bed, at, entry, next};
use crate::TreeWrite;

pub(super) async fn exercise(subject: &impl Subject) {
    entries_that_touch_a_range_are_found(subject).await;
    entries_keep_every_field_and_their_order(subject).await;
}

async fn entries_that_touch_a_range_are_found(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let (tree, other) = (bed.tree("nightly").await, bed.tree("other").await);
    let entries = [entry(10, 10), entry(20, 29), entry(30, 30), entry(40, 40)];
    let ledger = vec![entries[2].clone(), entries[0].clone()];
    bed.write(TreeWrite { ledger, ..next(tree, 1) }).await.expect("nobody was faster");
    let ledger = vec![entries[3].clone(), entries[1].clone()];
    bed.write(TreeWrite { ledger, ..next(tree, 2) }).await.expect("nobody was faster");
    bed.write(TreeWrite { ledger: vec![entry(25, 25)], ..next(other, 1) }).await.expect("nobody was faster");

    let cases = [
        ((0, 100), 0..4, "all, ascending, whenever they were written"),
        ((10, 100), 1..4, "what is at the beginning is left out"),
        ((9, 10), 0..1, "what is at the end is not"),
        ((20, 25), 1..2, "a range that overlaps is found"),
        ((28, 29), 1..2, "as it is until its end"),
        ((29, 30), 2..3, "and no longer"),
        ((15, 20), 1..2, "a range that only begins here is found"),
        ((11, 19), 0..0, "nothing was decided here"),
        ((41, 100), 0..0, "nothing was decided yet"),
    ];
    for ((after, through), wanted, why) in cases {
        let found = bed.store.ledger(tree, at(after), at(through), 10).await.expect("the store answers");
        assert_eq!(found, entries[wanted], "{why}");
    }
    let found = bed.store.ledger(tree, at(0), at(100), 2).await.expect("the store answers");
    assert_eq!(found, entries[..2], "at most this many");
    let found = bed.store.ledger(tree, at(0), at(100), 0).await.expect("the store answers");
    assert_eq!(found, []);
}

async fn entries_keep_every_field_and_their_order(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let tree = bed.tree("nightly").await;
    let of = |origin, verdict| Entry { origin, verdict, ..entry(5, 5) };
    let entries = [
        of(Origin::Spec, Verdict::Started),
        of(Origin::Request(RequestKey(1)), Verdict::NotStarted(NotStarted::Skipped(Skip::User))),
        of(
            Origin::Request(RequestKey(i64::MAX as u64)),
            Verdict::NotStarted(NotStarted::Missed(Miss::Count)),
        ),
        of(Origin::Request(RequestKey(u64::MAX)), Verdict::NotStarted(NotStarted::Dropped)),
        Entry { at_least: true, count: u64::from(u32::MAX) * 9, ..entry(5, 500) },
        // The same once more: whoever decided twice shall be seen to have.
        Entry { at_least: true, count: 3, ..entry(5, 500) },
    ];
    let ledger = [3, 1, 2, 0].map(|place: usize| entries[place].clone()).into();
    bed.write(TreeWrite { ledger, ..next(tree, 1) }).await.expect("nobody was faster");
    let ledger = vec![entries[4].clone(), entries[5].clone()];
    bed.write(TreeWrite { ledger, ..next(tree, 2) }).await.expect("nobody was faster");

    let found = bed.store.ledger(tree, at(0), at(100), 10).await.expect("the store answers");
    assert_eq!(found, entries, "by first time, last time, and who asked");
}
