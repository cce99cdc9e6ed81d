//! Nodes that lose the database for a while, and a node that shares it with nobody.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{RunAction, Timeouts};
use punctual_engine::{AttemptEnd, Engine, EngineConfig, OnDuplicate, Recorded, RunOrder, SystemClock};
use punctual_store::memory::Memory;
use punctual_store::{Keeper, Kept, News, QueueSettings, Store};

use crate::line::Line;
use crate::town::{Town, WAIT, claim, report, schedule, trigger, until};

async fn start(line: &Arc<Line>, name: &str) -> Engine {
    let config = EngineConfig { node: name.into(), ..EngineConfig::default() };
    let engine = Engine::start(line.clone(), Arc::new(SystemClock), config).await.unwrap();
    engine.create_queue("default", "q", QueueSettings::default()).await.unwrap();
    engine
}

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
    let town = Town::new(1);
    let line = Line::new(town.store.clone(), true);
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

/// A look at a waiting run takes so long that a worker gets the run meanwhile. What the look saw is old then: were it believed,
/// nobody would notice that the worker falls silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_look_at_a_run_does_not_end_the_watch_over_its_worker() {
    let town = Town::new(1);
    let line = Line::new(town.store.clone(), true);
    let node = start(&line, "node").await;
    let timeouts = Timeouts {
        heartbeat: Some(SignedDuration::from_millis(300)),
        schedule_to_close: Some(SignedDuration::from_hours(1)),
        ..Timeouts::default()
    };
    let action = RunAction { handler: "h".into(), timeouts, ..RunAction::default() };
    let (name, dedup, on_duplicate, not_before) = ("run".into(), None, OnDuplicate::Reject, None);
    let order = RunOrder { name, action, dedup, on_duplicate, not_before };
    node.enqueue("default", "q", vec![order], None).await.unwrap();
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
