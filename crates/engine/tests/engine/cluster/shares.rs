//! Every shard has one driver, shares are fair, and no more moves than must.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Command, Note, RequestId, Trigger};
use punctual_engine::{Clock, EngineConfig, EngineError, RunSearch, SystemClock, Verb};
use punctual_store::Store;

use crate::town::{Town, WAIT, key, schedule, trigger, until};

/// How often a node is heard of when nothing happens.
const BEAT: Duration = Duration::from_millis(1_600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shards_are_shared_fairly_and_only_what_is_over_a_share_moves() {
    let town = Town::new(8);
    let one = town.join("one").await;
    assert_eq!(one.metrics().shards.get(), 8, "alone it is ready when it has started");
    assert!(one.health().ready);

    let two = town.join("two").await;
    let began = Instant::now();
    town.settles(&[(&one, 4), (&two, 4)]).await;
    assert!(began.elapsed() < BEAT, "nobody waits for a beat: {:?}", began.elapsed());
    assert_eq!(one.metrics().handovers.get(), 4);

    let three = town.join("three").await;
    town.settles(&[(&one, 3), (&two, 3), (&three, 2)]).await;
    assert_eq!([&one, &two].map(|engine| engine.metrics().handovers.get()), [5, 1]);

    three.crash();
    town.pass(6, &[&one, &two]).await;
    town.settles(&[(&one, 4), (&two, 4)]).await;
    assert_eq!([&one, &two].map(|engine| engine.metrics().handovers.get()), [5, 1], "nothing else moved");

    assert!(two.stop(WAIT).await);
    town.settles(&[(&one, 8)]).await;
    until("only one is left", async || one.roster().await.unwrap().nodes.len() == 1).await;
    one.stop(WAIT).await;
    let roster = town.store.roster().await.unwrap();
    assert!(roster.nodes.is_empty() && roster.leases.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drained_node_gives_its_shards_away_and_gets_some_again() {
    let town = Town::new(4);
    let (one, two) = (town.join("one").await, town.join("two").await);
    town.settles(&[(&one, 2), (&two, 2)]).await;

    two.drain_node("one", true).await.unwrap();
    town.settles(&[(&one, 0), (&two, 4)]).await;
    let health = one.health();
    assert_eq!((health.ready, health.reason.as_deref()), (false, Some("draining")));
    assert!(two.health().ready);

    two.drain_node(&one.node_id().0, false).await.unwrap();
    town.settles(&[(&one, 2), (&two, 2)]).await;
    until("it is ready again", async || one.health().ready).await;
    assert!(matches!(one.drain_node("nobody", true).await, Err(EngineError::NotFound(_))));

    // Where everybody is to give shards away there is nobody to take them, and schedules must start.
    one.drain_node("one", true).await.unwrap();
    one.drain_node("two", true).await.unwrap();
    until("both know", async || !one.health().ready && !two.health().ready).await;
    town.settles(&[(&one, 2), (&two, 2)]).await;
    one.stop(WAIT).await;
    two.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_nobody_hears_of_writes_nothing_more_as_an_owner() {
    let town = Town::new(1);
    let (zombie, heir) = (town.join("one").await, town.join("two").await);
    town.settles(&[(&zombie, 1), (&heir, 0)]).await;
    zombie.create(schedule("s", "c", Some(1), None)).await.unwrap();
    let mut events = heir.watch();

    // Its drivers go on, and believe in an epoch that is over soon.
    zombie.fall_silent();
    town.pass(6, &[&heir]).await;

    let mut started = 0;
    while started < 2 {
        let happened = tokio::time::timeout(WAIT, events.recv()).await.unwrap().unwrap();
        started += usize::from(matches!(happened.note, Note::RunStarted(_)));
    }
    assert_eq!(heir.metrics().shard_takeovers.get(), 1);
    let search = RunSearch { count: 100, ..RunSearch::default() };
    let runs = heir.list_runs("default", search).await.unwrap().runs;
    let mut starts: Vec<Timestamp> =
        runs.iter().map(|run| run.stored.run.made.origin.unwrap().1.nominal_time()).collect();
    starts.sort();
    for pair in starts.windows(2) {
        assert_eq!(
            pair[1].duration_since(pair[0]),
            SignedDuration::from_secs(1),
            "each second once: {starts:?}"
        );
    }
    until("it has tried, and was refused", async || zombie.metrics().conflicts.get() > 0).await;
    // Whoever asks it is served all the same, as by a guest.
    trigger(&zombie, "s", "by hand").await;
    zombie.crash();
    heir.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_were_all_counted_as_dead_find_together_again() {
    let town = Town::new(6);
    let engines = [town.join("one").await, town.join("two").await, town.join("three").await];
    let all: Vec<_> = engines.iter().map(|engine| (engine, 2)).collect();
    town.settles(&all).await;
    for (number, engine) in engines.iter().enumerate() {
        engine.create(schedule(&format!("s{number}"), "c", None, None)).await.unwrap();
    }

    town.jump(town.now() + SignedDuration::from_secs(60));

    town.settles(&all).await;
    for (number, engine) in engines.iter().enumerate() {
        trigger(engine, &format!("s{}", (number + 1) % 3), &format!("t{number}")).await;
    }
    for engine in &engines {
        until("it is ready", async || engine.health().ready).await;
        engine.stop(WAIT).await;
    }
}

/// Breaks under whoever drives a shard and looks at it next, once.
#[derive(Default)]
struct Brittle {
    breaks: AtomicBool,
}

impl Clock for Brittle {
    fn now(&self) -> Timestamp {
        let drives = std::thread::current().name().is_some_and(|name| name.starts_with("drivers"));
        assert!(!(drives && self.breaks.swap(false, Ordering::SeqCst)), "the clock broke");
        SystemClock.now()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guest_that_panics_is_followed_by_another() {
    let town = Town::new(2);
    let owner = town.join("one").await;
    let clock = Arc::new(Brittle::default());
    let config = EngineConfig { node: "two".into(), ..EngineConfig::default() };
    let node = town.join_with(clock.clone(), config).await;
    owner.drain_node("two", true).await.unwrap();
    town.settles(&[(&owner, 2), (&node, 0)]).await;
    node.create(schedule("s", "c", None, None)).await.unwrap();

    // It drives nothing else, so it is the guest who looks at the clock.
    clock.breaks.store(true, Ordering::SeqCst);
    let command = Command { request: RequestId::new("t"), body: Trigger::default() };
    let lost = node.change(&key("s"), Verb::Trigger(command)).await;
    assert!(matches!(lost, Err(EngineError::Unavailable(_))), "{lost:?}");

    until("there is another", async || {
        let command = Command { request: RequestId::new("t"), body: Trigger::default() };
        node.change(&key("s"), Verb::Trigger(command)).await.is_ok()
    })
    .await;
    let search = RunSearch { count: 100, ..RunSearch::default() };
    assert_eq!(owner.list_runs("default", search).await.unwrap().runs.len(), 1);
    assert!(node.stop(WAIT).await, "the second one stops as the first would have");
    owner.stop(WAIT).await;
}

/// A clock that is two minutes fast.
struct Fast;

impl Clock for Fast {
    fn now(&self) -> Timestamp {
        Timestamp::now() + SignedDuration::from_mins(2)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_clock_is_off_fires_by_the_databases_clock() {
    let town = Town::new(2);
    let config = EngineConfig { follow_database_clock: true, ..EngineConfig::default() };
    let engine = town.join_with(Arc::new(Fast), config).await;
    let off = engine.now().duration_since(town.now());
    assert!(off.abs() < SignedDuration::from_secs(30), "{off:#}");

    // The database's clock is set: whoever follows it follows.
    let later = town.now() + SignedDuration::from_hours(1);
    town.jump(later);
    until("it follows", async || engine.now() >= later).await;
    engine.create(schedule("s", "c", None, None)).await.unwrap();
    trigger(&engine, "s", "t").await;
    let made = engine.claim("default", "q", "w", 1, Duration::ZERO, None).await.unwrap();
    assert!(made[0].live.made.created_at >= later);
    assert!(engine.describe(&key("s")).await.is_ok());
    engine.stop(WAIT).await;
}
