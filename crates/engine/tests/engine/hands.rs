//! Runs on their way into a worker's hands and out of them: who is gone before a run came leaves it to others, who is quiet by
//! nature keeps it, and a queue that nobody declared yet can be waited for.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Outcome, RetryPolicy, RunAction, StopKind, Timeouts};
use punctual_engine::{
    Claimed, Directive, Engine, EngineConfig, OnDuplicate, Pulse, QUIET_WORKER, RunOrder, SystemClock,
};
use punctual_store::QueueSettings;
use punctual_store::memory::Memory;

const WAIT: Duration = Duration::from_secs(20);

async fn start(store: &Arc<Memory>) -> Engine {
    Engine::start(store.clone(), Arc::new(SystemClock), EngineConfig::default()).await.unwrap()
}

async fn node() -> (Arc<Memory>, Engine) {
    let store = Arc::new(Memory::new(1, Timestamp::now()));
    let engine = start(&store).await;
    engine.create_queue("default", "q", QueueSettings::default()).await.unwrap();
    (store, engine)
}

/// A run that may be tried once.
async fn enqueue(engine: &Engine, timeouts: Timeouts) {
    let retry = RetryPolicy { attempts_max: 1, ..RetryPolicy::default() };
    let action = RunAction { handler: "h".into(), retry, timeouts, ..RunAction::default() };
    let order = RunOrder {
        name: "run".into(),
        action,
        dedup: None,
        on_duplicate: OnDuplicate::Reject,
        not_before: None,
    };
    engine.enqueue("default", "q", vec![order], None).await.unwrap();
}

async fn claim(engine: &Engine, worker: &str) -> Claimed {
    let mut claimed = engine.claim("default", "q", worker, 1, WAIT, None).await.unwrap();
    claimed.pop().expect("a run is claimed in time")
}

// On one thread, so that the claim of the one who goes is written before that of the one who stays.
#[tokio::test]
async fn who_is_gone_before_its_run_came_leaves_it_to_others() {
    let (_, engine) = node().await;
    enqueue(&engine, Timeouts::default()).await;
    {
        let mut gone = pin!(engine.claim("default", "q", "gone", 1, WAIT, None));
        let asked = gone.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(asked, Poll::Pending), "the claim is being written");
    }
    // No attempt was made, so even a run with a single one goes on; long before the lease of 30 s is over.
    let heard = claim(&engine, "w").await;
    assert_eq!(heard.live.attempt, 2);
    engine.give_back(vec![heard]);
    assert_eq!(claim(&engine, "w").await.live.attempt, 3);
    engine.stop(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_was_cancelled_meanwhile_is_not_given_to_others() {
    let (_, engine) = node().await;
    enqueue(&engine, Timeouts::default()).await;
    let claimed = claim(&engine, "w").await;
    let run = claimed.live.made.run;
    engine.stop_run("default", run, StopKind::Cancel).await.unwrap();
    engine.give_back(vec![claimed]);
    let pulse = || vec![Pulse { run, attempt: 1, progress: None, log: String::new() }];
    while engine.heartbeat("default", "w", pulse(), WAIT).await.unwrap()[0].directive != Directive::Gone {}
    let closing = engine.run("default", run).await.unwrap().stored.closing.unwrap();
    assert_eq!(closing.outcome, Outcome::Cancelled);
    engine.stop(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quiet_worker_may_be_silent_as_long_as_its_attempt_may_take() {
    let (store, engine) = node().await;
    let minutes = |minutes| Some(SignedDuration::from_mins(minutes));
    let bounded = Timeouts { start_to_close: minutes(5), ..Timeouts::default() };
    let beating = Timeouts { heartbeat: minutes(2), ..bounded };
    let quiet = format!("{QUIET_WORKER}w");
    let mut leases = Vec::new();
    for timeouts in [Timeouts::default(), bounded, beating] {
        enqueue(&engine, timeouts).await;
        leases.push(claim(&engine, &quiet).await);
    }
    let check = |lengths: Vec<Timestamp>| {
        let left = |place: usize| lengths[place].duration_since(Timestamp::now()).as_secs();
        assert!((3_500..=3_600).contains(&left(0)), "{}", left(0));
        assert_eq!(lengths[1], Timestamp::MAX);
        assert!((100..=120).contains(&left(2)), "{}", left(2));
    };
    check(leases.iter().map(|claimed| claimed.lease_until).collect());
    enqueue(&engine, Timeouts::default()).await;
    let usual = claim(&engine, "w").await.lease_until.duration_since(Timestamp::now());
    assert!(usual.as_secs() <= 30, "{usual:#}");
    engine.stop(Duration::from_secs(5)).await;

    // A restart makes new leases from what is stored, and they are as long.
    let engine = start(&store).await;
    let pulse = |claimed: &Claimed| Pulse {
        run: claimed.live.made.run,
        attempt: 1,
        progress: None,
        log: String::new(),
    };
    let pulses = leases.iter().map(pulse).collect();
    let answers = engine.heartbeat("default", &quiet, pulses, Duration::ZERO).await.unwrap();
    let until = answers.iter().map(|answer| match answer.directive {
        Directive::GoOn { lease_until } => lease_until,
        other => panic!("it goes on, found {other:?}"),
    });
    check(until.collect());
    engine.stop(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_can_be_waited_for() {
    let (_, engine) = node().await;
    engine.queue_declared("default", "q").await.unwrap();
    let waiting = tokio::spawn({
        let engine = engine.clone();
        async move { engine.queue_declared("default", "later").await }
    });
    engine.create_queue("other", "later", QueueSettings::default()).await.unwrap();
    assert!(!waiting.is_finished());
    engine.create_queue("default", "later", QueueSettings::default()).await.unwrap();
    tokio::time::timeout(WAIT, waiting).await.unwrap().unwrap().unwrap();
    engine.stop(Duration::from_secs(5)).await;
}
