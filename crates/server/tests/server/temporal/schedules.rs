//! Create, describe, update, patch and delete.

use punctual_temporal_api::temporal::api::enums::v1::ScheduleOverlapPolicy;
use punctual_temporal_api::temporal::api::schedule::v1 as wire;
use punctual_temporal_api::temporal::api::workflowservice::v1::UpdateScheduleRequest;
use tonic::Code;

use super::{Front, creation, json, refusal, with_cron, workflow};
use punctual_temporal_api::temporal::api::common::v1 as common;
use punctual_temporal_api::{Fields, ScheduleAction};

#[tokio::test]
async fn a_schedule_comes_back_in_canonical_form() {
    let mut front = Front::new().await;
    let mut asked = with_cron("daily", "CRON_TZ=Europe/Berlin 30 9 * * MON-FRI # work");
    asked.memo = Some(common::Memo { fields: [("owner".to_owned(), json("\"ann\""))].into() });
    let token = front.create(asked.clone()).await.unwrap();

    let found = front.describe("daily").await.unwrap();

    assert_eq!(found.conflict_token, token);
    assert_eq!(found.memo, asked.memo);
    let schedule = found.schedule.unwrap();
    let spec = schedule.spec.unwrap();
    assert!(spec.cron_string.is_empty() && spec.calendar.is_empty());
    assert_eq!(spec.timezone_name, "Europe/Berlin");
    let calendar = &spec.structured_calendar[0];
    let range = |start, end, step| wire::Range { start, end, step };
    assert_eq!(calendar.second, [range(0, 0, 1)]);
    assert_eq!((&calendar.minute[..], &calendar.hour[..]), (&[range(30, 30, 1)][..], &[range(9, 9, 1)][..]));
    assert_eq!((&calendar.day_of_week[..], calendar.comment.as_str()), (&[range(1, 5, 1)][..], "work"));
    assert_eq!((&calendar.day_of_month[..], &calendar.year[..]), (&[range(1, 31, 1)][..], &[][..]));
    let policies = schedule.policies.unwrap();
    assert_eq!(policies.overlap_policy(), ScheduleOverlapPolicy::Skip);
    assert_eq!(policies.catchup_window.unwrap().seconds, 365 * 86_400);
    assert_eq!(schedule.state.unwrap(), wire::ScheduleState::default());
    let started = schedule.action.unwrap().started_workflow().unwrap().unwrap();
    assert_eq!((started.workflow_type, started.input), (workflow().workflow_type, workflow().input));
    let info = found.info.unwrap();
    assert_eq!(info.future_action_times.len(), 10);
    assert!(info.create_time.is_some() && info.update_time.is_none());
    front.bed.stop().await;
}

#[tokio::test]
async fn creating_again_is_answered_again_only_for_the_same_request() {
    let mut front = Front::new().await;
    let token = front.create(creation("one")).await.unwrap();
    assert_eq!(front.create(creation("one")).await.unwrap(), token);
    let mut other = creation("one");
    other.request_id = "another".into();
    let (code, _, details) = refusal(&front.create(other.clone()).await.unwrap_err());
    assert_eq!(
        (code, &details[..]),
        (Code::AlreadyExists, &["WorkflowExecutionAlreadyStartedFailure".into()][..])
    );
    front.delete("one").await.unwrap();
    front.create(other).await.unwrap();
    front.bed.stop().await;
}

fn update(found: &super::service::DescribeScheduleResponse, id: &str) -> UpdateScheduleRequest {
    UpdateScheduleRequest {
        namespace: "default".into(),
        schedule_id: id.into(),
        schedule: found.schedule.clone(),
        ..Default::default()
    }
}

#[tokio::test]
async fn an_update_replaces_everything_and_keeps_what_is_sent_back() {
    let mut front = Front::new().await;
    front.create(with_cron("s", "0 9 * * *")).await.unwrap();
    let found = front.describe("s").await.unwrap();
    front.update(update(&found, "s")).await.unwrap();
    let text = front.bed.describe("s").await.schedule.unwrap().spec.unwrap().crons.remove(0).text;
    assert_eq!(text, "0 9 * * *", "who sends back what was described loses no text");

    let mut change = update(&found, "s");
    let schedule = change.schedule.as_mut().unwrap();
    schedule.spec.as_mut().unwrap().structured_calendar[0].hour[0].start = 8;
    schedule.spec.as_mut().unwrap().structured_calendar[0].hour[0].end = 8;
    schedule.policies = Some(wire::SchedulePolicies {
        overlap_policy: ScheduleOverlapPolicy::BufferAll.into(),
        catchup_window: Some(prost_types::Duration { seconds: 3, nanos: 0 }),
        pause_on_failure: true,
        keep_original_workflow_id: true,
    });
    schedule.state = Some(wire::ScheduleState {
        notes: "until Monday".into(),
        paused: true,
        limited_actions: true,
        remaining_actions: 7,
    });
    front.update(change).await.unwrap();

    let again = front.describe("s").await.unwrap();
    let schedule = again.schedule.clone().unwrap();
    assert_eq!(schedule.spec.unwrap().structured_calendar[0].hour[0].start, 8);
    let policies = schedule.policies.unwrap();
    assert_eq!(policies.overlap_policy(), ScheduleOverlapPolicy::BufferAll);
    assert_eq!(policies.catchup_window.unwrap().seconds, 10, "the least window");
    assert!(policies.pause_on_failure && policies.keep_original_workflow_id);
    let state = schedule.state.unwrap();
    assert_eq!((state.notes.as_str(), state.paused, state.remaining_actions), ("until Monday", true, 7));
    assert!(again.info.unwrap().update_time.is_some());

    let mut bare = update(&found, "s");
    bare.schedule.as_mut().unwrap().state = None;
    bare.schedule.as_mut().unwrap().policies = None;
    front.update(bare).await.unwrap();
    let schedule = front.describe("s").await.unwrap().schedule.unwrap();
    assert_eq!(schedule.state.unwrap(), wire::ScheduleState::default(), "what is left out is empty");
    assert_eq!(schedule.policies.unwrap().overlap_policy(), ScheduleOverlapPolicy::Skip);
    front.bed.stop().await;
}

#[tokio::test]
async fn a_token_that_is_not_the_last_changes_nothing_and_none_changes_anything() {
    let mut front = Front::new().await;
    let first = front.create(creation("s")).await.unwrap();
    let found = front.describe("s").await.unwrap();
    let with = |token: &[u8]| UpdateScheduleRequest { conflict_token: token.into(), ..update(&found, "s") };
    front.update(with(&first)).await.unwrap();
    for stale in [&first[..], b"odd", &[0; 16], &[255; 16]] {
        let refused = refusal(&front.update(with(stale)).await.unwrap_err());
        assert_eq!(refused, (Code::FailedPrecondition, "mismatched conflict token".into(), vec![]));
    }
    front.update(with(&[])).await.unwrap();
    let last = front.describe("s").await.unwrap().conflict_token;
    let once = UpdateScheduleRequest { request_id: "u".into(), ..with(&last) };
    front.update(once.clone()).await.unwrap();
    front.update(once).await.unwrap();
    assert_ne!(front.describe("s").await.unwrap().conflict_token, last);
    front.bed.stop().await;
}

#[tokio::test]
async fn what_a_newer_client_said_survives_describe_and_update() {
    let mut front = Front::new().await;
    let mut asked = creation("s");
    let mut info = workflow();
    info.memo = Some(common::Memo { fields: [("m".to_owned(), json("1"))].into() });
    info.header = Some(common::Header { fields: [("h".to_owned(), json("2"))].into() });
    let mut action = ScheduleAction::start_workflow(&info);
    action.edit_workflow(|fields| fields.put(9_000, b"from the future".to_vec())).unwrap();
    action.0.put(70, b"also".to_vec());
    asked.schedule.as_mut().unwrap().action = Some(action);
    front.create(asked).await.unwrap();
    for _ in 0..2 {
        let found = front.describe("s").await.unwrap();
        let action = found.schedule.clone().unwrap().action.unwrap();
        assert_eq!(action.0.content(70).as_deref(), Some(b"also".as_slice()));
        let fields = Fields::read(&action.0.content(1).unwrap()).unwrap();
        assert_eq!(fields.content(9_000).as_deref(), Some(b"from the future".as_slice()));
        let shown = action.started_workflow().unwrap().unwrap();
        assert_eq!(
            (shown.memo, shown.header, shown.input),
            (info.memo.clone(), info.header.clone(), info.input.clone())
        );
        front.update(update(&found, "s")).await.unwrap();
    }
    front.bed.stop().await;
}

#[tokio::test]
async fn a_patch_is_all_or_nothing_and_once_for_its_request() {
    let mut front = Front::new().await;
    front.create(with_cron("s", "0 0 1 1 *")).await.unwrap();
    front.patch("s", "p0", wire::SchedulePatch::default()).await.unwrap();
    let pause = wire::SchedulePatch { pause: "why".into(), ..Default::default() };
    front.patch("s", "p1", pause).await.unwrap();
    let state = front.describe("s").await.unwrap().schedule.unwrap().state.unwrap();
    assert_eq!((state.notes.as_str(), state.paused), ("why", true));
    let resume = wire::SchedulePatch { unpause: "go on".into(), ..Default::default() };
    front.patch("s", "p2", resume).await.unwrap();
    let state = front.describe("s").await.unwrap().schedule.unwrap().state.unwrap();
    assert_eq!((state.notes.as_str(), state.paused), ("go on", false));

    let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
    let range = |from, to| wire::BackfillRequest {
        start_time: at(from),
        end_time: at(to),
        overlap_policy: ScheduleOverlapPolicy::AllowAll.into(),
    };
    let trigger = wire::TriggerImmediatelyRequest {
        overlap_policy: ScheduleOverlapPolicy::AllowAll.into(),
        scheduled_time: None,
    };
    let patch = wire::SchedulePatch {
        trigger_immediately: Some(trigger),
        backfill_request: vec![range(1_500_000_000, 1_600_000_000)],
        pause: "busy".into(),
        ..Default::default()
    };
    let upside_down =
        wire::SchedulePatch { backfill_request: vec![range(1_600_000_000, 1_500_000_000)], ..patch.clone() };
    assert_eq!(front.patch("s", "p3", upside_down).await.unwrap_err().code(), Code::InvalidArgument);
    let before = front.describe("s").await.unwrap();
    assert!(!before.schedule.unwrap().state.unwrap().paused, "nothing of it happened");
    for _ in 0..2 {
        front.patch("s", "p4", patch.clone()).await.unwrap();
    }
    let after = front.describe("s").await.unwrap();
    assert!(after.schedule.unwrap().state.unwrap().paused);
    let info = after.info.unwrap();
    // Both ends of the range are included: the first of January of 2018, 2019 and 2020; and the trigger, once.
    assert_eq!((info.action_count, info.running_workflows.len(), info.recent_actions.len()), (4, 4, 4));
    assert!(
        info.running_workflows.iter().any(|run| run.workflow_id.starts_with("report-2019-01-01T00:00:00Z"))
    );
    front.bed.stop().await;
}

#[tokio::test]
async fn an_initial_patch_acts_at_once_and_an_empty_one_does_nothing() {
    let mut front = Front::new().await;
    let mut asked = creation("empty");
    asked.initial_patch = Some(wire::SchedulePatch::default());
    front.create(asked).await.unwrap();
    assert_eq!(front.describe("empty").await.unwrap().info.unwrap().action_count, 0);
    let mut asked = creation("busy");
    asked.initial_patch = Some(wire::SchedulePatch {
        trigger_immediately: Some(Default::default()),
        pause: "from the start".into(),
        ..Default::default()
    });
    front.create(asked).await.unwrap();
    let found = front.describe("busy").await.unwrap();
    assert_eq!(found.info.unwrap().action_count, 1);
    assert_eq!(found.schedule.unwrap().state.unwrap().notes, "from the start");
    front.bed.stop().await;
}

#[tokio::test]
async fn what_is_deleted_is_not_found() {
    let mut front = Front::new().await;
    front.create(creation("s")).await.unwrap();
    front.delete("s").await.unwrap();
    let gone = [
        front.delete("s").await.unwrap_err(),
        front.describe("s").await.unwrap_err(),
        front.patch("s", "p", Default::default()).await.unwrap_err(),
        front.describe("never").await.unwrap_err(),
    ];
    for status in gone {
        let (code, _, details) = refusal(&status);
        assert_eq!((code, &details[..]), (Code::NotFound, &["NotFoundFailure".into()][..]));
    }
    front.bed.stop().await;
}
