//! Every verb answers the same over gRPC and over HTTP.

use punctual_api::{json, v1};

use crate::bed::{Bed, at, creation, failure, on_file, result};
use crate::http;

/// Asks over gRPC, then over HTTP, and compares. Requests with an id are harmless to repeat, so both get one answer.
macro_rules! both {
    ($bed:expr, $service:ident.$method:ident, $rpc:literal, $asked:expr) => {{
        let asked = $asked;
        let over_grpc = $bed.client.$service.$method(asked.clone()).await.unwrap().into_inner();
        let over_http = http::call($bed.address, $rpc, &asked).await;
        assert_eq!(over_http.status, 200, "{} {}", $rpc, over_http.text());
        assert_eq!(json::to_value(&over_grpc).unwrap(), over_http.json(), $rpc);
        over_grpc
    }};
}

fn base<M: Default>() -> M {
    M::default()
}

const YEARLY: &str = r#""spec": { "crons": [{ "text": "0 9 1 1 *" }], "zone": "Europe/Berlin" }"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_verbs_that_change_a_schedule() {
    let folder = tempfile::tempdir().unwrap();
    let mut bed = Bed::with(on_file(&folder.path().join("a.db"))).await;
    let (namespace, schedule_id) = ("default".to_owned(), "s".to_owned());

    let queue = Some(v1::Queue { queue: "work".into(), ..base() });
    both!(
        bed,
        queues.create,
        "Queues/Create",
        v1::CreateQueueRequest { namespace: namespace.clone(), queue, ..base() }
    );
    let made = both!(bed, schedules.create, "Schedules/Create", creation("s", YEARLY));
    assert_eq!(made.revision, 1);

    let until = at("2099-01-01T00:00:00Z");
    let asked = v1::PauseScheduleRequest {
        namespace: namespace.clone(),
        schedule_id: schedule_id.clone(),
        request_id: "p".into(),
        note: "holidays".into(),
        until,
    };
    both!(bed, schedules.pause, "Schedules/Pause", asked);
    let paused = bed.describe("s").await;
    assert_eq!(paused.schedule.unwrap().state.unwrap().note, "holidays");
    let asked = v1::ResumeScheduleRequest {
        namespace: namespace.clone(),
        schedule_id: schedule_id.clone(),
        request_id: "r".into(),
        ..base()
    };
    both!(bed, schedules.resume, "Schedules/Resume", asked);

    let next = bed.describe("s").await.upcoming[0].nominal_time;
    let asked = v1::SkipOccurrenceRequest {
        namespace: namespace.clone(),
        schedule_id: schedule_id.clone(),
        request_id: "k".into(),
        nominal_time: next,
    };
    both!(bed, schedules.skip, "Schedules/Skip", asked);
    assert_eq!(bed.describe("s").await.skips, [next.unwrap()]);
    let asked = v1::UnskipOccurrenceRequest {
        namespace: namespace.clone(),
        schedule_id: schedule_id.clone(),
        request_id: "u".into(),
        nominal_time: next,
    };
    both!(bed, schedules.unskip, "Schedules/Unskip", asked);

    let asked = v1::TriggerScheduleRequest {
        namespace: namespace.clone(),
        schedule_id: schedule_id.clone(),
        request_id: "t".into(),
        input: Some(json::from_json(br#"{ "data": "aGk=" }"#).unwrap()),
        ..base()
    };
    let triggered = both!(bed, schedules.trigger, "Schedules/Trigger", asked);
    assert_eq!(triggered.request_keys[0].len(), 16);

    let backfill = v1::Backfill {
        from: at("2020-01-01T00:00:00Z"),
        through: at("2022-06-01T00:00:00Z"),
        note: "old".into(),
        ..base()
    };
    let asked = v1::BackfillScheduleRequest {
        namespace: namespace.clone(),
        schedule_id: schedule_id.clone(),
        request_id: "b".into(),
        backfill: Some(v1::Backfill {
            overlap: v1::overlap::Policy::BufferAll.into(),
            pace: Some(prost_types::Duration { seconds: 3600, nanos: 0 }),
            ..backfill
        }),
    };
    let made = both!(bed, schedules.backfill, "Schedules/Backfill", asked);
    let progress = bed.describe("s").await.backfills.remove(0);
    assert_eq!(
        (progress.backfill_id.as_str(), progress.backfill.unwrap().note.as_str()),
        (made.request_keys[0].as_str(), "old")
    );
    let asked = v1::CancelBackfillRequest {
        namespace: namespace.clone(),
        schedule_id: schedule_id.clone(),
        request_id: "c".into(),
        backfill_id: made.request_keys[0].clone(),
    };
    both!(bed, schedules.cancel_backfill, "Schedules/CancelBackfill", asked);
    assert!(bed.describe("s").await.backfills.is_empty());

    let asked = v1::DeleteScheduleRequest { namespace, schedule_id, request_id: "d".into() };
    both!(bed, schedules.delete, "Schedules/Delete", asked);
    assert_eq!(bed.describe("s").await.lifecycle(), v1::lifecycle::Word::Deleted);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_changes_what_its_mask_names() {
    let mut bed = Bed::new().await;
    bed.queue().await;
    bed.schedule("s", YEARLY).await;
    let before = bed.describe("s").await;

    let update = |mask: &str, schedule: &str, request: &str| -> v1::UpdateScheduleRequest {
        let text = format!(
            r#"{{ "namespace": "default", "schedule_id": "s", "request_id": "{request}", "schedule": {schedule}, "update_mask": "{mask}" }}"#
        );
        json::from_json(text.as_bytes()).unwrap()
    };
    let asked = update(
        "policies.overlap,action.queue.handler",
        r#"{ "policies": { "overlap": "allow_all", "concurrency": 9 }, "action": { "queue": { "handler": "other" } } }"#,
        "1",
    );
    both!(bed, schedules.update, "Schedules/Update", asked);
    let asked = update("remaining_actions", r#"{ "remaining_actions": 5 }"#, "2");
    both!(bed, schedules.update, "Schedules/Update", asked);
    let asked = update("", r#"{ "spec": { "crons": [{ "text": "@hourly" }] } }"#, "3");
    both!(bed, schedules.update, "Schedules/Update", asked);

    let after = bed.describe("s").await;
    let (mut expected, mut found) = (before.schedule.unwrap(), after.schedule.unwrap());
    assert_eq!(found.spec.take().unwrap().crons[0].text, "@hourly");
    expected.spec = None;
    expected.remaining_actions = Some(5);
    expected.policies.as_mut().unwrap().overlap = v1::overlap::Policy::AllowAll.into();
    let Some(v1::action::Kind::Queue(queue)) = &mut expected.action.as_mut().unwrap().kind else { panic!() };
    queue.handler = "other".into();
    assert_eq!(found, expected);
    assert_eq!(after.revision, 4);

    let stale =
        v1::UpdateScheduleRequest { expected_revision: Some(2), ..update("remaining_actions", "{}", "4") };
    let refused = bed.client.schedules.update(stale).await.unwrap_err();
    assert_eq!(refused.message(), "revision is 4, request expected 2");
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_verbs_that_look() {
    let mut bed = Bed::new().await;
    bed.queue().await;
    for id in ["a", "b", "with space/and-more".split('/').next().unwrap()] {
        bed.schedule(id, YEARLY).await;
    }
    bed.trigger("a").await;
    let run = bed.claim().await;
    // A manual start while a run is in progress is skipped by the policy: the ledger knows.
    for _ in 0..3 {
        bed.trigger("a").await;
    }

    let namespace = || "default".to_owned();
    let one = |id: &str| v1::DescribeScheduleRequest { namespace: namespace(), schedule_id: id.into() };
    let described = both!(bed, schedules.describe, "Schedules/Describe", one("a")).description.unwrap();
    assert_eq!(described.explanation, "At 09:00 on the 1st of January, in Europe/Berlin.");
    assert_eq!((described.in_progress.len(), described.counters.unwrap().skipped), (1, 3));
    assert_eq!(described.in_progress[0].run_id, run.run_id);
    both!(bed, schedules.describe, "Schedules/Describe", one("with space"));

    let page = both!(
        bed,
        schedules.list,
        "Schedules/List",
        v1::ListSchedulesRequest { namespace: namespace(), page_size: 2, ..base() }
    );
    assert_eq!(page.schedules.iter().map(|it| it.schedule_id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(page.schedules[0].queue, "work");
    let rest =
        v1::ListSchedulesRequest { namespace: namespace(), page_token: page.next_page_token, ..base() };
    assert_eq!(both!(bed, schedules.list, "Schedules/List", rest).schedules.len(), 1);
    let none = v1::ListSchedulesRequest { namespace: "nobody".into(), ..base() };
    assert_eq!(both!(bed, schedules.list, "Schedules/List", none), base());
    let counted = v1::CountSchedulesRequest {
        namespace: namespace(),
        queue: "work".into(),
        paused: Some(false),
        ..base()
    };
    assert_eq!(both!(bed, schedules.count, "Schedules/Count", counted).count, 3);

    let after = at("2026-01-01T00:00:00Z");
    let stored = v1::PreviewScheduleRequest {
        namespace: namespace(),
        schedule_id: "a".into(),
        after,
        count_max: 3,
        ..base()
    };
    let shown = both!(bed, schedules.preview, "Schedules/Preview", stored);
    assert_eq!((shown.occurrences[0].nominal_time, shown.more), (at("2026-01-01T08:00:00Z"), true));
    let spec = Some(
        json::from_json(br#"{ "crons": [{ "text": "30 2 * * *" }], "zone": "Europe/Berlin" }"#).unwrap(),
    );
    let unsaved = v1::PreviewScheduleRequest { spec, after, through: at("2026-01-05T00:00:00Z"), ..base() };
    let shown = both!(bed, schedules.preview, "Schedules/Preview", unsaved);
    assert_eq!((shown.occurrences.len(), shown.more), (4, false));
    assert!(shown.lints.iter().any(|lint| lint.code == "dst_gap"));

    let why = |time: &str| v1::WhyScheduleRequest {
        namespace: namespace(),
        schedule_id: "a".into(),
        time: at(time),
    };
    let answer = both!(bed, schedules.why, "Schedules/Why", why("2090-01-01T08:00:00Z"));
    assert_eq!(answer.explanation, "2090-01-01T08:00:00Z is coming: it will start then, as things are now");
    let answer = both!(bed, schedules.why, "Schedules/Why", why("2090-01-01T08:00:01Z"));
    assert!(
        answer
            .explanation
            .ends_with("the one before is 2090-01-01T08:00:00Z, the one after is 2091-01-01T08:00:00Z")
    );
    let answer = both!(bed, schedules.why, "Schedules/Why", why("2020-01-01T08:00:00Z"));
    assert_eq!(answer.verdict(), v1::verdict::Word::BeforeCreation);

    let mut token = String::new();
    let mut entries = Vec::new();
    for _ in 0..3 {
        let asked = v1::ScheduleLedgerRequest {
            namespace: namespace(),
            schedule_id: "a".into(),
            page_size: 1,
            page_token: token,
            ..base()
        };
        let page = both!(bed, schedules.ledger, "Schedules/Ledger", asked);
        entries.extend(page.entries);
        token = page.next_page_token;
    }
    assert_eq!(token, "");
    let mut keys: Vec<&str> = entries.iter().map(|entry| entry.request_key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 3, "{entries:?}");
    assert!(entries.iter().all(|entry| entry.reason() == v1::reason::Word::Overlap));

    let asked = v1::ListRunsRequest { namespace: namespace(), schedule_id: "a".into(), ..base() };
    let runs = both!(bed, runs.list, "Runs/List", asked).runs;
    assert_eq!(
        (runs.len(), runs[0].run_id.as_str(), runs[0].state()),
        (1, run.run_id.as_str(), v1::run_state::Word::Running)
    );
    both!(
        bed,
        runs.describe,
        "Runs/Describe",
        v1::DescribeRunRequest { namespace: namespace(), run_id: run.run_id.clone() }
    );
    both!(bed, queues.list, "Queues/List", v1::ListQueuesRequest { namespace: namespace(), ..base() });
    let queue = both!(
        bed,
        queues.describe,
        "Queues/Describe",
        v1::DescribeQueueRequest { namespace: namespace(), queue: "work".into() }
    );
    assert_eq!(queue.description.unwrap().running_count, 1);
    let info = http::send(bed.address, "GET", "/v1/info", b"").await.json();
    let mut over_grpc =
        json::to_value(&bed.client.server.info(v1::InfoRequest {}).await.unwrap().into_inner()).unwrap();
    over_grpc["now"] = info["now"].clone();
    assert_eq!(over_grpc, info);
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_stopped_listed_and_told_about() {
    let mut bed = Bed::new().await;
    bed.queue().await;
    bed.schedule("s", r#""policies": { "overlap": "allow_all" }"#).await;
    for _ in 0..3 {
        bed.trigger("s").await;
    }
    let (first, second, third) = (bed.claim().await, bed.claim().await, bed.claim().await);
    let namespace = || "default".to_owned();

    let asked = v1::CancelRunRequest { namespace: namespace(), run_id: first.run_id.clone(), ..base() };
    let answer = both!(bed, runs.cancel, "Runs/Cancel", asked);
    assert_eq!(answer.state(), v1::run_state::Word::Running);
    let asked = v1::TerminateRunRequest { namespace: namespace(), run_id: second.run_id.clone(), ..base() };
    assert_eq!(both!(bed, runs.terminate, "Runs/Terminate", asked).outcome(), v1::outcome::Word::Terminated);
    let done = bed.complete(&third, result(r#"{ "json": { "answer": 42 } }"#)).await;
    assert_eq!(done.state(), v1::report::Word::Recorded);
    let run = bed.run(&third.run_id).await;
    assert_eq!(run.result, Some(json::from_json(br#"{ "json": { "answer": 42 } }"#).unwrap()));
    assert_eq!(run.input, third.input);

    let closed =
        v1::ListRunsRequest { namespace: namespace(), state: v1::run_state::Word::Closed.into(), ..base() };
    assert_eq!(both!(bed, runs.list, "Runs/List", closed).runs.len(), 2);
    let failed =
        v1::ListRunsRequest { namespace: namespace(), outcome: v1::outcome::Word::Failed.into(), ..base() };
    assert!(both!(bed, runs.list, "Runs/List", failed).runs.is_empty());
    bed.complete(&first, failure("x")).await;
    assert_eq!(bed.run(&first.run_id).await.outcome(), v1::outcome::Word::Cancelled);
    let recent = bed.describe("s").await;
    assert_eq!((recent.recent.len(), recent.in_progress.len()), (3, 0));
    bed.stop().await;
}
