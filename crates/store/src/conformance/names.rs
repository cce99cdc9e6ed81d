//! Names of schedules: one holder at a time, and a closed one may be replaced.

use punctual_core::ScheduleKey;

use super::Subject;
use super::support::{Bed, new_tree, next};
use crate::{Conflict, Expected, Lifespan, ScheduleQuery, StoreError, TreeKey, TreeView, TreeWrite};

pub(super) async fn exercise(subject: &impl Subject) {
    a_name_is_taken_once(subject).await;
    a_closed_schedule_gives_up_its_name(subject).await;
    who_replaces_must_know_whom(subject).await;
}

const TAKEN: Result<(), StoreError> = Err(StoreError::Conflict(Conflict::NameTaken));

fn replacing(tree: TreeKey, old: TreeKey) -> TreeWrite {
    let expected = Expected::New { key: ScheduleKey::new("default", "nightly"), replaces: Some(old) };
    TreeWrite { expected, ..new_tree(tree, "nightly") }
}

async fn a_name_is_taken_once(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let tree = bed.tree("nightly").await;
    let other = TreeKey(bed.key().await);

    assert_eq!(bed.write(new_tree(other, "nightly")).await, TAKEN);
    assert_eq!(bed.load(other).await, None, "nothing was written");
    assert_eq!(bed.write(new_tree(tree, "another")).await, TAKEN, "a key is taken once, too");
    let key = ScheduleKey::new("elsewhere", "nightly");
    let elsewhere = TreeWrite { expected: Expected::New { key, replaces: None }, ..new_tree(other, "") };
    assert_eq!(bed.write(elsewhere).await, Ok(()), "another namespace has names of its own");
    assert_eq!(bed.load_name("nightly").await.map(|stored| stored.tree), Some(tree));
    assert_eq!(bed.load_name("Nightly").await, None, "names are compared exactly");
}

async fn a_closed_schedule_gives_up_its_name(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let old = bed.tree("nightly").await;
    let view = Some(TreeView { lifespan: Lifespan::Deleted, paused: false, queue: None });
    bed.write(TreeWrite { view, ..next(old, 1) }).await.expect("nobody was faster");

    let new = TreeKey(bed.key().await);
    assert_eq!(bed.write(replacing(new, old)).await, Ok(()));

    assert_eq!(
        bed.load_name("nightly").await.map(|stored| stored.tree),
        Some(new),
        "the name has a new holder"
    );
    assert!(bed.load(old).await.is_some(), "the old one stays until its own retention");
    let query = ScheduleQuery {
        namespace: "default".into(),
        lifespan: Some(Lifespan::Deleted),
        count: 10,
        ..ScheduleQuery::default()
    };
    let page = bed.store.schedules(query.clone()).await.expect("the store answers");
    assert_eq!(page.items, [], "lists show who holds a name");
    // A late write of the old one must not be taken for one of the new.
    let view = Some(TreeView { lifespan: Lifespan::Deleted, paused: true, queue: None });
    bed.write(TreeWrite { view, ..next(old, 2) }).await.expect("nobody was faster");
    assert_eq!(bed.store.count_schedules(query).await, Ok(0));

    bed.write(TreeWrite { retired: true, ..next(old, 3) }).await.expect("nobody was faster");
    assert_eq!(
        bed.load_name("nightly").await.map(|stored| stored.tree),
        Some(new),
        "the new one keeps the name"
    );
}

async fn who_replaces_must_know_whom(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let first = bed.tree("nightly").await;
    let [second, third] = [TreeKey(bed.key().await), TreeKey(bed.key().await)];

    assert_eq!(bed.write(replacing(second, third)).await, TAKEN, "somebody else holds the name");
    assert_eq!(bed.write(replacing(second, first)).await, Ok(()));
    assert_eq!(bed.write(replacing(third, first)).await, TAKEN, "the first has given it up already");
    bed.write(TreeWrite { retired: true, ..next(second, 1) }).await.expect("nobody was faster");
    assert_eq!(bed.load_name("nightly").await, None, "the first does not get it back");
    assert_eq!(
        bed.write(replacing(third, second)).await,
        TAKEN,
        "nobody holds the name that is to be replaced"
    );
    assert_eq!(bed.write(new_tree(third, "nightly")).await, Ok(()));
}
