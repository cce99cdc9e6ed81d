//! A whole node on the reference store, with the real clock: runs go to workers, end, time out and are taken over.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{
    Command, Failure, InitialPatch, Outcome, OverlapPolicy, Policies, RequestId, RetryPolicy, RunAction,
    ScheduleKey, StopKind, Timeouts, Trigger,
};
use punctual_engine::{
    AttemptEnd, Claimed, Directive, Engine, EngineConfig, EngineError, NewSchedule, Pulse, Recorded, Report,
    RunSearch, SystemClock, Verb,
};
use punctual_spec::Spec;
use punctual_store::QueueSettings;
use punctual_store::memory::Memory;

const WAIT: Duration = Duration::from_secs(20);

async fn node() -> Engine {
    let store = Arc::new(Memory::new(1, Timestamp::now()));
    let engine = Engine::start(store, Arc::new(SystemClock), EngineConfig::default()).await.unwrap();
    engine.create_queue("default", "q", QueueSettings::default()).await.unwrap();
    engine
}

fn key() -> ScheduleKey {
    ScheduleKey::new("default", "s")
}

/// A schedule that only starts by hand.
fn manual(retry: RetryPolicy, timeouts: Timeouts, policies: Policies) -> NewSchedule {
    let (queue, handler, input) = ("q".into(), "h".into(), b"in".as_slice().into());
    let action = RunAction { queue, handler, input, retry, timeouts, ..RunAction::default() };
    NewSchedule {
        key: key(),
        spec: Spec::new(),
        action,
        run_id_base: "".into(),
        policies,
        attachment: [].into(),
        remaining_actions: None,
        initial: InitialPatch::default(),
        request: RequestId::new("create"),
    }
}

fn quick(attempts_max: u32) -> RetryPolicy {
    RetryPolicy { attempts_max, backoff_first: SignedDuration::from_millis(5), ..RetryPolicy::default() }
}

async fn trigger(engine: &Engine, request: &str) {
    let command = Command { request: RequestId::new(request), body: Trigger::default() };
    engine.change(&key(), Verb::Trigger(command)).await.unwrap();
}

async fn claim(engine: &Engine) -> Claimed {
    let mut claimed = engine.claim("default", "q", "w", 1, WAIT, None).await.unwrap();
    claimed.pop().expect("a run is claimed in time")
}

async fn report(engine: &Engine, claimed: &Claimed, end: AttemptEnd) -> Recorded {
    let (namespace, worker) = ("default".into(), "w".into());
    let report = Report { namespace, worker, run: claimed.live.made.run, attempt: claimed.live.attempt, end };
    engine.report(report).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_waits_is_woken_by_a_start() {
    let engine = node().await;
    engine.create(manual(quick(3), Timeouts::default(), Policies::default())).await.unwrap();
    let waiting = tokio::spawn({
        let engine = engine.clone();
        async move { claim(&engine).await }
    });
    trigger(&engine, "t").await;

    let claimed = waiting.await.unwrap();

    assert_eq!((claimed.live.attempt, &*claimed.body.action.handler, &*claimed.body.schedule), (1, "h", "s"));
    assert_eq!(
        report(&engine, &claimed, AttemptEnd::Succeeded(Some(b"out".as_slice().into()))).await,
        Recorded::Closed
    );
    let described = engine.describe(&key()).await.unwrap();
    assert_eq!(described.description.recent.len(), 1);
    assert_eq!(described.description.last_completion.result.as_deref(), Some(b"out".as_slice()));
    assert!(engine.stop(WAIT).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_attempt_is_tried_again_and_an_old_attempt_counts_no_more() {
    let engine = node().await;
    engine.create(manual(quick(2), Timeouts::default(), Policies::default())).await.unwrap();
    trigger(&engine, "t").await;
    let first = claim(&engine).await;
    let failed = AttemptEnd::Failed(Failure::new("Oops", "it broke"), None);
    assert!(matches!(report(&engine, &first, failed.clone()).await, Recorded::Retried { .. }));

    let second = claim(&engine).await;
    assert_eq!(second.live.attempt, 2);
    assert_eq!(report(&engine, &first, AttemptEnd::Succeeded(None)).await, Recorded::Stale);
    assert_eq!(report(&engine, &second, failed.clone()).await, Recorded::Closed);
    // The answer may have been lost: the same report gets the same answer.
    assert_eq!(report(&engine, &second, failed).await, Recorded::Closed);

    let run = engine.run("default", second.live.made.run).await.unwrap();
    assert_eq!(run.stored.closing.unwrap().outcome, Outcome::Failed);
    engine.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_workers_run_is_taken_over() {
    let engine = node().await;
    let timeouts = Timeouts { heartbeat: Some(SignedDuration::from_secs(1)), ..Timeouts::default() };
    engine.create(manual(quick(3), timeouts, Policies::default())).await.unwrap();
    trigger(&engine, "t").await;
    let lost = claim(&engine).await;

    let taken_over = claim(&engine).await;

    assert_eq!((taken_over.live.made.run, taken_over.live.attempt), (lost.live.made.run, 2));
    let pulse = Pulse { run: lost.live.made.run, attempt: 1, progress: None, log: String::new() };
    let answers = engine.heartbeat("default", "w", vec![pulse], Duration::ZERO).await.unwrap();
    assert_eq!(answers[0].directive, Directive::Gone);
    assert_eq!(report(&engine, &taken_over, AttemptEnd::Succeeded(None)).await, Recorded::Closed);
    engine.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_reaches_a_worker_that_waits_in_its_heartbeat() {
    let engine = node().await;
    engine.create(manual(quick(3), Timeouts::default(), Policies::default())).await.unwrap();
    trigger(&engine, "t").await;
    let claimed = claim(&engine).await;
    let run = claimed.live.made.run;
    let pulse = Pulse { run, attempt: 1, progress: Some(b"half".as_slice().into()), log: "line".into() };
    let waiting = tokio::spawn({
        let engine = engine.clone();
        async move { engine.heartbeat("default", "w", vec![pulse], WAIT).await.unwrap() }
    });

    assert!(engine.stop_run("default", run, StopKind::Cancel).await.unwrap());

    let answers = waiting.await.unwrap();
    assert!(matches!(answers[0].directive, Directive::Cancel { .. }));
    assert_eq!(report(&engine, &claimed, AttemptEnd::Cancelled).await, Recorded::Closed);
    let details = engine.run_details("default", run).await.unwrap();
    assert_eq!(
        (details.progress.as_deref(), details.log_tail.as_deref()),
        (Some(&b"half"[..]), Some(&b"line\n"[..]))
    );
    assert!(!engine.stop_run("default", run, StopKind::Cancel).await.unwrap(), "it has ended already");
    engine.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terminate_other_ends_the_run_before_and_starts_the_next() {
    let engine = node().await;
    let policies = Policies { overlap: OverlapPolicy::TerminateOther, ..Policies::default() };
    engine.create(manual(quick(3), Timeouts::default(), policies)).await.unwrap();
    trigger(&engine, "one").await;
    let first = claim(&engine).await;
    trigger(&engine, "two").await;

    let second = claim(&engine).await;

    assert_ne!(first.live.made.run, second.live.made.run);
    let run = engine.run("default", first.live.made.run).await.unwrap();
    assert_eq!(run.stored.closing.unwrap().outcome, Outcome::Terminated);
    assert_eq!(report(&engine, &first, AttemptEnd::Succeeded(None)).await, Recorded::Stale);
    engine.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancel_other_waits_for_the_worker_to_give_up() {
    let engine = node().await;
    let policies = Policies { overlap: OverlapPolicy::CancelOther, ..Policies::default() };
    engine.create(manual(quick(3), Timeouts::default(), policies)).await.unwrap();
    trigger(&engine, "one").await;
    let first = claim(&engine).await;
    let pulse = Pulse { run: first.live.made.run, attempt: 1, progress: None, log: String::new() };
    let waiting = tokio::spawn({
        let engine = engine.clone();
        async move { engine.heartbeat("default", "w", vec![pulse], WAIT).await.unwrap() }
    });
    trigger(&engine, "two").await;

    assert!(matches!(waiting.await.unwrap()[0].directive, Directive::Cancel { .. }));
    assert_eq!(report(&engine, &first, AttemptEnd::Cancelled).await, Recorded::Closed);
    let second = claim(&engine).await;
    assert_ne!(first.live.made.run, second.live.made.run);
    engine.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_nobody_claims_in_time_is_over() {
    let engine = node().await;
    let timeouts =
        Timeouts { schedule_to_close: Some(SignedDuration::from_millis(30)), ..Timeouts::default() };
    let policies = Policies { pause_after_failures: Some(1), ..Policies::default() };
    engine.create(manual(quick(3), timeouts, policies)).await.unwrap();
    let mut events = engine.watch();
    trigger(&engine, "t").await;

    loop {
        let happened = tokio::time::timeout(WAIT, events.recv()).await.unwrap().unwrap();
        if let punctual_core::Note::RunCompleted { outcome, .. } = happened.note {
            assert_eq!(outcome, Outcome::TimedOut);
            break;
        }
    }
    assert!(engine.describe(&key()).await.unwrap().description.pause.is_some());
    let runs = engine.list_runs("default", RunSearch { count: 10, ..RunSearch::default() }).await.unwrap();
    assert_eq!(runs.runs.len(), 1);
    engine.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undeclared_queue_is_refused_at_create() {
    let engine = node().await;
    let mut new = manual(quick(1), Timeouts::default(), Policies::default());
    new.action.queue = "nowhere".into();
    assert_eq!(engine.create(new).await, Err(EngineError::UnknownQueue("nowhere".into())));
    assert!(matches!(engine.describe(&key()).await, Err(EngineError::NotFound(_))));
    engine.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_reports_at_the_same_time_one_counts_and_all_hear_which() {
    let engine = node().await;
    engine.create(manual(quick(1), Timeouts::default(), Policies::default())).await.unwrap();
    for round in 0..20 {
        trigger(&engine, &format!("t{round}")).await;
        let claimed = claim(&engine).await;
        let (run, attempt) = (claimed.live.made.run, claimed.live.attempt);
        let reports: Vec<_> = (0..8_u8)
            .map(|number| {
                let end = AttemptEnd::Succeeded(Some([number].as_slice().into()));
                let report = Report { namespace: "default".into(), worker: "w".into(), run, attempt, end };
                let engine = engine.clone();
                tokio::spawn(async move { (number, engine.report(report).await.unwrap()) })
            })
            .collect();
        let mut counted = Vec::new();
        for report in reports {
            let (number, recorded) = report.await.unwrap();
            match recorded {
                Recorded::Closed => counted.push(number),
                other => assert_eq!(other, Recorded::Stale),
            }
        }
        let kept = engine.run("default", run).await.unwrap().stored.closing.unwrap().payload;
        assert_eq!(kept.as_deref(), Some(counted.as_slice()), "exactly the one that was acknowledged");
    }
    engine.stop(Duration::from_secs(5)).await;
}
