//! Specs: Temporal's fields to ours, and ours in Temporal's canonical form.

use jiff::{SignedDuration, Timestamp};
use punctual_core::ScheduleKey;
use punctual_spec::{Calendar, CalendarText, Interval, Range, Spec};

use super::refusal::Refusal;
use super::wire::schedule as wire;
use crate::convert::describe::environment;
use crate::convert::time::{length_to_wire, to_wire};

/// Rules of each kind that a list shows.
const LISTED_MAX: usize = 10;

/// A spec as it was asked for; texts stay texts.
#[expect(deprecated, reason = "older clients still send exclusions as texts")]
pub(super) fn from_wire(given: wire::ScheduleSpec) -> Result<Spec, Refusal> {
    let mut spec = Spec::new();
    spec.calendars = given.structured_calendar.into_iter().map(calendar).collect();
    spec.calendar_texts = given.calendar.into_iter().map(text).collect();
    spec.exclusions = given.exclude_structured_calendar.into_iter().map(calendar).collect();
    spec.exclusion_texts = given.exclude_calendar.into_iter().map(text).collect();
    for cron in given.cron_string {
        spec = spec.cron(cron);
    }
    for interval in given.interval {
        let every = checked("interval", interval.interval)?.unwrap_or_default();
        let phase = checked("phase", interval.phase)?.unwrap_or_default();
        spec = spec.interval(Interval::every(every).phase(phase));
    }
    spec.start_time = instant("start time", given.start_time)?;
    spec.end_time = instant("end time", given.end_time)?;
    spec.jitter = checked("jitter", given.jitter)?.unwrap_or_default().max(SignedDuration::ZERO);
    spec.zone = given.timezone_name;
    spec.zone_data = Some(given.timezone_data).filter(|data| !data.is_empty());
    Ok(spec)
}

/// The longest length of time that protobuf allows.
const SECONDS_MAX: i64 = 315_576_000_000;

fn checked(field: &str, given: Option<prost_types::Duration>) -> Result<Option<SignedDuration>, Refusal> {
    let Some(prost_types::Duration { seconds, nanos }) = given else { return Ok(None) };
    let fine = seconds.abs() <= SECONDS_MAX
        && nanos.abs() <= 999_999_999
        && (seconds == 0 || nanos == 0 || (seconds < 0) == (nanos < 0));
    let fault = || Refusal::spec(format!("{field} is no duration: {seconds} s and {nanos} ns"));
    fine.then(|| SignedDuration::new(seconds, nanos)).ok_or_else(fault).map(Some)
}

fn instant(field: &str, given: Option<prost_types::Timestamp>) -> Result<Option<Timestamp>, Refusal> {
    crate::convert::time::instant(field, given.as_ref())
        .map_err(|fault| Refusal::spec(format!("{field} {}", fault.message)))
}

fn calendar(given: wire::StructuredCalendarSpec) -> Calendar {
    let ranges = |ranges: Vec<wire::Range>| {
        ranges.into_iter().map(|wire::Range { start, end, step }| Range { start, end, step }).collect()
    };
    let mut calendar = Calendar::default();
    calendar.second = ranges(given.second);
    calendar.minute = ranges(given.minute);
    calendar.hour = ranges(given.hour);
    calendar.day_of_month = ranges(given.day_of_month);
    calendar.month = ranges(given.month);
    calendar.year = ranges(given.year);
    calendar.day_of_week = ranges(given.day_of_week);
    calendar.comment = given.comment;
    calendar
}

fn text(given: wire::CalendarSpec) -> CalendarText {
    let mut text = CalendarText::default();
    text.second = given.second;
    text.minute = given.minute;
    text.hour = given.hour;
    text.day_of_month = given.day_of_month;
    text.month = given.month;
    text.year = given.year;
    text.day_of_week = given.day_of_week;
    text.comment = given.comment;
    text
}

/// A spec as Temporal describes it: structured calendars with ends and steps, intervals, no texts. What Temporal has no
/// words for (single times, terms such as "last Friday", named calendars) is left out.
pub(super) fn shown(spec: &Spec, key: &ScheduleKey) -> Result<wire::ScheduleSpec, punctual_spec::Error> {
    let spec = spec.canonical(&environment(key))?;
    Ok(wire::ScheduleSpec {
        structured_calendar: spec.calendars.iter().map(calendar_shown).collect(),
        exclude_structured_calendar: spec.exclusions.iter().map(calendar_shown).collect(),
        interval: spec.intervals.iter().map(interval_shown).collect(),
        start_time: spec.start_time.map(to_wire),
        end_time: spec.end_time.map(to_wire),
        jitter: (!spec.jitter.is_zero()).then(|| length_to_wire(spec.jitter)),
        timezone_name: spec.zone,
        timezone_data: spec.zone_data.unwrap_or_default(),
        ..wire::ScheduleSpec::default()
    })
}

/// The same, short enough for a list.
pub(super) fn listed(mut spec: wire::ScheduleSpec) -> wire::ScheduleSpec {
    spec.structured_calendar.truncate(LISTED_MAX);
    spec.exclude_structured_calendar.truncate(LISTED_MAX);
    spec.interval.truncate(LISTED_MAX);
    spec.timezone_data.clear();
    spec
}

fn calendar_shown(calendar: &Calendar) -> wire::StructuredCalendarSpec {
    let ranges = |ranges: &[Range]| {
        let filled = ranges.iter().map(|range| range.filled());
        filled.map(|Range { start, end, step }| wire::Range { start, end, step }).collect()
    };
    wire::StructuredCalendarSpec {
        second: ranges(&calendar.second),
        minute: ranges(&calendar.minute),
        hour: ranges(&calendar.hour),
        day_of_month: ranges(&calendar.day_of_month),
        month: ranges(&calendar.month),
        year: ranges(&calendar.year),
        day_of_week: ranges(&calendar.day_of_week),
        comment: calendar.comment.clone(),
    }
}

fn interval_shown(interval: &Interval) -> wire::IntervalSpec {
    // An anchor is a phase in other words.
    let anchored = interval.anchor.map(|anchor| {
        SignedDuration::from_secs(anchor.as_second().rem_euclid(interval.every.as_secs().max(1)))
    });
    let phase = anchored.unwrap_or(interval.phase);
    wire::IntervalSpec {
        interval: Some(length_to_wire(interval.every)),
        phase: (!phase.is_zero()).then(|| length_to_wire(phase)),
    }
}
