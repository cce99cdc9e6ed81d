//! One value of each record, as the fixtures hold it. They never change: a later release reads what is on disks.

use jiff::{SignedDuration, Timestamp};
use punctual_core::{
    Action, Answer, BackfillRequest, BackfillSnapshot, BufferedStart, CatchupCount, Failure, LastCompletion,
    Lifecycle, NotStarted, OnResume, Origin, OverlapPolicy, PauseState, Phase, Policies, RecentRun,
    RecentSnapshot, RequestId, RequestKey, RetryPolicy, Revision, RunAction, Schedule, Snapshot, StartId,
    Stop, StopKind, Target, Timeouts,
};
use punctual_spec::Spec;
use punctual_store::record::{RunBody, TreeState};
use punctual_store::{QueueSettings, Rate, RunKey};

fn at(second: i64) -> Timestamp {
    Timestamp::new(1_800_000_000 + second, 5_000_007).expect("in range")
}

fn bytes(text: &str) -> std::sync::Arc<[u8]> {
    text.as_bytes().into()
}

fn id(nominal_ms: i64, request: u64) -> StartId {
    let origin = if request == 0 { Origin::Spec } else { Origin::Request(RequestKey(request)) };
    StartId { nominal_ms, origin }
}

fn start(number: i64, phase: Phase) -> BufferedStart {
    let overlap = OverlapPolicy::BufferAll;
    BufferedStart { id: id(number, number as u64), due_time: at(number), overlap, phase, input: None }
}

fn starts() -> Vec<BufferedStart> {
    let stop = Some(Stop { kind: StopKind::Terminate, attempts: 2, not_before: Some(at(9)) });
    let manual = Phase::Ready { attempt: 3, not_before: at(2), sent_at: Some(at(3)) };
    vec![
        start(0, Phase::Waiting),
        start(1, Phase::Deferred),
        BufferedStart { input: Some(bytes("input")), ..start(2, manual) },
        start(3, Phase::Doubtful { verdict: NotStarted::Dropped, ask_at: at(4) }),
        start(4, Phase::Running { started_at: at(4), seen_at: at(5), stop }),
    ]
}

pub fn state() -> TreeState<'static> {
    let request = BackfillRequest {
        from: at(-100),
        through: at(-50),
        overlap: Some(OverlapPolicy::AllowAll),
        pace: Some(SignedDuration::from_millis(1_500)),
        note: "last week".into(),
    };
    let snapshot = Snapshot {
        revision: Revision(12),
        lifecycle: Lifecycle::Completed { completed_at: at(60) },
        pause: Some(PauseState { paused_at: at(50), note: "holidays".into(), until: Some(at(70)) }),
        remaining_actions: Some(4),
        failures_in_a_row: 2,
        counters: [1, 20, 300, 4_000, 50_000, 600_000, u32::MAX],
        created_at: at(-1_000),
        last_event_at: at(55),
        clock: at(56),
        skips: vec![at(80), at(90)],
        requests: vec![(
            RequestId::new("create"),
            Answer { revision: Revision(1), keys: [RequestKey(7), RequestKey(u64::MAX)].into() },
        )]
        .into(),
        watermark: at(54),
        paced_until: at(57),
        starts: starts().into(),
        recent: vec![RecentRun::restore(RecentSnapshot { nominal_ms: -5, request: 0, packed: 77 })].into(),
        backfills: vec![BackfillSnapshot {
            key: RequestKey(7),
            request,
            watermark: at(-75),
            taken: 25,
            not_before: at(58),
            blocked_passes: 1,
        }],
    };
    TreeState { snapshot, runs: vec![(id(4, 4), RunKey(99)), (id(-5, 0), RunKey(100))].into() }
}

pub fn schedule() -> Schedule {
    Schedule {
        spec: Spec::new().cron("0 9 * * 1-5").zone("Europe/Berlin"),
        action: Action { target: Target::Outside, run_id_base: "nightly".into(), payload: bytes("payload") },
        policies: Policies {
            overlap: OverlapPolicy::TerminateOther,
            concurrency: 3,
            catchup_window: Some(SignedDuration::from_hours(2)),
            catchup_count: CatchupCount::Latest(5),
            catchup_pace: Some(SignedDuration::from_millis(250)),
            pause_after_failures: Some(4),
            on_resume: OnResume::CatchUp,
        },
        attachment: bytes(""),
    }
}

pub fn schedule_2() -> Schedule {
    Schedule { attachment: bytes("kept for a front door"), ..schedule() }
}

pub fn action() -> RunAction {
    RunAction {
        queue: "work".into(),
        handler: "report".into(),
        input: bytes("{\"day\":1}"),
        retry: RetryPolicy { attempts_max: 7, non_retryable: vec!["Fatal".into()], ..RetryPolicy::default() },
        timeouts: Timeouts {
            start_to_close: Some(SignedDuration::from_secs(30)),
            schedule_to_close: None,
            heartbeat: Some(SignedDuration::from_millis(1_500)),
        },
        ..RunAction::default()
    }
}

pub fn action_2() -> RunAction {
    RunAction { priority: -7, key: "customer 5".into(), call: Some(bytes("call")), ..action() }
}

pub fn completion() -> LastCompletion {
    LastCompletion { result: Some(bytes("result")), failure: Some(bytes("failure")) }
}

pub fn body() -> RunBody {
    let (namespace, schedule) = ("default".into(), "nightly".into());
    let name = "nightly-2027-01-15T08:00:00Z".into();
    RunBody { namespace, schedule, name, action: action(), last: completion() }
}

pub fn failure() -> Failure {
    let details = Some(bytes("line 7"));
    Failure { kind: "Oops".into(), message: "it broke".into(), details, retryable: false }
}

pub fn body_2() -> RunBody {
    RunBody { action: action_2(), ..body() }
}

pub fn queue() -> QueueSettings {
    QueueSettings { description: "nightly reports".into(), ..QueueSettings::default() }
}

pub fn queue_2() -> QueueSettings {
    QueueSettings {
        concurrency_max: Some(50),
        worker_concurrency_max: Some(5),
        rate: Some(Rate { starts_max: 100, per: SignedDuration::from_secs(60) }),
        key_concurrency_max: Some(1),
        key_rate: Some(Rate { starts_max: 3, per: SignedDuration::from_millis(1_500) }),
        priority_step: SignedDuration::from_secs(30),
        paused: true,
        ..queue()
    }
}
