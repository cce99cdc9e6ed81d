//! The time of day of a calendar, in words.

use super::LISTED_MAX;
use super::words::{and, runs, spans, step, stride};
use crate::calendar::{Calendar, Range};

/// What a calendar says about the time of day.
#[derive(PartialEq, Eq)]
pub(super) struct TimePhrase {
    pub(super) text: String,
    /// It names certain times, so that "every day" may follow.
    pub(super) once_a_day: bool,
}

pub(super) fn phrase(calendar: &Calendar) -> TimePhrase {
    let [hours, minutes, seconds] =
        [&calendar.hour, &calendar.minute, &calendar.second].map(|field| values(field));
    let often = |text: String| TimePhrase { text, once_a_day: false };
    if hours.is_empty() || minutes.is_empty() || seconds.is_empty() {
        return often("never (a field of the calendar is empty)".into());
    }
    let [second] = seconds[..] else { return often(many_seconds(&hours, &minutes, &seconds)) };
    if hours.len() * minutes.len() <= LISTED_MAX {
        let times = hours.iter().flat_map(|hour| minutes.iter().map(|minute| clock(*hour, *minute, second)));
        return TimePhrase { text: format!("at {}", and(times)), once_a_day: true };
    }
    often(many_minutes(&hours, &minutes, second))
}

/// The time of day of an exclusion: whole days and whole hours are not told second by second.
pub(super) fn exclusion_phrase(calendar: &Calendar) -> TimePhrase {
    let [hours, minutes, seconds] =
        [&calendar.hour, &calendar.minute, &calendar.second].map(|field| values(field));
    let whole = |text: String| TimePhrase { text, once_a_day: false };
    match (hours.len(), minutes.len(), seconds.len()) {
        (24, 60, 60) => whole("all day".into()),
        (1.., 60, 60) => whole(format!("from {}", hour_list(&hours, 0, 59))),
        _ => phrase(calendar),
    }
}

/// Every so many minutes, in some hours, at one second of the minute.
fn many_minutes(hours: &[u32], minutes: &[u32], second: u32) -> String {
    let past = |minutes: &[u32]| and(minutes.iter().map(|minute| format!(":{minute:02}")));
    let tail = if second == 0 { String::new() } else { format!(" at second {second}") };
    if let [minute] = minutes {
        let at = match (*minute, second) {
            (0, 0) => String::new(),
            (minute, 0) => format!(" at :{minute:02}"),
            (minute, second) => format!(" at :{minute:02}:{second:02}"),
        };
        return match (hours.len(), stride(hours)) {
            (24, _) => format!("every hour{at}"),
            (_, Some(step)) if step > 1 && step_of_day(hours) => format!("every {step} hours{at}"),
            (_, Some(1)) => format!("every hour{at} from {}", hour_list(hours, *minute, *minute)),
            (_, Some(step)) => {
                let ends = [hours[0], hours[hours.len() - 1]].map(|hour| clock(hour, *minute, second));
                format!("every {step} hours from {} through {}", ends[0], ends[1])
            }
            (_, None) => format!("at {}", and(hours.iter().map(|hour| clock(*hour, *minute, second)))),
        };
    }
    let even = |step: &u32| 60 % step == 0 && minutes[0] < *step;
    let often = match step(minutes, 59).filter(even) {
        _ if minutes.len() == 60 || (hours.len() == 1 && stride(minutes) == Some(1)) => "every minute".into(),
        Some(step) if minutes[0] == 0 => format!("every {step} minutes"),
        Some(step) if minutes.len() > 2 => format!("every {step} minutes from :{:02}", minutes[0]),
        _ if minutes.len() <= LISTED_MAX => format!("at {} past the hour", past(minutes)),
        _ => format!("at minutes {} of the hour", spans(minutes, |minute| minute.to_string())),
    };
    let often = often + &tail;
    if hours.len() == 24 {
        return often;
    }
    if runs(hours).len() > 3 {
        return format!("{often} in the hours {}", spans(hours, |hour| format!("{hour:02}")));
    }
    format!("{often} from {}", hour_list(hours, minutes[0], minutes[minutes.len() - 1]))
}

/// Hours that go on evenly from one day to the next.
fn step_of_day(hours: &[u32]) -> bool {
    hours[0] == 0 && step(hours, 23).is_some_and(|step| 24 % step == 0)
}

/// The stretches of a day that some hours cover, from one minute of the first to another of the last.
fn hour_list(hours: &[u32], first: u32, last: u32) -> String {
    and(runs(hours).into_iter().map(|(start, end)| match (start, first) == (end, last) {
        true => clock(start, first, 0),
        false => format!("{} through {}", clock(start, first, 0), clock(end, last, 0)),
    }))
}

fn many_seconds(hours: &[u32], minutes: &[u32], seconds: &[u32]) -> String {
    let often = match step(seconds, 59).filter(|step| 60 % step == 0) {
        _ if seconds.len() == 60 => "every second".into(),
        Some(step) if seconds[0] == 0 => format!("every {step} seconds"),
        _ => format!("at seconds {}", spans(seconds, |second| second.to_string())),
    };
    match (hours.len(), minutes.len()) {
        (24, 60) => often,
        (_, 60) => format!("{often} from {}", hour_list(hours, 0, 59)),
        (_, few) if hours.len() * few <= LISTED_MAX => {
            let times = hours.iter().flat_map(|hour| minutes.iter().map(|minute| clock(*hour, *minute, 0)));
            format!("{often} of the minute{} {}", if hours.len() * few == 1 { "" } else { "s" }, and(times))
        }
        (24, few) => {
            let word = if few == 1 { "minute" } else { "minutes" };
            format!("{often} of {word} {} of every hour", spans(minutes, |minute| format!(":{minute:02}")))
        }
        _ => format!("{often}, {}", many_minutes(hours, minutes, 0)),
    }
}

fn clock(hour: u32, minute: u32, second: u32) -> String {
    if second == 0 { format!("{hour:02}:{minute:02}") } else { format!("{hour:02}:{minute:02}:{second:02}") }
}

/// The values of a field, in order and once each.
pub(super) fn values(ranges: &[Range]) -> Vec<u32> {
    let mut values: Vec<u32> =
        ranges.iter().flat_map(|range| range.values()).map(|value| value as u32).collect();
    values.sort_unstable();
    values.dedup();
    values
}
