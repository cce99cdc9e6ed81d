//! Every message can be written and read as JSON, and what is not in the contract is refused by name.

use punctual_api::json::{from_json, request, to_json, to_value};
use punctual_api::v1;
use serde_json::{Value, json};

const NONE: [(&str, &str); 0] = [];

/// A schedule that uses every field of the contract.
pub(crate) fn full_schedule() -> Value {
    let calendar = json!({
        "second": [{ "start": 0 }],
        "minute": [{ "start": 0, "end": 59, "step": 15 }],
        "hour": [{ "start": 9, "end": 17 }],
        "day_of_month": [{ "start": 1 }],
        "day_of_month_terms": [
            { "last_day": 3 }, { "nearest_weekday": 15 }, { "last_weekday": {} },
            { "business_day": -1 }, { "nearest_business_day": 10 },
        ],
        "month": [{ "start": 1, "end": 12 }],
        "day_of_week": [{ "start": 0, "end": 6 }],
        "day_of_week_terms": [{ "nth": { "weekday": 5, "nth": 3 } }, { "last": 5 }],
        "year": [{ "start": 2026 }],
        "comment": "office hours",
    });
    let text = json!({
        "second": "0", "minute": "0", "hour": "9-17/2", "day_of_month": "*", "month": "jan-mar",
        "day_of_week": "mon-fri", "year": "2026", "comment": "the same as text",
    });
    json!({
        "spec": {
            "calendars": [calendar.clone()],
            "calendar_texts": [text.clone()],
            "crons": [{ "text": "0 9 * * MON-FRI", "dialect": "unix" }, { "text": "@daily" }],
            "intervals": [
                { "every": "3600s", "phase": "60s" },
                { "every": "5400.500s", "anchor": "2026-01-05T09:00:00Z" },
            ],
            "times": ["2026-12-24T18:00:00Z"],
            "exclusions": [calendar],
            "exclusion_texts": [text],
            "exclusion_crons": [{ "text": "0 0 12 ? * *", "dialect": "quartz" }],
            "exclusion_dates": ["2026-12-25"],
            "calendar_rules": [{ "calendar": "bank", "mode": "exclude", "roll": "forward" }],
            "business_calendar": "bank",
            "start_time": "2026-01-01T00:00:00Z",
            "end_time": "2027-01-01T00:00:00Z",
            "jitter": "30s",
            "zone": "Europe/Berlin",
            "zone_data": "VFppZg==",
            "gap": "after",
            "fold": "first",
        },
        "action": {
            "queue": {
                "queue": "reports",
                "handler": "nightly",
                "input": { "json": { "n": 1, "f": 1.5, "list": [null, true, "x"], "o": {} } },
                "retry": {
                    "attempts_max": 5, "backoff_first": "1s", "backoff_factor": 2.5, "backoff_max": "60s",
                    "non_retryable": ["card_declined"],
                },
                "timeouts": { "start_to_close": "600s", "schedule_to_close": "3600s", "heartbeat": "30s" },
                "priority": -5,
                "key": "customer-7",
            },
            "run_id_base": "nightly",
        },
        "policies": {
            "overlap": "buffer_one",
            "concurrency": 2,
            "catchup_window": "86400s",
            "catchup_count": 3,
            "catchup_pace": "5s",
            "pause_after_failures": 4,
            "on_resume": "catch_up",
        },
        "state": { "paused": true, "note": "not yet", "until": "2026-06-01T00:00:00Z" },
        "remaining_actions": 100,
    })
}

#[test]
fn a_full_schedule_is_the_same_after_reading_and_printing() {
    let given = full_schedule();

    let schedule: v1::Schedule = from_json(given.to_string().as_bytes()).unwrap();
    let printed = to_value(&schedule).unwrap();

    assert_eq!(printed, given);
    assert_eq!(from_json::<v1::Schedule>(to_json(&schedule).unwrap().as_bytes()).unwrap(), schedule);
}

#[test]
fn the_full_schedule_leaves_no_field_of_the_spec_out() {
    let given = full_schedule();
    let is_there = |value: &Value, descriptor: prost_reflect::MessageDescriptor| {
        let fields = descriptor.fields().map(|field| field.name().to_owned());
        fields.filter(|name| value.get(name).is_none()).collect::<Vec<_>>()
    };
    let spec = &given["spec"];
    let of = punctual_api::descriptors::message::<v1::Spec>;
    assert_eq!(is_there(spec, of()), Vec::<String>::new());
    let of = punctual_api::descriptors::message::<v1::Calendar>;
    assert_eq!(is_there(&spec["calendars"][0], of()), Vec::<String>::new());
    let of = punctual_api::descriptors::message::<v1::Policies>;
    assert_eq!(is_there(&given["policies"], of()), Vec::<String>::new());
}

#[test]
fn an_unknown_field_is_refused_by_name_and_place() {
    let body = b"{\n  \"schedule\": { \"spec\": { \"crns\": [] } }\n}";

    let error = from_json::<v1::CreateScheduleRequest>(body).unwrap_err();

    assert_eq!(error.field(), "schedule.spec.crns");
    assert_eq!(error.message(), "unknown field of Spec");
    assert_eq!(error.position().unwrap().0, 2);
    let error = from_json::<v1::Spec>(br#"{ "crons": [{ "text": "@daily" }, { "txt": "" }] }"#).unwrap_err();
    assert_eq!((error.field(), error.message()), ("crons[1].txt", "unknown field of Cron"));
}

#[test]
fn a_wrong_type_is_refused_with_what_was_expected() {
    let refused = |body: &str| {
        let error = from_json::<v1::Schedule>(body.as_bytes()).unwrap_err();
        format!("{}: {}", error.field(), error.message())
    };
    assert_eq!(
        refused(r#"{ "remaining_actions": "many" }"#),
        "remaining_actions: invalid digit found in string, expected a whole number from 0 to 4294967295"
    );
    assert_eq!(
        refused(r#"{ "state": { "paused": 1 } }"#),
        "state.paused: invalid type: integer `1`, expected true or false"
    );
    assert_eq!(
        refused(r#"{ "policies": { "overlap": "queue" } }"#),
        "policies.overlap: unrecognized enum value 'queue', expected one of skip, buffer_one, buffer_all, \
         cancel_other, terminate_other, allow_all"
    );
    assert!(refused(r#"{ "spec": { "times": ["tomorrow"] } }"#).starts_with("spec.times[0]: "));
    assert!(refused(r#"{ "spec": { "times": ["tomorrow"] } }"#).ends_with("such as 2026-03-30T07:00:00Z"));
    assert!(refused(r#"{ "spec": { "jitter": 5 } }"#).ends_with("expected seconds such as 90s or 0.5s"));
    assert_eq!(
        refused(r#"{ "remaining_actions": 1.5 }"#),
        "remaining_actions: expected a whole number from 0 to 4294967295"
    );
    assert_eq!(refused(r#"{ "spec": 5 }"#), "spec: invalid type: integer `5`, expected an object");
    assert!(refused(r#"{ "spec": { "crons": "@daily" } }"#).ends_with("expected a list"));
    assert!(refused(r#"{ "spec": { "crons": ["@daily"] } }"#).ends_with("expected an object"));
    assert!(refused("[]").contains("expected a map"));
}

#[test]
fn plain_numbers_booleans_and_outer_lists_are_always_printed() {
    let counters = v1::Counters { started: 1 << 40, ..Default::default() };
    assert_eq!(
        to_value(&counters).unwrap(),
        json!({
            "started": 1_u64 << 40, "skipped": 0, "missed": 0, "dropped": 0, "paused": 0, "exhausted": 0,
            "superseded": 0,
        })
    );
    assert_eq!(to_value(&v1::ListRunsResponse::default()).unwrap(), json!({ "runs": [] }));
    assert_eq!(to_value(&v1::ScheduleState::default()).unwrap(), json!({ "paused": false }));
    assert_eq!(to_value(&v1::Schedule::default()).unwrap(), json!({}));
}

#[test]
fn path_query_and_body_make_one_request() {
    let path = [("namespace", "default"), ("schedule_id", "nightly")];
    let body = br#"{ "schedule": { "policies": { "concurrency": 2 } },
        "update_mask": "policies.concurrency,remaining_actions", "expected_revision": 7 }"#;

    let update: v1::UpdateScheduleRequest = request(path, [("request_id", "r1")], body).unwrap();

    assert_eq!(update.schedule_id, "nightly");
    assert_eq!(update.request_id, "r1");
    assert_eq!(update.expected_revision, Some(7));
    assert_eq!(update.update_mask.as_ref().unwrap().paths, ["policies.concurrency", "remaining_actions"]);
    assert_eq!(to_value(&update).unwrap()["update_mask"], "policies.concurrency,remaining_actions");
}

#[test]
fn a_query_knows_booleans_numbers_words_times_masks_and_nested_fields() {
    let query = [("page_size", "50"), ("paused", "false"), ("state", "open"), ("prefix", "a b")];
    let list: v1::ListSchedulesRequest = request(NONE, query, b"").unwrap();
    assert_eq!((list.page_size, list.paused, list.prefix.as_str()), (50, Some(false), "a b"));
    assert_eq!(list.state(), v1::lifecycle::Word::Open);

    let why: v1::WhyScheduleRequest = request(NONE, [("time", "2026-03-30T07:00:00Z")], b"").unwrap();
    assert_eq!(why.time.unwrap().seconds, 1_774_854_000);

    let nested = [("schedule.policies.overlap", "allow_all"), ("update_mask", "remaining_actions")];
    let update: v1::UpdateScheduleRequest = request(NONE, nested, b"").unwrap();
    assert_eq!(update.schedule.unwrap().policies.unwrap().overlap(), v1::overlap::Policy::AllowAll);
    assert_eq!(update.update_mask.unwrap().paths, ["remaining_actions"]);

    let dates = [("exclusion_dates", "2026-12-25"), ("exclusion_dates", "2026-12-26")];
    let spec: v1::Spec = request(NONE, dates, b"").unwrap();
    assert_eq!(spec.exclusion_dates, ["2026-12-25", "2026-12-26"]);
}

#[test]
fn contradictions_between_path_query_and_body_are_refused() {
    let refused = |path: &[(&str, &str)], query: &[(&str, &str)], body: &str| {
        let error =
            request::<v1::PauseScheduleRequest>(path.iter().copied(), query.iter().copied(), body.as_bytes());
        error.unwrap_err().to_string()
    };
    let path = [("schedule_id", "a")];
    assert_eq!(
        refused(&path, &[], r#"{ "schedule_id": "b" }"#),
        "schedule_id: differs between the path and the rest"
    );
    assert_eq!(
        refused(&[], &[("note", "a")], r#"{ "note": "a" }"#),
        "note: is given in the query and in the body"
    );
    assert_eq!(refused(&[], &[("note", "a"), ("note", "b")], ""), "note: is given more than once");
    assert_eq!(refused(&[], &[("nte", "a")], ""), "nte: unknown field of PauseScheduleRequest");
    assert_eq!(refused(&[], &[("note.x", "a")], ""), "note.x: note has no fields");
    assert!(refused(&[], &[("until", "soon")], "").starts_with("until: "));
    let same: v1::PauseScheduleRequest = request(path, NONE, br#"{ "schedule_id": "a" }"#).unwrap();
    assert_eq!(same.schedule_id, "a");
}
