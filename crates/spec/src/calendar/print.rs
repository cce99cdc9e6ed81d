//! Prints a structured calendar as a cron string that parses back to it.

use super::{Calendar, DayOfMonthTerm, DayOfWeekTerm, Range};
use crate::field::{
    DAY_OF_MONTH, DAY_OF_WEEK, FieldKind, HOUR, MINUTE, MONTH, Names, SECOND, WEEKDAY_NAMES, YEAR,
};

pub(super) fn to_cron(calendar: &Calendar) -> Option<String> {
    let relative = !calendar.day_of_month_terms.is_empty() || !calendar.day_of_week_terms.is_empty();
    let (day_of_month, day_of_week) = if relative { quartz_days(calendar)? } else { days(calendar)? };
    let year = if calendar.year.is_empty() { "*".into() } else { list(&YEAR, &calendar.year)? };
    Some(format!(
        "{} {} {} {day_of_month} {} {day_of_week} {year}{}",
        list(&SECOND, &calendar.second)?,
        list(&MINUTE, &calendar.minute)?,
        list(&HOUR, &calendar.hour)?,
        list(&MONTH, &calendar.month)?,
        if calendar.comment.is_empty() { String::new() } else { format!(" # {}", calendar.comment) },
    ))
}

fn days(calendar: &Calendar) -> Option<(String, String)> {
    Some((list(&DAY_OF_MONTH, &calendar.day_of_month)?, list(&DAY_OF_WEEK, &calendar.day_of_week)?))
}

/// Quartz asks for a `?` in one of the two day fields, so only one of them may choose.
fn quartz_days(calendar: &Calendar) -> Option<(String, String)> {
    let any = |field: &FieldKind, ranges: &[Range]| ranges == [Range::new(field.min, field.max, 1)];
    if calendar.day_of_week_terms.is_empty() && any(&DAY_OF_WEEK, &calendar.day_of_week) {
        let plain = calendar.day_of_month.iter().map(|range| print_range(&DAY_OF_MONTH, *range));
        let terms = calendar.day_of_month_terms.iter().map(|term| print_month_term(*term));
        return Some((join(plain.chain(terms)), "?".into()));
    }
    if calendar.day_of_month_terms.is_empty() && any(&DAY_OF_MONTH, &calendar.day_of_month) {
        let plain = calendar.day_of_week.iter().map(|range| print_quartz_weekdays(*range));
        let terms = calendar.day_of_week_terms.iter().map(|term| print_week_term(*term));
        return Some(("?".into(), join(plain.chain(terms))));
    }
    None
}

/// A field; nothing if it is empty, which no cron string can say.
fn list(field: &FieldKind, ranges: &[Range]) -> Option<String> {
    (!ranges.is_empty()).then(|| join(ranges.iter().map(|range| print_range(field, *range))))
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<String>>().join(",")
}

fn print_range(field: &FieldKind, range: Range) -> String {
    let Range { start, end, step } = range.filled();
    match (start, end, step) {
        // A year of `*` is no range at all, so all years as a range are written out.
        (start, end, 1) if (start, end) == (field.min, field.max) && field.key != YEAR.key => "*".into(),
        // In a weekday field `*/7` would reach 7, which is Sunday again.
        (start, end, step) if (start, end) == (field.min, field.max) && field.names != Names::Weekdays => {
            format!("*/{step}")
        }
        (start, end, 1) if start == end => format!("{start}"),
        (start, end, 1) => format!("{start}-{end}"),
        (start, end, step) => format!("{start}-{end}/{step}"),
    }
}

/// Quartz counts weekdays from 1, Sunday; names need no counting.
fn print_quartz_weekdays(range: Range) -> String {
    let Range { start, end, step } = range.filled();
    let name = |day: i32| WEEKDAY_NAMES[day as usize % 7][..3].to_uppercase();
    match step {
        1 if start == end => name(start),
        1 => format!("{}-{}", name(start), name(end)),
        step => format!("{}-{}/{step}", name(start), name(end)),
    }
}

fn print_month_term(term: DayOfMonthTerm) -> String {
    match term {
        DayOfMonthTerm::LastDay { before: 0 } => "L".into(),
        DayOfMonthTerm::LastDay { before } => format!("L-{before}"),
        DayOfMonthTerm::NearestWeekday { day } => format!("{day}W"),
        DayOfMonthTerm::LastWeekday => "LW".into(),
        DayOfMonthTerm::BusinessDay { nth: -1 } => "LB".into(),
        DayOfMonthTerm::BusinessDay { nth } if nth < 0 => format!("LB-{}", -(i32::from(nth)) - 1),
        DayOfMonthTerm::BusinessDay { nth } => format!("{nth}B"),
        DayOfMonthTerm::NearestBusinessDay { day } => format!("{day}WB"),
    }
}

fn print_week_term(term: DayOfWeekTerm) -> String {
    let name = |weekday: u8| WEEKDAY_NAMES[weekday as usize % 7][..3].to_uppercase();
    match term {
        DayOfWeekTerm::Nth { weekday, nth } => format!("{}#{nth}", name(weekday)),
        DayOfWeekTerm::Last { weekday } => format!("{}L", name(weekday)),
    }
}
