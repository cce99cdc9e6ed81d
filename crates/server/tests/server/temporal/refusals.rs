//! What is refused, and in which words: clients decide by them.

use punctual_temporal_api::temporal::api::schedule::v1 as wire;
use punctual_temporal_api::temporal::api::workflowservice::v1::{
    CreateScheduleRequest, DescribeScheduleRequest,
};
use tonic::Code;

use super::{Front, creation, refusal, with_cron};

/// What is wrong with a request.
type Change = fn(&mut CreateScheduleRequest);

#[tokio::test]
async fn a_bad_request_is_an_invalid_argument() {
    let mut front = Front::new().await;
    let cases: [(&str, Change); 8] = [
        ("request id is not set", |asked| asked.request_id.clear()),
        ("request id has 1001 bytes", |asked| asked.request_id = "x".repeat(1_001)),
        ("Namespace not set", |asked| asked.namespace.clear()),
        ("schedule id must have", |asked| asked.schedule_id.clear()),
        ("action is not set", |asked| asked.schedule = None),
        ("is no overlap policy", |asked| {
            let policies = wire::SchedulePolicies { overlap_policy: 77, ..Default::default() };
            asked.schedule.as_mut().unwrap().policies = Some(policies);
        }),
        ("notes have 1001 bytes", |asked| {
            let patch = wire::SchedulePatch { pause: "x".repeat(1_001), ..Default::default() };
            asked.initial_patch = Some(patch);
        }),
        ("no mapping defined for search attribute Nobody", |asked| {
            let fields = [("Nobody".to_owned(), super::json("1"))].into();
            asked.search_attributes = Some(super::common::SearchAttributes { indexed_fields: fields });
        }),
    ];
    for (words, change) in cases {
        let mut asked = creation("s");
        change(&mut asked);
        let (code, message, details) = refusal(&front.create(asked).await.unwrap_err());
        assert_eq!((code, details), (Code::InvalidArgument, vec![]), "{words}");
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(front.describe("s").await.unwrap_err().code(), Code::NotFound);
    let patch = super::service::PatchScheduleRequest {
        namespace: "default".into(),
        schedule_id: "s".into(),
        ..Default::default()
    };
    assert_eq!(front.client.patch_schedule(patch).await.unwrap_err().code(), Code::InvalidArgument);
    front.bed.stop().await;
}

#[tokio::test]
async fn a_bad_spec_is_refused_in_the_words_that_clients_look_for() {
    let mut front = Front::new().await;
    let interval = |seconds, nanos, phase| {
        let length = |seconds, nanos| Some(prost_types::Duration { seconds, nanos });
        wire::IntervalSpec { interval: length(seconds, nanos), phase: length(phase, 0) }
    };
    let specs = [
        wire::ScheduleSpec { cron_string: vec!["often".into()], ..Default::default() },
        wire::ScheduleSpec { cron_string: vec!["0 25 * * *".into()], ..Default::default() },
        wire::ScheduleSpec {
            timezone_name: "Mars/Olympus".into(),
            cron_string: vec!["@daily".into()],
            ..Default::default()
        },
        wire::ScheduleSpec { interval: vec![interval(0, 0, 0)], ..Default::default() },
        wire::ScheduleSpec { interval: vec![interval(60, -1, 0)], ..Default::default() },
        wire::ScheduleSpec { interval: vec![interval(60, 0, 60)], ..Default::default() },
        wire::ScheduleSpec {
            calendar: vec![wire::CalendarSpec { hour: "1, 2".into(), ..Default::default() }],
            ..Default::default()
        },
        wire::ScheduleSpec {
            structured_calendar: vec![wire::StructuredCalendarSpec {
                hour: vec![wire::Range { start: 30, ..Default::default() }],
                ..Default::default()
            }],
            ..Default::default()
        },
    ];
    for spec in specs {
        let mut asked = creation("s");
        asked.schedule.as_mut().unwrap().spec = Some(spec.clone());
        let (code, message, _) = refusal(&front.create(asked).await.unwrap_err());
        assert_eq!(code, Code::InvalidArgument, "{spec:?}");
        assert!(message.starts_with("Invalid schedule spec: "), "{message}");
    }
    front.create(with_cron("s", "@hourly")).await.unwrap();
    front.bed.stop().await;
}

#[tokio::test]
async fn a_namespace_that_nobody_made_is_not_found() {
    let mut front = Front::new().await;
    let asked = DescribeScheduleRequest { namespace: "elsewhere".into(), schedule_id: "s".into() };
    let (code, _, details) = refusal(&front.client.describe_schedule(asked).await.unwrap_err());
    assert_eq!((code, &details[..]), (Code::NotFound, &["NamespaceNotFoundFailure".into()][..]));
    front.bed.stop().await;
}

#[tokio::test]
async fn what_is_not_served_is_unimplemented() {
    let mut front = Front::new().await;
    let refused =
        front.client.start_workflow_execution(super::service::StartWorkflowExecutionRequest::default()).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    assert!(refused.message().starts_with("StartWorkflowExecution is not served here"), "{refused}");
    front.bed.stop().await;
}
