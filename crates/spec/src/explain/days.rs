//! The days of a calendar, in words.

use super::time::values;
use super::words::{and, month_name, ordinal, spans, step, weekday_name};
use crate::calendar::{Calendar, DayOfMonthTerm, DayOfWeekTerm};

/// The days of a calendar; nothing if it is every day.
pub(super) fn phrase(calendar: &Calendar) -> String {
    let month_days = values(&calendar.day_of_month);
    let week_days = values(&calendar.day_of_week);
    let any_month_day = month_days.len() == 31;
    let any_week_day = week_days.len() == 7;
    let of_month = of_month(calendar);
    if (month_days.is_empty() && calendar.day_of_month_terms.is_empty())
        || (week_days.is_empty() && calendar.day_of_week_terms.is_empty())
        || calendar.month.is_empty()
    {
        return "on no day (a field of the calendar is empty)".into();
    }
    let by_month = (!any_month_day).then(|| month_day_phrase(calendar, &month_days));
    let by_week = (!any_week_day).then(|| week_day_phrase(calendar, &week_days));
    let in_years = in_years(calendar);
    match (by_month, by_week) {
        (None, None) => {
            let months = in_months(calendar);
            [months, in_years].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
        }
        (Some(days), None) => joined(&[&format!("on {days} of {of_month}"), &in_years]),
        (None, Some(days)) if calendar.day_of_week_terms.is_empty() => {
            joined(&[&days, &in_months(calendar), &in_years])
        }
        (None, Some(days)) => joined(&[&format!("{days} of {of_month}"), &in_years]),
        (Some(days), Some(week)) => {
            let condition = match week.strip_prefix("on ") {
                Some(week) => format!("if it is {}", with_article(week)),
                None => format!("if it is a day from {week}"),
            };
            joined(&[&format!("on {days} of {of_month}"), &condition, &in_years])
        }
    }
}

fn joined(parts: &[&str]) -> String {
    parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" ")
}

fn with_article(weekday: &str) -> String {
    if weekday.starts_with("the ") {
        weekday.to_owned()
    } else {
        format!("a {}", weekday.replace(" and ", " or "))
    }
}

fn month_day_phrase(calendar: &Calendar, days: &[u32]) -> String {
    let mut parts = Vec::new();
    match step(days, 31) {
        Some(step) if days.len() > 4 => {
            parts.push(format!("every {} day from the {}", ordinal(step), ordinal(days[0])));
        }
        _ if !days.is_empty() => parts.push(format!("the {}", spans(days, ordinal))),
        _ => {}
    }
    parts.extend(calendar.day_of_month_terms.iter().map(|term| match *term {
        DayOfMonthTerm::LastDay { before: 0 } => "the last day".into(),
        DayOfMonthTerm::LastDay { before: 1 } => "the day before the last".into(),
        DayOfMonthTerm::LastDay { before } => format!("the {} day before the last", ordinal(before.into())),
        DayOfMonthTerm::NearestWeekday { day } => format!("the weekday nearest the {}", ordinal(day.into())),
        DayOfMonthTerm::LastWeekday => "the last weekday".into(),
        DayOfMonthTerm::BusinessDay { nth: -1 } => "the last business day".into(),
        DayOfMonthTerm::BusinessDay { nth } if nth < 0 => {
            format!("the {} business day from the end", ordinal(nth.unsigned_abs().into()))
        }
        DayOfMonthTerm::BusinessDay { nth } => {
            format!("the {} business day", ordinal(nth.unsigned_abs().into()))
        }
        DayOfMonthTerm::NearestBusinessDay { day } => {
            format!("the business day nearest the {}", ordinal(day.into()))
        }
    }));
    and(parts)
}

fn week_day_phrase(calendar: &Calendar, days: &[u32]) -> String {
    // People start their week on Monday, and a weekend is one thing.
    let monday_first: Vec<u32> = {
        let mut days: Vec<u32> = days.iter().map(|day| if *day == 0 { 7 } else { *day }).collect();
        days.sort_unstable();
        days
    };
    if calendar.day_of_week_terms.is_empty() {
        let list = spans(&monday_first, weekday_name);
        return if list.contains(" through ") && !list.contains(" and ") {
            list
        } else {
            format!("on {list}")
        };
    }
    let plain = monday_first.iter().map(|day| format!("every {}", weekday_name(*day)));
    let terms = calendar.day_of_week_terms.iter().map(|term| match *term {
        DayOfWeekTerm::Nth { weekday, nth } => {
            format!("the {} {}", ordinal(nth.into()), weekday_name(weekday.into()))
        }
        DayOfWeekTerm::Last { weekday } => format!("the last {}", weekday_name(weekday.into())),
    });
    format!("on {}", and(plain.chain(terms)))
}

/// "the month", or which one.
fn of_month(calendar: &Calendar) -> String {
    let months = values(&calendar.month);
    if months.len() == 12 { "the month".into() } else { spans(&months, month_name) }
}

fn in_months(calendar: &Calendar) -> String {
    let months = values(&calendar.month);
    if months.len() == 12 { String::new() } else { format!("in {}", spans(&months, month_name)) }
}

fn in_years(calendar: &Calendar) -> String {
    let years = values(&calendar.year);
    match step(&years, 2100) {
        _ if years.is_empty() || years.len() == 101 => String::new(),
        Some(step) if years.len() > 4 => format!("every {step} years from {}", years[0]),
        _ if years.len() > 12 && super::words::runs(&years).len() > 6 => {
            format!("in {} listed years from {}", years.len(), years[0])
        }
        _ => format!("in {}", spans(&years, |year| year.to_string())),
    }
}
