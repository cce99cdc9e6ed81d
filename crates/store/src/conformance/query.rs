//! Lists in pages: filters, order, and ends.

use std::sync::Arc;

use punctual_core::{Outcome, ScheduleKey};

use super::Subject;
use super::support::{Bed, closing, new_queue, new_tree, next, start};
use crate::{
    Expected, Lifespan, NewRun, QueueKey, RunFilter, RunKey, RunQuery, RunWrite, ScheduleQuery, Store,
    StoredRun, StoredTree, TreeKey, TreeView, TreeWrite,
};

pub(super) async fn exercise(subject: &impl Subject) {
    schedules_are_filtered(subject).await;
    schedules_come_in_pages(subject).await;
    runs_are_filtered(subject).await;
    runs_come_in_pages(subject).await;
}

/// Every page to the end; a page may be short, so only the end ends it.
pub(super) async fn all_schedules(store: &dyn Store, query: &ScheduleQuery) -> Vec<StoredTree> {
    let mut query = query.clone();
    let mut found = Vec::new();
    loop {
        let page = store.schedules(query.clone()).await.expect("the store answers");
        assert!(page.items.len() <= query.count, "a page holds at most what was asked for");
        found.extend(page.items);
        let Some(next) = page.next else { return found };
        assert!(query.after.as_ref().is_none_or(|after| *after < next), "pages go on");
        query.after = Some(next);
    }
}

/// Every page to the end.
pub(super) async fn all_runs(store: &dyn Store, query: &RunQuery) -> Vec<StoredRun> {
    let mut query = query.clone();
    let mut found = Vec::new();
    loop {
        let page = store.runs(query.clone()).await.expect("the store answers");
        assert!(page.items.len() <= query.count, "a page holds at most what was asked for");
        found.extend(page.items);
        let Some(next) = page.next else { return found };
        let next = RunKey(next.parse().expect("the next page is named by a run"));
        assert!(query.before.is_none_or(|before| before > next), "pages go on");
        query.before = Some(next);
    }
}

fn of_default() -> ScheduleQuery {
    ScheduleQuery { namespace: "default".into(), count: 100, ..ScheduleQuery::default() }
}

async fn schedules_are_filtered(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let view = |lifespan, paused, queue| Some(TreeView { lifespan, paused, queue });
    let views = [
        ("b-open", view(Lifespan::Open, false, Some(bed.queue))),
        ("a-paused", view(Lifespan::Open, true, None)),
        ("a-completed", view(Lifespan::Completed, false, Some(QueueKey(bed.queue.0 + 9)))),
        ("c-deleted", view(Lifespan::Deleted, false, Some(bed.queue))),
        ("a", None),
    ];
    for (name, view) in views {
        let tree = TreeKey(bed.key().await);
        bed.write(TreeWrite { view, ..new_tree(tree, name) }).await.expect("it is new");
    }
    let expected = Expected::New { key: ScheduleKey::new("elsewhere", "a"), replaces: None };
    let tree = TreeKey(bed.key().await);
    bed.write(TreeWrite { expected, ..new_tree(tree, "") }).await.expect("it is new");
    let check = async |query: ScheduleQuery, expected: &[&str], why: &str| {
        let found = all_schedules(&*bed.store, &query).await;
        let names: Vec<&str> = found.iter().map(|stored| &*stored.key.schedule).collect();
        assert_eq!(names, expected, "{why}");
        assert_eq!(bed.store.count_schedules(query).await, Ok(expected.len() as u64), "{why}");
    };
    let all = ["a", "a-completed", "a-paused", "b-open"];
    check(of_default(), &all, "nothing means open and completed ones, by ascending id").await;
    let lifespan = |lifespan| ScheduleQuery { lifespan: Some(lifespan), ..of_default() };
    check(lifespan(Lifespan::Open), &["a", "a-paused", "b-open"], "open ones").await;
    check(lifespan(Lifespan::Completed), &["a-completed"], "completed ones").await;
    check(lifespan(Lifespan::Deleted), &["c-deleted"], "deleted ones").await;
    check(ScheduleQuery { paused: Some(true), ..of_default() }, &["a-paused"], "paused ones").await;
    check(ScheduleQuery { paused: Some(false), ..of_default() }, &["a", "a-completed", "b-open"], "others")
        .await;
    check(ScheduleQuery { queue: Some(bed.queue), ..of_default() }, &["b-open"], "of this queue").await;
    check(ScheduleQuery { prefix: "a-".into(), ..of_default() }, &all[1..3], "that begin with this").await;
    check(ScheduleQuery { prefix: "z".into(), ..of_default() }, &[], "none begins with this").await;
    check(ScheduleQuery { namespace: "elsewhere".into(), ..of_default() }, &["a"], "of this namespace").await;

    let tree = bed.load_name("a-paused").await.expect("it is there").tree;
    bed.write(TreeWrite { view: view(Lifespan::Open, false, None), ..next(tree, 1) }).await.expect("at 1");
    check(ScheduleQuery { paused: Some(true), ..of_default() }, &[], "lists follow the view").await;
    bed.write(next(tree, 2)).await.expect("at 2");
    check(of_default(), &all, "a write without a view changes no list").await;
}

async fn schedules_come_in_pages(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let names: Vec<String> = (0..7).map(|place| format!("id-{place}")).collect();
    for name in names.iter().rev() {
        bed.tree(name).await;
    }
    for count in [1, 2, 3, 7, 100] {
        let found = all_schedules(&*bed.store, &ScheduleQuery { count, ..of_default() }).await;
        assert_eq!(found.iter().map(|stored| &*stored.key.schedule).collect::<Vec<_>>(), names);
        assert_eq!(found[3], bed.load(found[3].tree).await.expect("it is there"), "lists show all of it");
    }
    let after: Option<Arc<str>> = Some("id-4x".into());
    let found = all_schedules(&*bed.store, &ScheduleQuery { after: after.clone(), ..of_default() }).await;
    assert_eq!(found.len(), 2, "a page may begin after an id that is not there");
    let query = ScheduleQuery { after, ..of_default() };
    assert_eq!(bed.store.count_schedules(query).await, Ok(7), "a count ignores the page");
}

async fn runs_are_filtered(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let tree = bed.tree("nightly").await;
    let other = bed.store.create_queue(new_queue("default", "other")).await.expect("declared").queue;
    let elsewhere = bed.store.create_queue(new_queue("elsewhere", "work")).await.expect("declared").queue;
    let mut keys = Vec::new();
    for place in 0..8 {
        let made = bed.new_run().await;
        let queue = if place == 6 {
            other
        } else if place == 7 {
            elsewhere
        } else {
            bed.queue
        };
        let origin = (place % 2 == 0).then(|| (tree, start(place)));
        let made = NewRun { queue, origin, ..made };
        bed.write_runs(vec![RunWrite::Insert(made.clone())]).await.expect("it is new");
        keys.push(made.run);
    }
    bed.claim(4).await;
    let retry =
        RunWrite::Retry { run: keys[3], attempt: 1, not_before: super::support::at(5), failure: [].into() };
    let close = |run, outcome| RunWrite::Close { run, attempt: None, closing: closing(outcome) };
    let (failed, succeeded) = (close(keys[0], Outcome::Failed), close(keys[1], Outcome::Succeeded));
    bed.write_runs(vec![retry, failed, succeeded]).await.expect("they run");

    let of_default = || RunQuery { namespace: "default".into(), count: 100, ..RunQuery::default() };
    let check = async |query: RunQuery, expected: &[usize], why: &str| {
        let found = all_runs(&*bed.store, &query).await;
        let expected: Vec<RunKey> = expected.iter().map(|place| keys[*place]).collect();
        assert_eq!(found.iter().map(|run| run.run.made.run).collect::<Vec<_>>(), expected, "{why}");
    };
    let of = |filter| RunQuery { filter: Some(filter), ..of_default() };
    check(of_default(), &[6, 5, 4, 3, 2, 1, 0], "the latest first, live and closed").await;
    check(of(RunFilter::Ready), &[6, 5, 4], "may be claimed").await;
    check(of(RunFilter::Running), &[2], "a worker has it").await;
    check(of(RunFilter::BackingOff), &[3], "will be tried again").await;
    check(of(RunFilter::Closed(None)), &[1, 0], "ended in whatever way").await;
    check(of(RunFilter::Closed(Some(Outcome::Failed))), &[0], "ended in this way").await;
    check(RunQuery { tree: Some(tree), ..of_default() }, &[6, 4, 2, 0], "of this schedule").await;
    check(RunQuery { tree: Some(tree), ..of(RunFilter::Closed(None)) }, &[0], "of this schedule, ended")
        .await;
    check(RunQuery { queue: Some(other), ..of_default() }, &[6], "of this queue").await;
    check(RunQuery { queue: Some(bed.queue), ..of(RunFilter::Ready) }, &[5, 4], "of this queue, ready").await;
    check(RunQuery { before: Some(keys[2]), ..of_default() }, &[1, 0], "before this one").await;
    check(RunQuery { namespace: "elsewhere".into(), ..of_default() }, &[7], "of this namespace").await;
    let foreign = RunQuery { queue: Some(elsewhere), ..of(RunFilter::Ready) };
    check(foreign, &[], "a queue of another namespace shows nothing").await;
    check(RunQuery { namespace: "nowhere".into(), ..of_default() }, &[], "of no namespace").await;
}

async fn runs_come_in_pages(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let mut keys = Vec::new();
    for place in 0..9 {
        let run = bed.ready().await.run;
        if place % 3 != 1 {
            let close = RunWrite::Close { run, attempt: None, closing: closing(Outcome::Succeeded) };
            bed.write_runs(vec![close]).await.expect("it is live");
        }
        keys.insert(0, run);
    }
    for count in [1, 2, 4, 9, 100] {
        let query = RunQuery { namespace: "default".into(), count, ..RunQuery::default() };
        let found = all_runs(&*bed.store, &query).await;
        assert_eq!(found.iter().map(|run| run.run.made.run).collect::<Vec<_>>(), keys);
    }
}
