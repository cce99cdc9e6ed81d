//! A queue alone, without schedules: limits hold and free room wakes those who wait; nothing is made twice; what failed can be
//! tried again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Failure, Outcome, RetryPolicy, RunAction, Timeouts};
use punctual_engine::{
    AttemptEnd, CallbackEnd, Claimed, Engine, EngineConfig, EngineError, OnDuplicate, Recorded, Report,
    RunOrder, RunSearch, SystemClock,
};
use punctual_store::memory::Memory;
use punctual_store::{QueueSettings, Rate, RunFilter, RunKey};

const WAIT: Duration = Duration::from_secs(20);
const NOW: Duration = Duration::ZERO;

async fn node(settings: QueueSettings) -> Engine {
    let store = Arc::new(Memory::new(1, Timestamp::now()));
    let engine = Engine::start(store, Arc::new(SystemClock), EngineConfig::default()).await.unwrap();
    engine.create_queue("default", "q", settings).await.unwrap();
    engine
}

fn order(handler: &str) -> RunOrder {
    let retry = RetryPolicy { attempts_max: 1, ..RetryPolicy::default() };
    RunOrder {
        name: handler.into(),
        action: RunAction { handler: handler.into(), retry, ..RunAction::default() },
        dedup: None,
        on_duplicate: OnDuplicate::Reject,
        not_before: None,
    }
}

async fn enqueue(engine: &Engine, orders: Vec<RunOrder>) -> Vec<RunKey> {
    let made = engine.enqueue("default", "q", orders, None).await.unwrap();
    made.into_iter().map(|made| made.run).collect()
}

async fn claim(engine: &Engine, worker: &str, most: usize, wait: Duration) -> Vec<Claimed> {
    engine.claim("default", "q", worker, most, wait, None).await.unwrap()
}

async fn report(engine: &Engine, worker: &str, claimed: &Claimed, end: AttemptEnd) -> Recorded {
    let (run, attempt) = (claimed.live.made.run, claimed.live.attempt);
    let report = Report { namespace: "default".into(), worker: worker.into(), run, attempt, end };
    engine.report(report).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_hands_out_the_next_run_when_one_ends() {
    let engine = node(QueueSettings { concurrency_max: Some(2), ..QueueSettings::default() }).await;
    enqueue(&engine, vec![order("a"), order("b"), order("c")]).await;
    let held = claim(&engine, "w", 10, WAIT).await;
    assert_eq!(held.len(), 2);
    assert!(claim(&engine, "v", 10, NOW).await.is_empty());

    let waiting = tokio::spawn({
        let engine = engine.clone();
        async move { claim(&engine, "v", 10, WAIT).await }
    });
    report(&engine, "w", &held[0], AttemptEnd::Succeeded(None)).await;

    let third = waiting.await.unwrap();
    assert_eq!(third.len(), 1);
    assert_eq!(&*third[0].body.action.handler, "c");
    engine.stop(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_at_its_own_limit_does_not_keep_runs_from_others() {
    let engine = node(QueueSettings { worker_concurrency_max: Some(1), ..QueueSettings::default() }).await;
    enqueue(&engine, vec![order("a")]).await;
    assert_eq!(claim(&engine, "busy", 5, WAIT).await.len(), 1);
    let wait_as = |worker: &'static str, wait: Duration| {
        let engine = engine.clone();
        tokio::spawn(async move { claim(&engine, worker, 5, wait).await })
    };
    let busy = wait_as("busy", Duration::from_secs(2));
    let free = wait_as("free", WAIT);

    enqueue(&engine, vec![order("b")]).await;

    assert_eq!(free.await.unwrap().len(), 1);
    assert!(busy.await.unwrap().is_empty());
    engine.stop(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_for_a_rate_is_woken_when_the_window_opens() {
    let rate = Some(Rate { starts_max: 2, per: SignedDuration::from_millis(300) });
    let engine = node(QueueSettings { rate, ..QueueSettings::default() }).await;
    enqueue(&engine, vec![order("a"), order("b"), order("c")]).await;
    let begun = Instant::now();
    assert_eq!(claim(&engine, "w", 10, WAIT).await.len(), 2);

    let third = claim(&engine, "w", 10, WAIT).await;

    assert_eq!(third.len(), 1);
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_millis(299), "{waited:?}");
    assert!(waited < Duration::from_secs(10), "{waited:?}");
    engine.stop(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_are_changed_while_runs_wait() {
    let engine = node(QueueSettings { paused: true, ..QueueSettings::default() }).await;
    enqueue(&engine, vec![order("a")]).await;
    assert!(claim(&engine, "w", 1, NOW).await.is_empty());
    let waiting = tokio::spawn({
        let engine = engine.clone();
        async move { claim(&engine, "w", 1, WAIT).await }
    });
    engine.update_queue("default", "q", QueueSettings::default()).await.unwrap();
    assert_eq!(waiting.await.unwrap().len(), 1);
    let refused = QueueSettings { concurrency_max: Some(0), ..QueueSettings::default() };
    let refused = engine.update_queue("default", "q", refused).await;
    assert!(matches!(refused, Err(EngineError::Invalid(_))), "{refused:?}");
    engine.stop(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_made_twice() {
    let engine = node(QueueSettings::default()).await;
    let ask = async |orders: Vec<RunOrder>, request: Option<&str>| {
        engine.enqueue("default", "q", orders, request.map(Arc::from)).await
    };
    let first = ask(vec![order("a"), order("b")], Some("r1")).await.unwrap();
    let again = ask(vec![order("a"), order("b")], Some("r1")).await.unwrap();
    assert_eq!(
        first.iter().map(|made| made.run).collect::<Vec<_>>(),
        again.iter().map(|made| made.run).collect::<Vec<_>>()
    );
    assert!(again.iter().all(|made| made.existing) && !first.iter().any(|made| made.existing));

    let once = |on_duplicate| RunOrder { dedup: Some("id".into()), on_duplicate, ..order("d") };
    let made = ask(vec![once(OnDuplicate::Reject)], None).await.unwrap()[0];
    let refused = ask(vec![once(OnDuplicate::Reject)], None).await;
    assert!(matches!(refused, Err(EngineError::AlreadyExists(_))), "{refused:?}");
    let mut second = None;
    for _ in 0..2 {
        let some = vec![once(OnDuplicate::ReturnExisting), order("e")];
        let both = ask(some, Some("r2")).await.unwrap();
        assert_eq!((both.len(), both[0].run, both[0].existing), (2, made.run, true));
        assert_eq!(both[1].existing, second.is_some());
        assert_eq!(*second.get_or_insert(both[1].run), both[1].run);
    }
    let twice = ask(vec![once(OnDuplicate::Reject), once(OnDuplicate::ReturnExisting)], None).await;
    assert!(matches!(twice, Err(EngineError::Invalid(_))), "{twice:?}");

    // Once it is over, its id is free.
    engine.stop_run("default", made.run, punctual_core::StopKind::Terminate).await.unwrap();
    assert!(!ask(vec![once(OnDuplicate::Reject)], None).await.unwrap()[0].existing);
    engine.stop(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_for_later_is_not_handed_out_before() {
    let engine = node(QueueSettings::default()).await;
    let time = engine.now() + SignedDuration::from_millis(250);
    enqueue(&engine, vec![RunOrder { not_before: Some(time), ..order("later") }]).await;
    assert!(claim(&engine, "w", 1, NOW).await.is_empty());
    assert_eq!(claim(&engine, "w", 1, WAIT).await.len(), 1);
    assert!(engine.now() >= time);
    engine.stop(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_failed_for_good_is_a_dead_letter_until_it_is_tried_again_or_given_up() {
    let engine = node(QueueSettings::default()).await;
    let runs = enqueue(&engine, vec![order("a"), order("b"), order("c")]).await;
    for claimed in claim(&engine, "w", 10, WAIT).await {
        report(&engine, "w", &claimed, AttemptEnd::Failed(Failure::new("Oops", ""), None)).await;
    }
    let dead = async || {
        let search = RunSearch { filter: Some(RunFilter::DeadLetter), count: 10, ..RunSearch::default() };
        engine.list_runs("default", search).await.unwrap().runs.len()
    };
    assert_eq!(dead().await, 3);

    let revived = engine.retry_run("default", runs[0]).await.unwrap();
    assert_eq!(dead().await, 2);
    let refused = engine.retry_run("default", runs[0]).await;
    assert!(matches!(refused, Err(EngineError::Invalid(_))), "{refused:?}");
    let again = claim(&engine, "w", 10, WAIT).await;
    assert_eq!(again.iter().map(|claimed| claimed.live.made.run).collect::<Vec<_>>(), [revived]);

    assert_eq!(engine.retry_dead_letters("default", "q", 1).await.unwrap(), (1, true));
    assert_eq!(engine.purge_queue("default", "q", true, 100).await.unwrap(), (1, false));
    assert_eq!(dead().await, 0);
    assert_eq!(engine.purge_queue("default", "q", false, 100).await.unwrap(), (1, false));
    assert_eq!(engine.describe_queue("default", "q").await.unwrap().1.ready, 0);
    engine.stop(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callback_ends_a_run_whenever_it_comes_and_only_once() {
    let engine = node(QueueSettings::default()).await;
    let timeouts = Timeouts { start_to_close: Some(SignedDuration::from_hours(1)), ..Timeouts::default() };
    let long = || {
        let order = order("call");
        RunOrder { action: RunAction { timeouts, ..order.action.clone() }, ..order }
    };
    let result: Option<Arc<[u8]>> = Some(b"done".as_slice().into());
    enqueue(&engine, vec![long(), long(), long()]).await;
    let claimed = claim(&engine, "w", 3, WAIT).await;
    let run = |place: usize| (claimed[place].live.made.run, claimed[place].live.attempt);

    // In order: accepted, then called back; a second word counts for nothing.
    assert!(engine.await_callback(run(0).0, run(0).1).await.unwrap());
    assert_eq!(engine.callback("default", run(0).0, Ok(result.clone())).await.unwrap(), Recorded::Closed);
    let failed = Err(CallbackEnd::Failed(Failure::new("late", "")));
    assert_eq!(engine.callback("default", run(0).0, failed).await.unwrap(), Recorded::Stale);
    let view = engine.run("default", run(0).0).await.unwrap();
    let closing = view.stored.closing.unwrap();
    assert_eq!((closing.outcome, closing.payload), (Outcome::Succeeded, result.clone()));

    // The callback is faster than the answer to the call.
    assert_eq!(engine.callback("default", run(1).0, Ok(None)).await.unwrap(), Recorded::Closed);
    assert!(!engine.await_callback(run(1).0, run(1).1).await.unwrap());

    // It failed, and that was its last attempt.
    assert!(engine.await_callback(run(2).0, run(2).1).await.unwrap());
    let failed = Err(CallbackEnd::Failed(Failure { retryable: false, ..Failure::new("no", "") }));
    assert_eq!(engine.callback("default", run(2).0, failed).await.unwrap(), Recorded::Closed);
    let missing = engine.callback("elsewhere", run(2).0, Ok(None)).await;
    assert!(matches!(missing, Err(EngineError::NotFound(_))), "{missing:?}");
    engine.stop(Duration::from_secs(5)).await;
}
