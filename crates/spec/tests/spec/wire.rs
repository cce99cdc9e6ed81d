//! Temporal's JSON form of a spec, to and from ours, as the published cases write it.

use jiff::{SignedDuration, Timestamp};
use punctual_spec::{Calendar, CalendarText, Error, Interval, Range, Spec};
use serde_json::{Map, Value, json};

/// Reads a spec; fails only where the wire form itself can be wrong.
pub fn spec(value: &Value) -> Result<Spec, Error> {
    let mut spec = Spec::new();
    for key in value.as_object().unwrap().keys() {
        let known = [
            "structuredCalendar",
            "calendar",
            "cronString",
            "interval",
            "excludeStructuredCalendar",
            "excludeCalendar",
            "startTime",
            "endTime",
            "jitter",
            "timezoneName",
        ];
        assert!(known.contains(&key.as_str()), "{key} is not read");
    }
    spec.calendars = list(value, "structuredCalendar").map(calendar).collect();
    spec.calendar_texts = list(value, "calendar").map(calendar_text).collect();
    spec.exclusions = list(value, "excludeStructuredCalendar").map(calendar).collect();
    spec.exclusion_texts = list(value, "excludeCalendar").map(calendar_text).collect();
    for text in list(value, "cronString") {
        spec = spec.cron(text.as_str().unwrap());
    }
    for interval in list(value, "interval") {
        let every = wire_duration(&interval["interval"]);
        spec.intervals.push(Interval::from_wire(every, wire_duration(&interval["phase"]))?);
    }
    spec.start_time = value["startTime"].as_str().map(instant);
    spec.end_time = value["endTime"].as_str().map(instant);
    let (seconds, nanos) = wire_duration(&value["jitter"]);
    spec.jitter = SignedDuration::new(seconds, nanos);
    spec.zone = value["timezoneName"].as_str().unwrap_or("").to_owned();
    Ok(spec)
}

/// Writes a canonical spec; `filled` as describe shows it, with every end and step.
pub fn print(spec: &Spec, filled: bool) -> Value {
    assert!(spec.crons.is_empty() && spec.calendar_texts.is_empty() && spec.exclusion_texts.is_empty());
    let mut wire = Map::new();
    let mut put = |key: &str, items: Vec<Value>| {
        if !items.is_empty() {
            wire.insert(key.into(), items.into());
        }
    };
    put("structuredCalendar", spec.calendars.iter().map(|c| print_calendar(c, filled)).collect());
    put("excludeStructuredCalendar", spec.exclusions.iter().map(|c| print_calendar(c, filled)).collect());
    put("interval", spec.intervals.iter().map(print_interval).collect());
    if let Some(time) = spec.start_time {
        wire.insert("startTime".into(), time.to_string().into());
    }
    if let Some(time) = spec.end_time {
        wire.insert("endTime".into(), time.to_string().into());
    }
    if !spec.jitter.is_zero() {
        wire.insert("jitter".into(), print_duration(spec.jitter));
    }
    if !spec.zone.is_empty() {
        wire.insert("timezoneName".into(), spec.zone.clone().into());
    }
    Value::Object(wire)
}

pub fn instant(text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value[key].as_array().into_iter().flatten()
}

fn ranges(value: &Value) -> Vec<Range> {
    let number = |value: &Value| value.as_i64().unwrap_or(0) as i32;
    let range =
        |r: &Value| Range { start: number(&r["start"]), end: number(&r["end"]), step: number(&r["step"]) };
    value.as_array().into_iter().flatten().map(range).collect()
}

fn calendar(value: &Value) -> Calendar {
    let mut calendar = Calendar::default();
    calendar.second = ranges(&value["second"]);
    calendar.minute = ranges(&value["minute"]);
    calendar.hour = ranges(&value["hour"]);
    calendar.day_of_month = ranges(&value["dayOfMonth"]);
    calendar.month = ranges(&value["month"]);
    calendar.day_of_week = ranges(&value["dayOfWeek"]);
    calendar.year = ranges(&value["year"]);
    calendar.comment = value["comment"].as_str().unwrap_or("").to_owned();
    calendar
}

fn calendar_text(value: &Value) -> CalendarText {
    let field = |key: &str| match &value[key] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut text = CalendarText::default();
    text.second = field("second");
    text.minute = field("minute");
    text.hour = field("hour");
    text.day_of_month = field("dayOfMonth");
    text.month = field("month");
    text.day_of_week = field("dayOfWeek");
    text.year = field("year");
    text.comment = field("comment");
    text
}

/// A duration as a string ("5400s", "1.5s") or as the two numbers of the message.
fn wire_duration(value: &Value) -> (i64, i32) {
    match value {
        Value::Null => (0, 0),
        Value::String(text) => {
            let number = text.strip_suffix('s').unwrap();
            let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
            let nanos: i32 = format!("{fraction:0<9}").parse().unwrap();
            (whole.parse().unwrap(), if whole.starts_with('-') { -nanos } else { nanos })
        }
        parts => (parts["seconds"].as_i64().unwrap_or(0), parts["nanos"].as_i64().unwrap_or(0) as i32),
    }
}

fn print_calendar(calendar: &Calendar, filled: bool) -> Value {
    let mut wire = Map::new();
    let fields = [
        ("second", &calendar.second),
        ("minute", &calendar.minute),
        ("hour", &calendar.hour),
        ("dayOfMonth", &calendar.day_of_month),
        ("month", &calendar.month),
        ("dayOfWeek", &calendar.day_of_week),
        ("year", &calendar.year),
    ];
    for (key, ranges) in fields.into_iter().filter(|(_, ranges)| !ranges.is_empty()) {
        wire.insert(key.into(), ranges.iter().map(|range| print_range(*range, filled)).collect());
    }
    if !calendar.comment.is_empty() {
        wire.insert("comment".into(), calendar.comment.clone().into());
    }
    Value::Object(wire)
}

fn print_range(range: Range, filled: bool) -> Value {
    if filled {
        let Range { start, end, step } = range.filled();
        return json!({ "start": start, "end": end, "step": step });
    }
    let mut wire = json!({ "start": range.start });
    if range.end != 0 {
        wire["end"] = range.end.into();
    }
    if range.step != 0 {
        wire["step"] = range.step.into();
    }
    wire
}

fn print_interval(interval: &Interval) -> Value {
    let mut wire = json!({ "interval": print_duration(interval.every) });
    if !interval.phase.is_zero() {
        wire["phase"] = print_duration(interval.phase);
    }
    wire
}

fn print_duration(duration: SignedDuration) -> Value {
    assert_eq!(duration.subsec_nanos(), 0);
    format!("{}s", duration.as_secs()).into()
}
