//! Looks, writes and words about one run that cross on their way between nodes: nobody is left with a run that is not its own, and
//! no run with nobody.

use std::sync::atomic::Ordering;
use std::time::Duration;

use jiff::SignedDuration;
use punctual_core::StopKind;
use punctual_engine::{AttemptEnd, Claimed, Directive, Engine, EngineConfig, EngineError, Pulse, Recorded};
use punctual_store::{Kept, LiveRun, News, RunWrite, Store};

use crate::line::{Line, order, silent_for, start};
use crate::town::{Town, WAIT, claim, heartbeat, report, until};

const HOUR: i64 = 3_600_000;

async fn the_run(town: &Town) -> LiveRun {
    town.store.live_runs(Kept::default(), None, 1).await.unwrap().remove(0)
}

/// Its worker turns to this node until that says that the run is over.
async fn hears_that_it_is_gone(node: &Engine, claimed: &Claimed) {
    until("the worker is told", async || heartbeat(node, claimed, Duration::ZERO).await == Directive::Gone)
        .await;
}

/// Its log cannot be written, but it is alive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_heard_of_while_the_database_is_away_keeps_its_run() {
    for shared in [true, false] {
        let town = Town::new(1);
        let line = Line::new(town.store.clone(), shared);
        let node = start(&line, "node").await;
        node.enqueue("default", "q", vec![order(silent_for(1_000), None)], None).await.unwrap();
        let claimed = claim(&node).await;
        let (run, attempt) = (claimed.live.made.run, claimed.live.attempt);

        line.cut.store(true, Ordering::SeqCst);
        let begun = tokio::time::Instant::now();
        while begun.elapsed() < Duration::from_secs(3) {
            let pulse = Pulse { run, attempt, progress: None, log: "line".into() };
            assert!(node.heartbeat("default", "w", vec![pulse], Duration::ZERO).await.is_err());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        line.cut.store(false, Ordering::SeqCst);

        assert!(matches!(heartbeat(&node, &claimed, Duration::ZERO).await, Directive::GoOn { .. }));
        assert_eq!(report(&node, &claimed, AttemptEnd::Succeeded(None)).await, Recorded::Closed);
        assert_eq!(node.metrics().takeovers.get(), 0);
        node.stop(WAIT).await;
    }
}

/// A look has seen the former keeper. Were it believed, nobody would notice that the worker falls silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_that_is_older_than_taking_a_run_over_does_not_end_its_watch() {
    let town = Town::new(1);
    let line = Line::new(town.store.clone(), true);
    let (other, node) = (town.join("other").await, start(&line, "node").await);
    other.enqueue("default", "q", vec![order(silent_for(2_000), None)], None).await.unwrap();
    let claimed = claim(&other).await;
    let (run, before) = (claimed.live.made.run, the_run(&town).await.keeper);

    line.slow_keep.store(true, Ordering::SeqCst);
    let beating = tokio::spawn({
        let (node, claimed) = (node.clone(), claimed.clone());
        async move { heartbeat(&node, &claimed, Duration::ZERO).await }
    });
    line.looked.notified().await;
    line.slow.store(true, Ordering::SeqCst);
    town.store.tell(News::Stop(run));
    line.looked.notified().await;
    line.told.notify_one();
    assert!(matches!(beating.await.unwrap(), Directive::GoOn { .. }));
    assert_ne!(the_run(&town).await.keeper, before);
    line.told.notify_one();

    assert_eq!(claim(&node).await.live.attempt, 2, "its worker says nothing any more");
    for engine in [node, other] {
        engine.stop(WAIT).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_got_a_run_while_it_was_being_cancelled_hears_of_it() {
    let town = Town::new(1);
    let line = Line::new(town.store.clone(), true);
    let (other, node) = (town.join("other").await, start(&line, "node").await);
    node.enqueue("default", "q", vec![order(silent_for(HOUR), None)], None).await.unwrap();
    let run = the_run(&town).await.made.run;

    line.hold_back(|write| matches!(write, RunWrite::Close { .. }));
    let cancelling = tokio::spawn({
        let node = node.clone();
        async move { node.stop_run("default", run, StopKind::Cancel).await }
    });
    line.looked.notified().await;
    let claimed = claim(&other).await;
    line.told.notify_one();

    assert_eq!(cancelling.await.unwrap(), Ok(true));
    hears_that_it_is_gone(&other, &claimed).await;
    for engine in [node, other] {
        engine.stop(WAIT).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_hears_that_its_run_was_terminated_though_whoever_did_it_was_not_answered() {
    let town = Town::new(1);
    let line = Line::new(town.store.clone(), true);
    let (other, node) = (town.join("other").await, start(&line, "node").await);
    other.enqueue("default", "q", vec![order(silent_for(HOUR), None)], None).await.unwrap();
    let claimed = claim(&other).await;
    let run = claimed.live.made.run;

    line.mute.store(true, Ordering::SeqCst);
    assert!(node.stop_run("default", run, StopKind::Terminate).await.is_err());
    line.mute.store(false, Ordering::SeqCst);

    hears_that_it_is_gone(&other, &claimed).await;
    assert_eq!(node.stop_run("default", run, StopKind::Terminate).await, Ok(false));
    for engine in [node, other] {
        engine.stop(WAIT).await;
    }
}

/// One node gives an attempt up in the moment in which its worker turns to another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_turned_to_another_node_too_late_hears_that_its_run_is_gone() {
    let town = Town::new(1);
    let line = Line::new(town.store.clone(), true);
    let (other, node) = (town.join("other").await, start(&line, "node").await);
    node.enqueue("default", "q", vec![order(silent_for(1_000), None)], None).await.unwrap();
    let claimed = claim(&node).await;

    line.hold_back(|write| matches!(write, RunWrite::Retry { .. }));
    line.looked.notified().await;
    // It is told of the other one, but has written before it has looked.
    line.slow.store(true, Ordering::SeqCst);
    assert!(matches!(heartbeat(&other, &claimed, Duration::ZERO).await, Directive::GoOn { .. }));
    line.looked.notified().await;
    line.told.notify_one();
    assert_eq!(claim(&node).await.live.attempt, 2);
    line.told.notify_one();

    hears_that_it_is_gone(&other, &claimed).await;
    for engine in [node, other] {
        engine.stop(WAIT).await;
    }
}

/// A node looks after a run now and was not told that it does: the former one must not go on believing in its lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_returns_from_a_node_without_an_answer_keeps_its_run() {
    let town = Town::new(1);
    let line = Line::new(town.store.clone(), true);
    let (other, node) = (town.join("other").await, start(&line, "node").await);
    other.enqueue("default", "q", vec![order(silent_for(1_000), None)], None).await.unwrap();
    let claimed = claim(&other).await;
    let (run, attempt) = (claimed.live.made.run, claimed.live.attempt);

    line.mute.store(true, Ordering::SeqCst);
    let pulse = Pulse { run, attempt, progress: None, log: String::new() };
    assert!(node.heartbeat("default", "w", vec![pulse], Duration::ZERO).await.is_err());
    line.mute.store(false, Ordering::SeqCst);

    // Longer than a worker may be silent, and than it takes until the node looks for what it was not told.
    for _ in 0..20 {
        let directive = heartbeat(&other, &claimed, Duration::from_millis(200)).await;
        assert!(matches!(directive, Directive::GoOn { .. }), "{directive:?}");
    }
    assert_eq!([&node, &other].map(|engine| engine.metrics().takeovers.get()), [0, 0]);
    assert_eq!(report(&other, &claimed, AttemptEnd::Succeeded(None)).await, Recorded::Closed);
    for engine in [node, other] {
        engine.stop(WAIT).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_look_does_not_bring_back_what_has_ended() {
    let town = Town::new(1);
    let line = Line::new(town.store.clone(), true);
    let node = start(&line, "node").await;
    node.enqueue("default", "q", vec![order(silent_for(HOUR), None)], None).await.unwrap();
    let claimed = claim(&node).await;
    let run = claimed.live.made.run;

    line.slow.store(true, Ordering::SeqCst);
    town.store.tell(News::Stop(run));
    line.looked.notified().await;
    assert_eq!(node.stop_run("default", run, StopKind::Terminate).await, Ok(true));
    line.slow.store(true, Ordering::SeqCst);
    line.told.notify_one();

    // What it brought back is looked at once more.
    line.looked.notified().await;
    line.told.notify_one();
    hears_that_it_is_gone(&node, &claimed).await;
    until("nothing is watched", async || node.metrics().running.get() == 0).await;
    node.stop(WAIT).await;
}

/// Who gives up waiting does not make room for others while the database is still at work for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_whose_callers_went_away_count_until_they_are_done() {
    let town = Town::new(1);
    let line = Line::new(town.store.clone(), true);
    let config = EngineConfig { node: "node".into(), requests_max: 1, ..EngineConfig::default() };
    let node = Engine::start(line.clone(), std::sync::Arc::new(punctual_engine::SystemClock), config);
    let node = node.await.unwrap();
    node.create_queue("default", "q", Default::default()).await.unwrap();
    let asking = || {
        let (node, orders) = (node.clone(), vec![order(silent_for(HOUR), None)]);
        async move { node.enqueue("default", "q", orders, None).await }
    };

    line.slow_down(|write| matches!(write, RunWrite::Insert(_)));
    let impatient = tokio::spawn(asking());
    line.looked.notified().await;
    impatient.abort();
    assert!(impatient.await.unwrap_err().is_cancelled());
    assert!(matches!(asking().await, Err(EngineError::Busy(_))));
    line.told.notify_one();

    until("there is room again", async || asking().await.is_ok()).await;
    node.stop(WAIT).await;
}

/// A node that leaves waits for what it is writing: nobody would look after what is written under its name later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_leaving_node_writes_last_is_looked_after_by_others() {
    let town = Town::new(1);
    let line = Line::new(town.store.clone(), true);
    let (other, node) = (town.join("other").await, start(&line, "node").await);
    let delayed = order(silent_for(HOUR), Some(jiff::Timestamp::now() + SignedDuration::from_millis(500)));
    line.hold_back(|write| matches!(write, RunWrite::Insert(_)));
    let asking = tokio::spawn({
        let node = node.clone();
        async move { node.enqueue("default", "q", vec![delayed], None).await }
    });
    line.looked.notified().await;
    asking.abort();

    let stopping = tokio::spawn({
        let node = node.clone();
        async move { node.stop(WAIT).await }
    });
    until("it has given its shards up", async || other.metrics().shards.get() == 1).await;
    // It does not say that it has left before that is written.
    let is_listed = async || town.store.roster().await.unwrap().nodes.len() == 2;
    let left = until("it has left", async || !is_listed().await);
    assert!(tokio::time::timeout(Duration::from_secs(1), left).await.is_err());
    line.told.notify_one();

    assert!(stopping.await.unwrap());
    assert_eq!(claim(&other).await.live.attempt, 1, "its time has come");
    other.stop(WAIT).await;
}
