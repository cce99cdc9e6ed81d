//! Says a spec in plain English, the way a person would write it on a whiteboard.

use jiff::Timestamp;

use crate::calendar::{Calendar, business_terms};
use crate::error::Error;
use crate::interval::Interval;
use crate::named::{CalendarMode, CalendarRule, Roll};
use crate::spec::{Fold, Gap, Spec};
use words::{and, capitalised, duration};

mod days;
mod time;
pub(crate) mod words;

/// How many single values are listed before they are only counted.
const LISTED_MAX: usize = 6;

/// Explains a canonical spec.
pub(crate) fn explain(spec: &Spec) -> Result<String, Error> {
    let mut clauses = calendar_clauses(&spec.calendars, time::phrase);
    shorten(&mut clauses);
    let many = clauses.len() > 1;
    if let Some(last) = clauses.last_mut() {
        let zone = zone_words(spec).unwrap_or("UTC");
        last.push_str(&if many { format!("; all in {zone}") } else { format!(", in {zone}") });
    }
    for interval in &spec.intervals {
        clauses.push(interval_clause(interval)?);
    }
    clauses.extend(times_clause(&spec.times));
    if clauses.is_empty() {
        return Ok("Never by itself: there is no calendar, interval or time.".into());
    }
    let mut sentences = vec![clauses.join("; also ")];
    sentences.extend(exception_sentences(spec));
    sentences.extend(bound_sentence(spec));
    if spec.jitter.is_positive() {
        let most = match spec.jitter.as_millis() {
            0 => "a millisecond".into(),
            millis if millis % 1_000 == 0 => duration(spec.jitter.as_secs()),
            millis if millis < 1_000 => format!("{millis} milliseconds"),
            millis => format!("{} seconds", millis as f64 / 1_000.0),
        };
        sentences.push(format!("each one is spread over up to {most} after its time"));
    }
    sentences.extend(clock_change_sentence(spec));
    Ok(sentences.iter().map(|sentence| format!("{}.", capitalised(sentence))).collect::<Vec<_>>().join(" "))
}

/// How many clauses of one kind are told; a person stops reading long before.
const CLAUSES_MAX: usize = 20;

fn shorten(clauses: &mut Vec<String>) {
    if clauses.len() > CLAUSES_MAX {
        let more = clauses.len() - CLAUSES_MAX;
        clauses.truncate(CLAUSES_MAX);
        clauses.push(format!("{more} more rules"));
    }
}

fn zone_words(spec: &Spec) -> Option<&str> {
    match (spec.zone.as_str(), &spec.zone_data) {
        ("", Some(_)) => Some("the time zone given as data"),
        ("", None) => None,
        (name, _) => Some(name),
    }
}

/// One clause for all calendars that name the same times, so that "the 13th, or any Friday" stays together.
fn calendar_clauses(calendars: &[Calendar], phrase: fn(&Calendar) -> time::TimePhrase) -> Vec<String> {
    let mut groups: Vec<(time::TimePhrase, Vec<String>)> = Vec::new();
    for calendar in calendars {
        let phrase = phrase(calendar);
        let days = days::phrase(calendar);
        match groups.last_mut() {
            Some((last, list)) if *last == phrase => list.push(days),
            _ => groups.push((phrase, vec![days])),
        }
    }
    groups.into_iter().map(|(phrase, days)| clause(&phrase, days)).collect()
}

fn clause(phrase: &time::TimePhrase, days: Vec<String>) -> String {
    let every_day = days.iter().any(String::is_empty);
    match (every_day, phrase.once_a_day) {
        (true, true) => format!("{} every day", phrase.text),
        (true, false) => phrase.text.clone(),
        (false, _) => {
            // "Monday through Friday" stands by itself, but not behind an "or".
            let on = |days: &String| match days.starts_with("on ") || days.starts_with("in ") {
                true => days.clone(),
                false => format!("on {days}"),
            };
            let days = match &days[..] {
                [only] => only.clone(),
                many => many.iter().map(on).collect::<Vec<_>>().join(" or "),
            };
            let separator = if days.starts_with("on ") || days.starts_with("in ") { " " } else { ", " };
            format!("{}{separator}{days}", phrase.text)
        }
    }
}

fn interval_clause(interval: &Interval) -> Result<String, Error> {
    let (period, phase) = interval.seconds()?;
    let every = match duration(period) {
        one if one.starts_with("1 ") => format!("every {}", &one[2..]),
        many => format!("every {many}"),
    };
    Ok(match interval.anchor {
        Some(anchor) => format!("{every}, counted from {}", instant(anchor)),
        None if period == 86_400 => {
            let time = crate::zone::timestamp(phase).strftime("%H:%M:%S").to_string();
            format!("every day at {} UTC", time.strip_suffix(":00").unwrap_or(&time))
        }
        // These fall on the same times of every day, which needs no telling.
        None if phase == 0 && (3_600 % period == 0 || (period % 3_600 == 0 && 86_400 % period == 0)) => every,
        None => {
            let from = crate::zone::timestamp(phase);
            format!("{every}, counted from {}", instant(from))
        }
    })
}

fn times_clause(times: &[Timestamp]) -> Option<String> {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.dedup();
    match &times[..] {
        [] => None,
        [one] => Some(format!("once at {}", instant(*one))),
        few if few.len() <= LISTED_MAX => Some(format!("at {}", and(few.iter().map(|time| instant(*time))))),
        [first, .., last] => {
            Some(format!("at {} listed times from {} to {}", times.len(), instant(*first), instant(*last)))
        }
    }
}

fn exception_sentences(spec: &Spec) -> Vec<String> {
    let mut exceptions = calendar_clauses(&spec.exclusions, time::exclusion_phrase);
    shorten(&mut exceptions);
    match spec.exclusion_dates.len() {
        0 => {}
        few if few <= LISTED_MAX => {
            exceptions.push(format!("on {}", and(spec.exclusion_dates.iter().map(|date| date.to_string()))));
        }
        many => exceptions.push(format!("on {many} listed dates")),
    }
    let mut sentences = Vec::new();
    if !exceptions.is_empty() {
        sentences.push(format!("except {}", exceptions.join("; and ")));
    }
    sentences.extend(spec.calendar_rules.iter().map(rule_sentence));
    if let (Some(last), Some(zone), []) = (sentences.last_mut(), zone_words(spec), &spec.calendars[..]) {
        last.push_str(&format!(", in {zone}"));
    }
    let counted = spec.calendars.iter().chain(&spec.exclusions).any(business_terms);
    if let Some(name) = spec.business_calendar.as_ref().filter(|_| counted) {
        sentences.push(format!("business days are those that the calendar `{name}` does not close"));
    }
    sentences
}

fn rule_sentence(rule: &CalendarRule) -> String {
    let name = &rule.calendar;
    let which = match rule.mode {
        CalendarMode::Include => format!("only on dates of the calendar `{name}`"),
        CalendarMode::Exclude => format!("not on dates of the calendar `{name}`"),
    };
    match rule.roll {
        Roll::Skip => which,
        Roll::Forward => format!("{which}: what falls on another day moves to the next allowed date"),
        Roll::Back => format!("{which}: what falls on another day moves back to the last allowed date"),
    }
}

fn bound_sentence(spec: &Spec) -> Option<String> {
    match (spec.start_time, spec.end_time) {
        (None, None) => None,
        (Some(start), None) => Some(format!("not before {}", instant(start))),
        (None, Some(end)) => Some(format!("not after {}", instant(end))),
        (Some(start), Some(end)) => Some(format!("from {} until {}", instant(start), instant(end))),
    }
}

fn clock_change_sentence(spec: &Spec) -> Option<String> {
    let gap = match spec.gap {
        Gap::Skip => None,
        Gap::After => Some("a time that the clock skips happens right after the change"),
    };
    let fold = match spec.fold {
        Fold::Both => None,
        Fold::First => Some("a time that the clock repeats happens the first time only"),
        Fold::Last => Some("a time that the clock repeats happens the second time only"),
    };
    let sentences: Vec<&str> = gap.into_iter().chain(fold).collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

fn instant(instant: Timestamp) -> String {
    let text = instant.strftime("%Y-%m-%d %H:%M:%S").to_string();
    format!("{} UTC", text.strip_suffix(":00").unwrap_or(&text))
}

#[cfg(test)]
mod tests;
