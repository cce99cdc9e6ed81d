//! Workers turn to any node, and every run is looked after by exactly one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use punctual_core::{Outcome, StopKind};
use punctual_engine::{AttemptEnd, Claimed, Directive, Engine, EngineConfig, Pulse, Recorded, SystemClock};
use punctual_store::{News, QueueSettings, RunKey, Store};

use crate::town::{Town, WAIT, claim, heartbeat, report, schedule, trigger, until};

/// Long before anybody looks at a queue without having been told.
const SOON: Duration = Duration::from_secs(3);

async fn two_nodes(heartbeat: Option<i64>) -> (Town, Engine, Engine) {
    let town = Town::new(2);
    let (one, two) = (town.join("one").await, town.join("two").await);
    town.settles(&[(&one, 1), (&two, 1)]).await;
    one.create(schedule("s", "c", None, heartbeat)).await.unwrap();
    (town, one, two)
}

async fn keeper_of(town: &Town, run: RunKey) -> i64 {
    town.store.load_runs(vec![run]).await.unwrap()[0].as_ref().unwrap().run.keeper.0
}

async fn claims_in_background(engine: &Engine, count: usize) -> Vec<tokio::task::JoinHandle<Claimed>> {
    let claims = (0..count).map(|_| {
        let engine = engine.clone();
        tokio::spawn(async move { claim(&engine).await })
    });
    claims.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_hears_at_once_of_runs_made_elsewhere() {
    let (_town, one, two) = two_nodes(None).await;
    let waiting = claims_in_background(&two, 3).await;
    let began = Instant::now();
    for number in 0..3 {
        trigger(&one, "s", &format!("t{number}")).await;
    }

    for claimed in waiting {
        let claimed = claimed.await.unwrap();
        assert_eq!(report(&one, &claimed, AttemptEnd::Succeeded(None)).await, Recorded::Closed);
    }
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    one.stop(WAIT).await;
    two.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn room_made_at_one_node_is_used_at_another() {
    let (_town, one, two) = two_nodes(None).await;
    let settings = QueueSettings { concurrency_max: Some(1), ..QueueSettings::default() };
    one.update_queue("default", "q", settings).await.unwrap();
    trigger(&one, "s", "t1").await;
    trigger(&one, "s", "t2").await;
    let first = claim(&one).await;
    let waiting = claims_in_background(&two, 1).await;
    let began = Instant::now();

    report(&one, &first, AttemptEnd::Succeeded(None)).await;

    for claimed in waiting {
        assert_ne!(claimed.await.unwrap().live.made.run, first.live.made.run);
    }
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    one.stop(WAIT).await;
    two.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_may_turn_to_another_node_with_every_heartbeat() {
    let (town, one, two) = two_nodes(Some(1)).await;
    trigger(&one, "s", "t").await;
    let claimed = claim(&one).await;
    let run = claimed.live.made.run;

    // Longer than any node would wait that was not told.
    for beat in 0..8 {
        let here = if beat % 2 == 0 { &two } else { &one };
        let directive = heartbeat(here, &claimed, Duration::from_millis(400)).await;
        assert!(matches!(directive, Directive::GoOn { .. }), "beat {beat}: {directive:?}");
    }
    assert_eq!(town.store.load_runs(vec![run]).await.unwrap()[0].as_ref().unwrap().run.attempt, 1);
    assert_eq!([&one, &two].map(|engine| engine.metrics().takeovers.get()), [0, 0]);
    assert_eq!(report(&two, &claimed, AttemptEnd::Succeeded(None)).await, Recorded::Closed);
    until("nobody has it any more", async || {
        [&one, &two].iter().all(|engine| engine.metrics().running.get() == 0)
    })
    .await;
    one.stop(WAIT).await;
    two.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_goes_on_at_another_node() {
    let (_town, one, two) = two_nodes(None).await;
    trigger(&one, "s", "t").await;
    let claimed = claim(&one).await;
    let (run, attempt) = (claimed.live.made.run, claimed.live.attempt);
    for (engine, line) in [(&one, "first"), (&two, "second"), (&one, "third")] {
        let pulse = Pulse { run, attempt, progress: None, log: line.to_owned() };
        engine.heartbeat("default", "w", vec![pulse], Duration::ZERO).await.unwrap();
        // Whoever kept it before has let go of it.
        until("one node has it", async || one.metrics().running.get() + two.metrics().running.get() == 1)
            .await;
    }

    let details = two.run_details("default", run).await.unwrap();

    assert_eq!(details.log_tail.as_deref(), Some(&b"first\nsecond\nthird\n"[..]));
    one.stop(WAIT).await;
    two.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_asked_for_at_one_node_reaches_a_worker_at_another() {
    let (_town, one, two) = two_nodes(None).await;
    for (request, kind) in [("t1", StopKind::Cancel), ("t2", StopKind::Terminate)] {
        trigger(&one, "s", request).await;
        let claimed = claim(&one).await;
        let run = claimed.live.made.run;
        let waiting = tokio::spawn({
            let (one, claimed) = (one.clone(), claimed.clone());
            async move { heartbeat(&one, &claimed, WAIT).await }
        });
        let began = Instant::now();

        assert!(two.stop_run("default", run, kind).await.unwrap());

        match (kind, waiting.await.unwrap()) {
            (StopKind::Cancel, Directive::Cancel { .. }) => {
                assert_eq!(report(&two, &claimed, AttemptEnd::Cancelled).await, Recorded::Closed);
            }
            (StopKind::Terminate, Directive::Gone) => {}
            (_, other) => panic!("{kind:?} was told as {other:?}"),
        }
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    }
    one.stop(WAIT).await;
    two.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_goes_on_when_its_node_is_gone() {
    let (town, one, two) = two_nodes(None).await;
    trigger(&one, "s", "t").await;
    let claimed = claim(&one).await;
    let before = keeper_of(&town, claimed.live.made.run).await;

    one.crash();
    town.pass(6, &[&two]).await;
    town.settles(&[(&two, 2)]).await;
    until("it is looked after", async || keeper_of(&town, claimed.live.made.run).await != before).await;

    assert!(matches!(heartbeat(&two, &claimed, Duration::ZERO).await, Directive::GoOn { .. }));
    assert_eq!(report(&two, &claimed, AttemptEnd::Succeeded(None)).await, Recorded::Closed);
    two.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_of_a_node_that_is_gone_are_tried_again_once() {
    let (town, one, two) = two_nodes(Some(1)).await;
    let three = town.join("three").await;
    town.settles(&[(&one, 1), (&two, 1), (&three, 0)]).await;
    let mut lost = Vec::new();
    for number in 0..5 {
        trigger(&one, "s", &format!("t{number}")).await;
        lost.push(claim(&one).await);
    }

    // Its workers are gone with it.
    one.crash();
    town.pass(6, &[&two, &three]).await;

    let again = [claims_in_background(&two, 3).await, claims_in_background(&three, 2).await];
    for claimed in again.into_iter().flatten() {
        let claimed = claimed.await.unwrap();
        assert_eq!(claimed.live.attempt, 2);
        assert_eq!(report(&three, &claimed, AttemptEnd::Succeeded(None)).await, Recorded::Closed);
    }
    let takeovers: u64 = [&two, &three].iter().map(|engine| engine.metrics().takeovers.get()).sum();
    assert_eq!(takeovers, 5, "each attempt was given up once");
    for claimed in &lost {
        assert_eq!(report(&two, claimed, AttemptEnd::Succeeded(None)).await, Recorded::Stale);
        let run = two.run("default", claimed.live.made.run).await.unwrap();
        assert_eq!(run.stored.closing.unwrap().outcome, Outcome::Succeeded);
    }
    two.stop(WAIT).await;
    three.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_of_a_node_that_left_in_good_order_are_looked_after_too() {
    let (town, one, two) = two_nodes(Some(1)).await;
    trigger(&one, "s", "t").await;
    let lost = claim(&one).await;

    assert!(one.stop(WAIT).await);

    let again = claim(&two).await;
    assert_eq!((again.live.made.run, again.live.attempt), (lost.live.made.run, 2));
    assert_eq!(town.shares().await.values().sum::<usize>(), 2);
    two.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_waits_for_its_callback_is_missed_nowhere() {
    let (_town, one, two) = two_nodes(Some(1)).await;
    trigger(&one, "s", "t").await;
    let claimed = claim(&one).await;
    let (run, attempt) = (claimed.live.made.run, claimed.live.attempt);

    assert!(two.await_callback(run, attempt).await.unwrap());

    until("the other one keeps it", async || {
        (one.metrics().running.get(), two.metrics().running.get()) == (0, 1)
    })
    .await;
    assert_eq!(one.callback("default", run, Ok(None)).await.unwrap(), Recorded::Closed);
    until("nobody has it any more", async || two.metrics().running.get() == 0).await;
    assert_eq!(one.metrics().takeovers.get(), 0);
    one.stop(WAIT).await;
    two.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missed_news_cost_a_look_and_nothing_else() {
    let (town, one, two) = two_nodes(None).await;
    trigger(&one, "s", "t1").await;
    let claimed = claim(&two).await;

    town.store.tell(News::Gap);

    assert!(matches!(heartbeat(&two, &claimed, Duration::ZERO).await, Directive::GoOn { .. }));
    assert_eq!(report(&one, &claimed, AttemptEnd::Succeeded(None)).await, Recorded::Closed);
    trigger(&two, "s", "t2").await;
    assert_eq!(claim(&one).await.live.attempt, 1);
    town.settles(&[(&one, 1), (&two, 1)]).await;
    one.stop(WAIT).await;
    two.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_removes_what_is_old_for_all() {
    let town = Town::new(2);
    let config = |node: &str| EngineConfig {
        node: node.into(),
        retention_pause: SignedDuration::from_millis(10),
        run_retention: SignedDuration::ZERO,
        ..EngineConfig::default()
    };
    let one = town.join_with(Arc::new(SystemClock), config("one")).await;
    let two = town.join_with(Arc::new(SystemClock), config("two")).await;
    town.settles(&[(&one, 1), (&two, 1)]).await;
    let leases = town.store.roster().await.unwrap().leases;
    let (does, rests) = if leases[0].node == *one.node_id() { (&one, &two) } else { (&two, &one) };
    one.create(schedule("s", "c", None, None)).await.unwrap();
    let before = rests.metrics().retired.get();

    trigger(&one, "s", "t").await;
    let claimed = claim(&two).await;
    report(&two, &claimed, AttemptEnd::Succeeded(None)).await;

    until("it is removed", async || does.metrics().retired.get() > 0).await;
    assert_eq!(rests.metrics().retired.get(), before);
    one.stop(WAIT).await;
    two.stop(WAIT).await;
}
