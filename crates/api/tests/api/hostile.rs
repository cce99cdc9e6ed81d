//! Whatever bytes come, the answer is a message or an error, never a panic.

use punctual_api::json::{NESTING_MAX, PAYLOAD_NESTING_MAX, check_payload, from_json, request, to_json};
use punctual_api::v1;

fn nested(levels: usize) -> String {
    format!(r#"{{ "json": {}1{} }}"#, "[".repeat(levels), "]".repeat(levels))
}

fn nested_objects(levels: usize) -> String {
    format!(r#"{{ "json": {}1{} }}"#, r#"{"a":"#.repeat(levels), "}".repeat(levels))
}

#[test]
fn deep_nesting_is_refused() {
    for text in [nested(100_000), nested_objects(100_000), "[".repeat(1_000_000), "{".repeat(NESTING_MAX + 1)]
    {
        let error = from_json::<v1::Payload>(text.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), format!("is nested more than {NESTING_MAX} levels deep"));
    }
    for levels in 0..=NESTING_MAX + 2 {
        for text in [nested(levels), nested_objects(levels)] {
            let Ok(payload) = from_json::<v1::Payload>(text.as_bytes()) else { continue };
            assert_eq!(check_payload(&payload).is_ok(), levels <= PAYLOAD_NESTING_MAX, "{levels}");
        }
    }
}

#[test]
fn an_allowed_payload_fits_where_payloads_are_deepest() {
    let payload = from_json::<v1::Payload>(nested_objects(PAYLOAD_NESTING_MAX).as_bytes()).unwrap();
    check_payload(&payload).unwrap();
    let queue = v1::QueueAction { input: Some(payload), ..Default::default() };
    let action = v1::Action { kind: Some(v1::action::Kind::Queue(queue)), ..Default::default() };
    let schedule = v1::Schedule { action: Some(action), ..Default::default() };
    let description = v1::ScheduleDescription { schedule: Some(schedule), ..Default::default() };
    let answer = v1::DescribeScheduleResponse { description: Some(description) };

    let text = to_json(&answer).unwrap();

    assert!(text.contains(r#""a":1"#));
    let bytes = prost::Message::encode_to_vec(&answer);
    assert_eq!(prost::Message::decode(&bytes[..]), Ok(answer));
}

#[test]
fn huge_numbers_are_refused_where_they_do_not_fit() {
    for number in ["1e400", "4294967296", "-1", "1.5", "99999999999999999999999999", "\"0x10\"", "NaN"] {
        let text = format!(r#"{{ "remaining_actions": {number} }}"#);
        assert!(from_json::<v1::Schedule>(text.as_bytes()).is_err(), "{number}");
    }
    for time in ["99999-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "0000-00-00T00:00:00Z", "", "\u{0}", "é"] {
        let text = serde_json::json!({ "start_time": time }).to_string();
        assert!(from_json::<v1::Spec>(text.as_bytes()).is_err(), "{time:?}");
    }
    for length in ["999999999999999999999s", "1h", "s", "-", "1.s.", "é"] {
        let text = serde_json::json!({ "jitter": length }).to_string();
        assert!(from_json::<v1::Spec>(text.as_bytes()).is_err(), "{length:?}");
    }
}

#[test]
fn what_is_no_text_is_refused() {
    let hostile: [&[u8]; 10] = [
        b"\xff\xfe{}",
        b"{\"note\": \"\xc3\"}",
        b"\0",
        b"{\"note\": \"\0\"}",
        b"{",
        b"{}{}",
        b"nul",
        b"\"",
        b"{\"note\": \"\\ud800\"}",
        b"{\"note\"}",
    ];
    for body in hostile {
        let answer = request::<v1::PauseScheduleRequest>([("a", ""); 0], [("b", ""); 0], body);
        assert!(answer.is_err(), "{body:?}");
        assert!(from_json::<v1::UpdateScheduleRequest>(body).is_err(), "{body:?}");
    }
    let escaped = from_json::<v1::PauseScheduleRequest>(br#"{ "note": "\u0000" }"#).unwrap();
    assert_eq!(escaped.note, "\0");
}

#[test]
fn hostile_masks_and_names_are_read_or_refused() {
    for mask in ["\"\"", "\"a\\u0000_b,,é\"", "5", "null", "[]", "{\"paths\": []}", "\"_\""] {
        let text = format!(r#"{{ "update_mask": {mask}, "schedule": {{ "spec": {{ "bad": 1 }} }} }}"#);
        assert!(from_json::<v1::UpdateScheduleRequest>(text.as_bytes()).is_err(), "{mask}");
    }
    let twice = br#"{ "update_mask": "a_b", "update_mask": "c_d" }"#;
    assert!(from_json::<v1::UpdateScheduleRequest>(twice).is_err());
    for name in ["", ".", "..", "schedule.", ".spec", "schedule.spec.crons.text", "\0", "schedule"] {
        let query = [(name, "x")];
        assert!(request::<v1::UpdateScheduleRequest>([("a", ""); 0], query, b"").is_err(), "{name:?}");
    }
}

#[test]
fn messages_that_cannot_be_printed_are_errors() {
    let far = prost_types::Timestamp { seconds: i64::MAX, nanos: -5 };
    let spec = v1::Spec { start_time: Some(far), ..Default::default() };
    assert!(to_json(&spec).is_err());
    let long = prost_types::Duration { seconds: i64::MIN, nanos: i32::MAX };
    assert!(to_json(&v1::Spec { jitter: Some(long), ..Default::default() }).is_err());
    let number = prost_types::Value { kind: Some(prost_types::value::Kind::NumberValue(f64::NAN)) };
    assert!(to_json(&v1::Payload { kind: Some(v1::payload::Kind::Json(number)) }).is_err());
    let mut deep = prost_types::Value::default();
    for _ in 0..200 {
        let list = prost_types::ListValue { values: vec![deep] };
        deep = prost_types::Value { kind: Some(prost_types::value::Kind::ListValue(list)) };
    }
    assert!(to_json(&v1::Payload { kind: Some(v1::payload::Kind::Json(deep)) }).is_err());
    let odd = v1::Cron { text: String::new(), dialect: 99 };
    assert_eq!(to_json(&odd).unwrap(), r#"{"dialect":99}"#);
}

/// The state of a small generator of pseudo-random numbers (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

#[test]
fn a_schedule_with_any_damage_is_read_or_refused() {
    let whole = crate::json::full_schedule().to_string().into_bytes();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut read = 0;
    for _ in 0..20_000 {
        let mut text = whole.clone();
        for _ in 0..=dice.below(3) {
            let place = dice.below(text.len());
            match dice.below(4) {
                0 => text[place] = dice.below(256) as u8,
                1 => text[place] = b"0123456789-+.eTZs:{}[]\",\\"[dice.below(24)],
                2 => _ = text.remove(place),
                _ => text.insert(place, b"0123456789-+.eTZs:{}[]\",\\"[dice.below(24)]),
            }
        }
        if let Ok(schedule) = from_json::<v1::Schedule>(&text) {
            read += 1;
            _ = to_json(&schedule);
        }
    }
    assert!(read > 100, "only {read} were read");
}

#[test]
fn times_and_durations_with_any_damage_are_read_or_refused() {
    let letters = "0123456789-+.eTZs: é".chars().collect::<Vec<_>>();
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let (mut times, mut lengths) = (0, 0);
    for _ in 0..20_000 {
        let damaged = |text: &str, dice: &mut Dice| {
            let mut text: Vec<char> = text.chars().collect();
            for _ in 0..=dice.below(2) {
                let place = dice.below(text.len());
                match dice.below(3) {
                    0 => text[place] = letters[dice.below(letters.len())],
                    1 => _ = text.remove(place),
                    _ => text.insert(place, letters[dice.below(letters.len())]),
                }
            }
            text.into_iter().collect::<String>()
        };
        let time = damaged("2026-03-30T07:00:00.123456789+01:00", &mut dice);
        let text = serde_json::json!({ "start_time": time }).to_string();
        times += usize::from(from_json::<v1::Spec>(text.as_bytes()).is_ok_and(|spec| to_json(&spec).is_ok()));
        let length = damaged("-315576000000.999999999s", &mut dice);
        let text = serde_json::json!({ "jitter": length }).to_string();
        lengths +=
            usize::from(from_json::<v1::Spec>(text.as_bytes()).is_ok_and(|spec| to_json(&spec).is_ok()));
    }
    assert!(times > 100 && lengths > 100, "{times} times and {lengths} durations were read");
}
