//! Bad input is refused with its code and reason, nothing of it is kept, and the server goes on.

use punctual_api::{json, v1};
use tonic::Code;

use crate::bed::{Bed, creation};
use crate::http;

const SCHEDULES: &str = "/v1/namespaces/default/schedules";
const ACTION: &str = r#""action": { "queue": { "queue": "work", "handler": "h" } }"#;

fn schedule(more: &str) -> String {
    format!(r#"{{ "schedule_id": "bad", "schedule": {{ {ACTION}, {more} }} }}"#)
}

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

/// Method, path, body, then status, reason, and a part of field or message.
async fn http_table(bed: &Bed) {
    let calendars = vec!["{}"; 10_001].join(",");
    let crons = vec![r#"{ "text": "@daily" }"#; 10_001].join(",");
    let long = "x".repeat(1 << 20);
    let s = SCHEDULES.to_owned();
    let one = format!("{SCHEDULES}/good");
    let create = |body: String| ("POST", s.clone(), body);
    let get = |path: String| ("GET", path, String::new());
    let patch = |body: &str| ("PATCH", one.clone(), body.to_owned());
    let post = |rest: &str, body: &str| ("POST", format!("/v1/namespaces/default/{rest}"), body.to_owned());
    let id = |text: &str| {
        create(schedule("\"spec\": {}").replace("\"bad\"", &serde_json::to_string(text).unwrap()))
    };
    let table = [
        (create("{".into()), 400, "malformed", "line 1"),
        (create("[1]".into()), 400, "malformed", ""),
        (create("nothing".into()), 400, "malformed", ""),
        (create(nested(1_000)), 400, "malformed", "nested"),
        (create(schedule(r#""spek": {}"#)), 400, "invalid_field", "schedule.spek"),
        (create(schedule(r#""spec": { "jitter": 5 }"#)), 400, "invalid_field", "schedule.spec.jitter"),
        (create(schedule(r#""spec": { "crons": "x" }"#)), 400, "invalid_field", "crons"),
        (create(schedule(r#""policies": { "overlap": "never" }"#)), 400, "invalid_field", "policies.overlap"),
        (create(schedule(r#""remaining_actions": -1"#)), 400, "invalid_field", "remaining_actions"),
        (create(schedule(r#""spec": { "jitter": "-5s" }"#)), 400, "invalid_field", "schedule.spec.jitter"),
        (
            create(schedule(r#""policies": { "catchup_window": "-1s" }"#)),
            400,
            "invalid_field",
            "catchup_window",
        ),
        (create(schedule(r#""policies": { "catchup_window": "9s" }"#)), 400, "invalid_field", "at least 10s"),
        (create(schedule(r#""policies": { "concurrency": 0 }"#)), 400, "invalid_field", "concurrency"),
        (
            create(schedule(r#""spec": { "crons": [{ "text": "61 * * * *" }] }"#)),
            400,
            "invalid_spec",
            "schedule.spec",
        ),
        (create(schedule(r#""spec": { "intervals": [{}] }"#)), 400, "invalid_field", "intervals[0].every"),
        (create(schedule(r#""spec": { "intervals": [{ "every": "0.5s" }] }"#)), 400, "invalid_spec", "1s"),
        (
            create(schedule(r#""spec": { "zone": "Mars/Base", "crons": [{ "text": "@daily" }] }"#)),
            400,
            "unknown_zone",
            "Mars/Base",
        ),
        (create(schedule(r#""spec": { "zone_data": "AAAA" }"#)), 400, "unknown_zone", ""),
        (
            create(schedule(
                r#""spec": { "calendar_rules": [{ "calendar": "x" }], "crons": [{ "text": "@daily" }] }"#,
            )),
            400,
            "unknown_calendar",
            "x",
        ),
        (
            create(schedule(r#""spec": { "exclusion_dates": ["2026-02-30"] }"#)),
            400,
            "invalid_field",
            "exclusion_dates[0]",
        ),
        (create(schedule(r#""spec": { "crons": [{ "text": "0 0 31 2 *" }] }"#)), 400, "never_fires", ""),
        (
            create(schedule(r#""spec": { "calendars": [{ "hour": [{ "start": 5, "end": 3 }] }] }"#)),
            400,
            "invalid_field",
            "hour[0].end",
        ),
        (
            create(schedule(r#""spec": { "calendars": [{ "hour": [{ "start": 24 }] }] }"#)),
            400,
            "invalid_spec",
            "Hour",
        ),
        (
            create(schedule(&format!(r#""spec": {{ "calendars": [{calendars}] }}"#))),
            400,
            "spec_too_large",
            "",
        ),
        (create(schedule(&format!(r#""spec": {{ "crons": [{crons}] }}"#))), 400, "spec_too_large", ""),
        (
            create(schedule(r#""spec": { "start_time": "0000-01-01T00:00:00Z" }"#)),
            400,
            "invalid_field",
            "start_time",
        ),
        (
            create(r#"{ "schedule_id": "bad", "schedule": {} }"#.into()),
            400,
            "invalid_field",
            "schedule.action",
        ),
        (create(schedule("\"spec\": {}").replace("work", "nowhere")), 400, "unknown_queue", "nowhere"),
        (create(schedule("\"spec\": {}").replace("\"h\"", "\"\"")), 400, "invalid_field", "handler"),
        (
            create(
                schedule("\"spec\": {}")
                    .replace("\"h\"", r#""h", "input": { "json": NEST }"#)
                    .replace("NEST", &nested(25)),
            ),
            400,
            "invalid_field",
            "input",
        ),
        (
            create(
                schedule("\"spec\": {}")
                    .replace("\"h\"", &format!(r#""h", "input": {{ "json": "{long}" }}"#)),
            ),
            400,
            "payload_too_large",
            "1048576",
        ),
        (
            create(schedule("\"spec\": {}").replace("\"h\"", r#""h", "retry": { "attempts_max": 0 }"#)),
            400,
            "invalid_field",
            "attempts_max",
        ),
        (id(""), 400, "invalid_field", "schedule_id"),
        (id("a\0b"), 400, "invalid_request", "schedule id"),
        (id("a\nb"), 400, "invalid_request", "schedule id"),
        (id("a/b"), 400, "invalid_request", "schedule id"),
        (id(&long), 400, "invalid_request", "schedule id"),
        (id(" a"), 400, "invalid_request", "schedule id"),
        (get(format!("{s}/a%00b")), 404, "not_found", ""),
        (get(format!("{s}/a%2Fb")), 404, "not_found", ""),
        (get(format!("{s}/%FF")), 400, "malformed", "path"),
        (get(format!("{s}/nobody")), 404, "not_found", "nobody"),
        (get(format!("{s}?page_size=1001")), 400, "invalid_field", "page_size"),
        (get(format!("{s}?page_size=-1")), 400, "invalid_field", "page_size"),
        (get(format!("{s}?page_token=zz")), 400, "invalid_page_token", "page_token"),
        (get(format!("{s}?colour=red")), 400, "invalid_field", "colour"),
        (get("/v1/namespaces/default/runs?page_token=73".into()), 400, "invalid_page_token", ""),
        (get("/v1/namespaces/default/runs?state=gone".into()), 400, "invalid_field", "state"),
        (get("/v1/namespaces/default/runs/7x".into()), 400, "invalid_field", "run_id"),
        (get("/v1/namespaces/default/runs/777777".into()), 404, "not_found", ""),
        (get("/v1/namespaces/other/schedules/good".into()), 404, "not_found", ""),
        (get(format!("{s}/good/ledger?page_token=6c31")), 400, "invalid_page_token", ""),
        (get(format!("{s}/good/why")), 400, "invalid_field", "time"),
        (get(format!("{s}/good/preview?count_max=1001")), 400, "invalid_field", "count_max"),
        (patch(r#"{ "schedule": {}, "update_mask": "spec.cron" }"#), 400, "invalid_mask", "cron"),
        (patch(r#"{ "schedule": {}, "update_mask": "state" }"#), 400, "invalid_mask", "pause"),
        (
            patch(r#"{ "schedule": { "policies": {} }, "expected_revision": 9 }"#),
            409,
            "revision_mismatch",
            "revision is 1, request expected 9",
        ),
        (patch(r#"{ "schedule": { "spec": { "zone": "Mars/Base" } } }"#), 400, "unknown_zone", "Mars"),
        (
            patch(
                r#"{ "schedule": { "policies": { "concurrency": 0 } }, "update_mask": "policies.concurrency" }"#,
            ),
            400,
            "invalid_field",
            "schedule.policies.concurrency",
        ),
        (
            patch(r#"{ "schedule": {}, "update_mask": "action" }"#),
            400,
            "invalid_field",
            "schedule.action",
        ),
        (post("schedules/good/backfills", "{}"), 400, "invalid_field", "backfill.from"),
        (
            post(
                "schedules/good/backfills",
                r#"{ "backfill": { "from": "2026-01-02T00:00:00Z", "through": "2026-01-01T00:00:00Z" } }"#,
            ),
            400,
            "invalid_policy",
            "",
        ),
        (post("schedules/good/skip", r#"{ "nominal_time": "2026-01-02T00:00:01Z" }"#), 404, "not_found", ""),
        (("DELETE", format!("{s}/good/backfills/xyz"), String::new()), 400, "invalid_field", "backfill_id"),
        (("DELETE", format!("{s}/good/backfills/{}", "0".repeat(16)), String::new()), 404, "not_found", ""),
        (
            post("schedules/good/pause", &format!(r#"{{ "note": "{}" }}"#, "n".repeat(1_001))),
            429,
            "limit_reached",
            "note",
        ),
        (
            post("schedules/good/pause", &format!(r#"{{ "request_id": "{}" }}"#, "n".repeat(1_001))),
            429,
            "limit_reached",
            "request id",
        ),
        (post("schedules/good/pause", r#"{ "schedule_id": "other" }"#), 400, "invalid_field", "schedule_id"),
        (post("queues/work/claim", "{}"), 400, "invalid_field", "worker_id"),
        (post("queues/work/claim", r#"{ "worker_id": "w", "wait": "61s" }"#), 400, "invalid_field", "wait"),
        (
            post("queues/work/claim", r#"{ "worker_id": "w", "runs_max": 1001 }"#),
            400,
            "invalid_request",
            "1001",
        ),
        (
            post("queues/work/claim", r#"{ "worker_id": "w", "lease": "0.1s" }"#),
            400,
            "invalid_field",
            "lease",
        ),
        (post("queues/nowhere/claim", r#"{ "worker_id": "w" }"#), 404, "not_found", "nowhere"),
        (post("workers/w/complete", r#"{ "runs": [{ "run_id": "1" }] }"#), 400, "invalid_field", "runs[0]"),
        (
            post("queues", r#"{ "queue": { "queue": "q", "concurrency_max": 0 } }"#),
            400,
            "invalid_request",
            "concurrency_max",
        ),
        (
            post("queues", r#"{ "queue": { "queue": "q", "rate": { "starts_max": 1 } } }"#),
            400,
            "invalid_field",
            "queue.rate.per",
        ),
        (
            post("queues", r#"{ "queue": { "queue": "q", "key_rate": { "starts_max": 1, "per": "-1s" } } }"#),
            400,
            "invalid_field",
            "queue.key_rate.per",
        ),
        (post("queues/work/runs", r#"{ "runs": [] }"#), 400, "invalid_request", "runs"),
        (post("queues/work/runs", r#"{ "runs": [{ "handler": "" }] }"#), 400, "invalid_field", "runs[0].handler"),
        (
            post("queues/work/runs", r#"{ "runs": [{ "handler": "h", "priority": 101 }] }"#),
            400,
            "invalid_field",
            "runs[0].priority",
        ),
        (
            post("queues/work/runs", r#"{ "runs": [{ "handler": "h", "delay": "1s", "not_before": "2030-01-01T00:00:00Z" }] }"#),
            400,
            "invalid_field",
            "runs[0].delay",
        ),
        (post("queues/nowhere/runs", r#"{ "runs": [{ "handler": "h" }] }"#), 404, "not_found", "nowhere"),
        (post("queues/punctual.calls/runs", r#"{ "runs": [{ "handler": "h" }] }"#), 400, "invalid_field", "queue"),
        (
            create(r#"{ "schedule_id": "bad", "schedule": { "action": { "http": { "url": "ftp://example.com" } } } }"#.into()),
            400,
            "invalid_field",
            "schedule.action.http.url",
        ),
        (
            create(r#"{ "schedule_id": "bad", "schedule": { "action": { "http": { "url": "http://169.254.169.254/latest" } } } }"#.into()),
            403,
            "not_allowed",
            "schedule.action.http.url",
        ),
        (
            create(r#"{ "schedule_id": "bad", "schedule": { "action": { "command": { "argv": ["true"] } } } }"#.into()),
            403,
            "not_allowed",
            "schedule.action.command",
        ),
        (post("queues", r#"{ "queue": { "queue": "a\nb" } }"#), 400, "invalid_request", "queue name"),
        (("PUT", s.clone(), String::new()), 405, "method_not_allowed", "POST, GET"),
        (get("/v1/nothing".into()), 404, "unknown_path", "openapi"),
        (post("schedules", ""), 400, "invalid_field", "schedule_id"),
    ];
    let mut wrong = Vec::new();
    for ((method, path, body), status, reason, part) in table {
        let answer = http::send(bed.address, method, &path, body.as_bytes()).await;
        let error = answer.json();
        let text = format!("{} {}", error["field"], error["message"]);
        let expected =
            (answer.status, error["reason"].as_str()) == (status, Some(reason)) && text.contains(part);
        // An error stays short, whatever it is about.
        if !expected || answer.body.len() > 5_000 {
            let shown: String = format!("{method} {path} {body}").chars().take(300).collect();
            wrong.push(format!(
                "{shown}\n  expected {status} {reason} {part}, found {} {error}",
                answer.status
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

async fn grpc_table(bed: &mut Bed) {
    let base = || creation("bad", "");
    let with = |change: &dyn Fn(&mut v1::CreateScheduleRequest)| {
        let mut asked = base();
        change(&mut asked);
        asked
    };
    let spec = |asked: &mut v1::CreateScheduleRequest, spec: v1::Spec| {
        asked.schedule.as_mut().unwrap().spec = Some(spec);
    };
    let input = |asked: &mut v1::CreateScheduleRequest, kind: prost_types::value::Kind| {
        let Some(v1::action::Kind::Queue(queue)) =
            &mut asked.schedule.as_mut().unwrap().action.as_mut().unwrap().kind
        else {
            panic!()
        };
        queue.input = Some(v1::Payload {
            kind: Some(v1::payload::Kind::Json(prost_types::Value { kind: Some(kind) })),
        });
    };
    let deep = (0..60).fold(
        prost_types::Value { kind: Some(prost_types::value::Kind::BoolValue(true)) },
        |inner, _| {
            let list = prost_types::ListValue { values: vec![inner] };
            prost_types::Value { kind: Some(prost_types::value::Kind::ListValue(list)) }
        },
    );
    let table = [
        (with(&|asked| asked.schedule_id.clear()), Code::InvalidArgument, "invalid_field"),
        (with(&|asked| asked.schedule_id = "a\nb".into()), Code::InvalidArgument, "invalid_request"),
        (with(&|asked| asked.schedule_id = "x".repeat(1 << 20)), Code::InvalidArgument, "invalid_request"),
        (with(&|asked| asked.namespace = "a/b".into()), Code::InvalidArgument, "invalid_request"),
        (with(&|asked| asked.schedule = None), Code::InvalidArgument, "invalid_field"),
        (
            with(&|asked| spec(asked, v1::Spec { zone: "Mars".into(), ..Default::default() })),
            Code::InvalidArgument,
            "unknown_zone",
        ),
        (
            with(&|asked| spec(asked, v1::Spec { gap: 77, ..Default::default() })),
            Code::InvalidArgument,
            "invalid_field",
        ),
        (
            with(&|asked| {
                spec(
                    asked,
                    v1::Spec { calendars: vec![v1::Calendar::default(); 10_001], ..Default::default() },
                );
            }),
            Code::InvalidArgument,
            "spec_too_large",
        ),
        (
            with(&|asked| {
                spec(
                    asked,
                    v1::Spec {
                        start_time: Some(prost_types::Timestamp { seconds: i64::MIN, nanos: -1 }),
                        ..Default::default()
                    },
                );
            }),
            Code::InvalidArgument,
            "invalid_field",
        ),
        (
            with(&|asked| {
                spec(
                    asked,
                    v1::Spec {
                        jitter: Some(prost_types::Duration { seconds: -1, nanos: 0 }),
                        ..Default::default()
                    },
                );
            }),
            Code::InvalidArgument,
            "invalid_field",
        ),
        (
            with(&|asked| input(asked, prost_types::value::Kind::NumberValue(f64::INFINITY))),
            Code::InvalidArgument,
            "invalid_field",
        ),
        (with(&|asked| input(asked, deep.kind.clone().unwrap())), Code::InvalidArgument, "invalid_field"),
        (
            with(&|asked| input(asked, prost_types::value::Kind::StringValue("x".repeat(1 << 20)))),
            Code::InvalidArgument,
            "payload_too_large",
        ),
    ];
    for (asked, code, reason) in table {
        let shown: String = format!("{asked:?}").chars().take(300).collect();
        let status = bed.client.schedules.create(asked).await.unwrap_err();
        let found = status.metadata().get("punctual-reason").map(|reason| reason.to_str().unwrap());
        // A message that is nested beyond what protobuf reads never reaches the table.
        let undecodable = status.message().contains("recursion limit");
        assert!(undecodable || (status.code(), found) == (code, Some(reason)), "{shown}: {status:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_and_nothing_of_it_is_kept() {
    let mut bed = Bed::new().await;
    bed.queue().await;
    bed.schedule("good", "").await;

    http_table(&bed).await;
    grpc_table(&mut bed).await;

    let listed = bed.client.schedules.list(v1::ListSchedulesRequest::default()).await.unwrap().into_inner();
    let ids: Vec<&str> = listed.schedules.iter().map(|it| it.schedule_id.as_str()).collect();
    assert_eq!((ids, listed.schedules[0].revision), (vec!["good"], 1));
    let queues = bed.client.queues.list(v1::ListQueuesRequest::default()).await.unwrap().into_inner();
    // The one that is there from the start, and the bed's.
    assert_eq!(queues.queues.len(), 2);
    bed.schedule("after all that", "").await;
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_taken_and_a_closed_schedule_are_told() {
    let mut bed = Bed::new().await;
    bed.queue().await;
    bed.schedule("s", "").await;
    let mut again = creation("s", "");
    again.request_id = "another".into();
    let answer = http::call(bed.address, "Schedules/Create", &again).await;
    assert_eq!((answer.status, answer.json()["reason"].as_str()), (409, Some("already_exists")));
    assert_eq!(bed.client.schedules.create(again).await.unwrap_err().code(), Code::AlreadyExists);

    let gone = v1::DeleteScheduleRequest { schedule_id: "s".into(), ..Default::default() };
    bed.client.schedules.delete(gone.clone()).await.unwrap();
    let status = bed.client.schedules.delete(gone).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, "the schedule is closed"));
    bed.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_details_of_a_grpc_status_are_the_body_of_the_http_answer() {
    let mut bed = Bed::new().await;
    let asked = v1::DescribeScheduleRequest { namespace: "default".into(), schedule_id: "nobody".into() };
    let over_http = http::call(bed.address, "Schedules/Describe", &asked).await.json();
    let status = bed.client.schedules.describe(asked).await.unwrap_err();
    // google.rpc.Status: the third field holds an Any, whose second field is the message.
    let details = status.details();
    let expected: v1::Error = json::from_json(over_http.to_string().as_bytes()).unwrap();
    let bytes = prost::Message::encode_to_vec(&expected);
    assert!(details.windows(bytes.len()).any(|part| part == bytes), "{details:?}");
    assert_eq!(expected.message, "schedule \"nobody\" is not found");
    bed.stop().await;
}
