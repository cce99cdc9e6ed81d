//! Nodes that lose the database for a while, and a node that shares it with nobody.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::Timeouts;
use punctual_engine::{AttemptEnd, Directive, Recorded};
use punctual_store::memory::Memory;
use punctual_store::{Keeper, Kept, News, RunWrite, Store};

use crate::line::{Line, failed, order, silent_for, start};
use crate::town::{Town, WAIT, claim, heartbeat, report, schedule, trigger, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_the_database_says_so_and_finds_its_place_again() {
    let town = Town::new(4);
    let (line, other) = (Line::new(town.store.clone(), true), town.join("other").await);
    let cut_off = start(&line, "cut-off").await;
    town.settles(&[(&cut_off, 2), (&other, 2)]).await;
    let name = town.name_at(&cut_off).await;
    cut_off.create(schedule(&name, "c", None, None)).await.unwrap();
    trigger(&cut_off, &name, "t1").await;
    let claimed = claim(&cut_off).await;

    line.cut.store(true, Ordering::SeqCst);
    town.pass(6, &[&other]).await;
    until("the other one has everything", async || other.metrics().shards.get() == 4).await;
    until("it is said", async || !cut_off.health().ready).await;
    assert!(cut_off.health().reason.unwrap().contains("the database does not answer"));
    trigger(&other, &name, "t2").await;

    line.cut.store(false, Ordering::SeqCst);
    town.pass(1, &[&other, &cut_off]).await;
    town.settles(&[(&cut_off, 2), (&other, 2)]).await;
    until("it is ready again", async || cut_off.health().ready).await;
    // What it handed out is looked after by the other one now; whoever hears of it records it.
    until("it lets go of it", async || cut_off.metrics().running.get() == 0).await;
    assert_eq!(report(&cut_off, &claimed, AttemptEnd::Succeeded(None)).await, Recorded::Closed);
    trigger(&cut_off, &name, "t3").await;
    for _ in 0..2 {
        assert_eq!(claim(&cut_off).await.live.attempt, 1);
    }
    cut_off.stop(WAIT).await;
    other.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_alone_draws_no_number_and_has_everything_again_after_it_died() {
    let store = Arc::new(Memory::new(2, Timestamp::now()));
    let line = Line::new(store.clone(), false);
    let first = start(&line, "alone").await;
    assert_eq!((&*first.node_id().0, first.metrics().shards.get()), ("alone", 2));
    assert!(first.health().ready);
    first.create(schedule("s", "c", None, None)).await.unwrap();
    trigger(&first, "s", "t").await;
    let claimed = claim(&first).await;
    assert_eq!(store.live_runs(Kept::By(Keeper(0)), None, 10).await.unwrap().len(), 1);
    assert!(store.roster().await.unwrap().nodes.is_empty(), "nobody needs to know");
    first.crash();

    let second = start(&line, "alone").await;

    assert_eq!((second.metrics().shards.get(), second.metrics().running.get()), (2, 1));
    assert_eq!(report(&second, &claimed, AttemptEnd::Succeeded(None)).await, Recorded::Closed);
    second.stop(WAIT).await;
    assert!(store.roster().await.unwrap().leases.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_whose_claim_was_not_answered_are_looked_after() {
    for shared in [true, false] {
        let town = Town::new(1);
        let line = Line::new(town.store.clone(), shared);
        let node = start(&line, "node").await;
        node.create(schedule("s", "c", None, None)).await.unwrap();
        trigger(&node, "s", "t").await;

        line.mute.store(true, Ordering::SeqCst);
        assert!(node.claim("default", "q", "worker", 1, WAIT, None).await.is_err());
        line.mute.store(false, Ordering::SeqCst);

        let live = town.store.live_runs(Kept::default(), None, 10).await.unwrap();
        assert_eq!(live.iter().map(|live| live.attempt).collect::<Vec<_>>(), [1], "and nobody was told");
        until("it is watched all the same", async || node.metrics().running.get() == 1).await;
        node.stop(WAIT).await;
    }
}

/// A look at a waiting run takes so long that a worker gets the run meanwhile. What the look saw is old then: were it believed,
/// nobody would notice that the worker falls silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_look_at_a_run_does_not_end_the_watch_over_its_worker() {
    let town = Town::new(1);
    let line = Line::new(town.store.clone(), true);
    let node = start(&line, "node").await;
    let timeouts = Timeouts { schedule_to_close: Some(SignedDuration::from_hours(1)), ..silent_for(300) };
    node.enqueue("default", "q", vec![order(timeouts, None)], None).await.unwrap();
    let run = town.store.live_runs(Kept::default(), None, 1).await.unwrap()[0].made.run;

    line.slow.store(true, Ordering::SeqCst);
    town.store.tell(News::Stop(run));
    line.looked.notified().await;
    assert_eq!(claim(&node).await.live.attempt, 1);
    line.told.notify_one();

    // Its worker says nothing any more, and somebody else gets it long before the hour is over.
    assert_eq!(claim(&node).await.live.attempt, 2);
    node.stop(WAIT).await;
}

/// The word that a run may be claimed again has arrived, and a worker has the run before the node hears that it has. Were its
/// lease forgotten then, the run would be that worker's for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_taken_before_its_release_was_answered_stays_watched() {
    for schedule_to_close in [None, Some(SignedDuration::from_hours(1))] {
        let town = Town::new(1);
        let line = Line::new(town.store.clone(), true);
        let node = start(&line, "node").await;
        let timeouts = Timeouts { schedule_to_close, ..silent_for(300) };
        node.enqueue("default", "q", vec![order(timeouts, None)], None).await.unwrap();
        let first = claim(&node).await;

        line.slow_down(|write| matches!(write, RunWrite::Release { .. }));
        assert!(matches!(report(&node, &first, failed()).await, Recorded::Retried { .. }));
        line.looked.notified().await;
        assert_eq!(claim(&node).await.live.attempt, 2);
        line.told.notify_one();

        assert_eq!(claim(&node).await.live.attempt, 3, "the second worker says nothing any more");
        node.stop(WAIT).await;
    }
}

/// A look at a running attempt takes so long that the attempt fails meanwhile, and its run waits for the next one here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_look_at_a_run_does_not_end_the_wait_for_its_next_attempt() {
    let town = Town::new(1);
    let line = Line::new(town.store.clone(), true);
    let (node, other) = (start(&line, "node").await, town.join("other").await);
    node.enqueue("default", "q", vec![order(silent_for(3_600_000), None)], None).await.unwrap();
    let claimed = claim(&node).await;
    let run = claimed.live.made.run;
    // The other one keeps it from now on; this one is about to find out.
    line.slow.store(true, Ordering::SeqCst);
    let directive = heartbeat(&other, &claimed, Duration::ZERO).await;
    assert!(matches!(directive, Directive::GoOn { .. }));
    line.looked.notified().await;

    assert!(matches!(report(&node, &claimed, failed()).await, Recorded::Retried { .. }));
    line.told.notify_one();

    let again = claim(&node).await;
    assert_eq!((again.live.made.run, again.live.attempt), (run, 2));
    node.stop(WAIT).await;
    other.stop(WAIT).await;
}

/// Whoever makes runs is not told that they are there, nor is the node; they wait for their time all the same, and end in time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_that_were_made_without_an_answer_are_looked_after() {
    let town = Town::new(1);
    let line = Line::new(town.store.clone(), true);
    let node = start(&line, "node").await;
    let soon = Timestamp::now() + SignedDuration::from_millis(50);
    line.mute.store(true, Ordering::SeqCst);
    let delayed = vec![order(silent_for(3_600_000), Some(soon))];
    assert!(node.enqueue("default", "q", delayed, None).await.is_err());
    line.mute.store(false, Ordering::SeqCst);
    assert_eq!(claim(&node).await.live.attempt, 1);

    let mut brief = schedule("s", "c", None, None);
    brief.action.timeouts.schedule_to_close = Some(SignedDuration::from_millis(200));
    node.create(brief).await.unwrap();
    line.mute.store(true, Ordering::SeqCst);
    let triggering = tokio::spawn({
        let node = node.clone();
        async move { trigger(&node, "s", "t").await }
    });
    let count = async || town.store.live_runs(Kept::default(), None, 10).await.unwrap().len();
    until("the run is there", async || count().await == 2).await;
    line.mute.store(false, Ordering::SeqCst);
    triggering.await.unwrap();
    until("nobody took it in time", async || count().await == 1).await;
    node.stop(WAIT).await;
}

/// Whoever asks goes away before the answer comes. What was written is looked after all the same, also where nobody else would
/// ever look.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_by_somebody_who_goes_away_is_done_to_its_end() {
    for shared in [true, false] {
        let town = Town::new(1);
        let line = Line::new(town.store.clone(), shared);
        let node = start(&line, "node").await;
        let soon = Timestamp::now() + SignedDuration::from_millis(50);
        line.slow_down(|write| matches!(write, RunWrite::Insert(_)));
        let asking = tokio::spawn({
            let (node, delayed) = (node.clone(), vec![order(silent_for(3_600_000), Some(soon))]);
            async move { node.enqueue("default", "q", delayed, None).await }
        });
        line.looked.notified().await;
        asking.abort();
        assert!(asking.await.unwrap_err().is_cancelled());
        line.told.notify_one();
        let first = claim(&node).await;

        line.slow_down(|write| matches!(write, RunWrite::Retry { .. }));
        let reporting = tokio::spawn({
            let (node, first) = (node.clone(), first.clone());
            async move { report(&node, &first, failed()).await }
        });
        line.looked.notified().await;
        reporting.abort();
        assert!(reporting.await.unwrap_err().is_cancelled());
        line.told.notify_one();
        assert_eq!(claim(&node).await.live.attempt, 2);
        node.stop(WAIT).await;
    }
}

/// A node that has just begun looks for runs of nodes that are gone, in an old list of those that are not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_was_taken_from_a_living_node_by_mistake_is_given_back() {
    let town = Town::new(2);
    let line = Line::new(town.store.clone(), true);
    line.slow_list.store(true, Ordering::SeqCst);
    let hasty = start(&line, "hasty").await;
    line.looked.notified().await;
    let node = town.join("node").await;
    town.settles(&[(&hasty, 1), (&node, 1)]).await;
    node.enqueue("default", "q", vec![order(silent_for(1_000), None)], None).await.unwrap();
    let claimed = claim(&node).await;
    line.told.notify_one();
    until("it is taken", async || hasty.metrics().runs_adopted.get() == 1).await;

    // Longer than a worker may be silent.
    for _ in 0..8 {
        let directive = heartbeat(&node, &claimed, Duration::from_millis(200)).await;
        assert!(matches!(directive, Directive::GoOn { .. }), "{directive:?}");
    }
    assert_eq!([&hasty, &node].map(|engine| engine.metrics().takeovers.get()), [0, 0]);
    assert_eq!(report(&node, &claimed, AttemptEnd::Succeeded(None)).await, Recorded::Closed);
    node.stop(WAIT).await;
    hasty.stop(WAIT).await;
}
