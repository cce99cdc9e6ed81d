//! Matching times, lists in pages, counts.

use punctual_temporal_api::temporal::api::workflowservice::v1 as service;
use tonic::Code;

use super::{Front, creation, with_cron};

fn at(text: &str) -> Option<prost_types::Timestamp> {
    let seconds = text.parse::<jiff::Timestamp>().unwrap().as_second();
    Some(prost_types::Timestamp { seconds, nanos: 0 })
}

#[tokio::test]
async fn matching_times_leave_out_the_start_and_have_the_end() {
    let mut front = Front::new().await;
    front.create(with_cron("s", "@hourly")).await.unwrap();
    let mut asked = service::ListScheduleMatchingTimesRequest {
        namespace: "default".into(),
        schedule_id: "s".into(),
        start_time: at("2026-01-01T00:00:00Z"),
        end_time: at("2026-01-01T05:00:00Z"),
    };
    let times =
        front.client.list_schedule_matching_times(asked.clone()).await.unwrap().into_inner().start_time;
    assert_eq!(
        (times.len(), times[0], times[4]),
        (5, at("2026-01-01T01:00:00Z").unwrap(), asked.end_time.unwrap())
    );
    asked.end_time = at("2027-01-01T00:00:00Z");
    let times =
        front.client.list_schedule_matching_times(asked.clone()).await.unwrap().into_inner().start_time;
    assert_eq!(times.len(), 1_000);
    asked.end_time = None;
    let refused = front.client.list_schedule_matching_times(asked).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    front.bed.stop().await;
}

#[tokio::test]
async fn a_list_goes_on_page_by_page() {
    let mut front = Front::new().await;
    for number in 0..7 {
        front.create(with_cron(&format!("s{number}"), "@daily")).await.unwrap();
    }
    front.create(creation("gone")).await.unwrap();
    front.delete("gone").await.unwrap();
    let mut found = Vec::new();
    let mut asked = service::ListSchedulesRequest {
        namespace: "default".into(),
        maximum_page_size: 3,
        ..Default::default()
    };
    loop {
        let page = front.client.list_schedules(asked.clone()).await.unwrap().into_inner();
        assert!(page.schedules.len() <= 3);
        found.extend(page.schedules);
        if page.next_page_token.is_empty() {
            break;
        }
        asked.next_page_token = page.next_page_token;
    }
    let ids: Vec<_> = found.iter().map(|entry| entry.schedule_id.as_str()).collect();
    assert_eq!(ids, ["s0", "s1", "s2", "s3", "s4", "s5", "s6"]);
    let info = found[0].info.clone().unwrap();
    assert_eq!(info.workflow_type.unwrap().name, "Report");
    assert_eq!((info.future_action_times.len(), info.spec.unwrap().structured_calendar.len()), (5, 1));
    asked.next_page_token = b"odd".to_vec();
    assert_eq!(front.client.list_schedules(asked).await.unwrap_err().code(), Code::InvalidArgument);
    let counted =
        |query: &str| service::CountSchedulesRequest { namespace: "default".into(), query: query.into() };
    assert_eq!(front.client.count_schedules(counted("")).await.unwrap().into_inner().count, 7);
    let some = counted("ScheduleId IN ('s1', 's2', 'gone')");
    assert_eq!(front.client.count_schedules(some).await.unwrap().into_inner().count, 2);
    front.bed.stop().await;
}
