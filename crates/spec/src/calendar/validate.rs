//! Checks a structured calendar; all faults of one calendar are told at once, as in Temporal.

use super::{Calendar, DayOfMonthTerm, DayOfWeekTerm, Range};
use crate::error::Error;
use crate::field::{DAY_OF_MONTH, DAY_OF_WEEK, FieldKind, HOUR, MINUTE, MONTH, SECOND, YEAR};
use crate::limits::COMMENT_BYTES_MAX;

pub(crate) fn check(calendar: &Calendar) -> Result<(), Error> {
    let mut faults = Faults::default();
    faults.ranges(&SECOND, &calendar.second);
    faults.ranges(&MINUTE, &calendar.minute);
    faults.ranges(&HOUR, &calendar.hour);
    faults.ranges(&DAY_OF_MONTH, &calendar.day_of_month);
    faults.ranges(&MONTH, &calendar.month);
    faults.ranges(&DAY_OF_WEEK, &calendar.day_of_week);
    faults.ranges(&YEAR, &calendar.year);
    for term in &calendar.day_of_month_terms {
        let (holds, rule) = match *term {
            DayOfMonthTerm::LastDay { before } => (before <= 30, "0 to 30 days before the last"),
            DayOfMonthTerm::NearestWeekday { day } | DayOfMonthTerm::NearestBusinessDay { day } => {
                ((1..=31).contains(&day), "a day from 1 to 31")
            }
            DayOfMonthTerm::LastWeekday => (true, ""),
            DayOfMonthTerm::BusinessDay { nth } => {
                (nth != 0 && (-31..=31).contains(&nth), "a business day from 1 to 31, or -31 to -1")
            }
        };
        faults.term(&DAY_OF_MONTH, holds, rule);
    }
    for term in &calendar.day_of_week_terms {
        let (weekday, nth) = match *term {
            DayOfWeekTerm::Nth { weekday, nth } => (weekday, nth),
            DayOfWeekTerm::Last { weekday } => (weekday, 1),
        };
        faults.term(&DAY_OF_WEEK, weekday <= 6 && (1..=5).contains(&nth), "weekday 0 to 6, nth 1 to 5");
    }
    if calendar.comment.len() > COMMENT_BYTES_MAX {
        faults.add("comment", format!("comment is too long, at most {COMMENT_BYTES_MAX} bytes"));
    }
    faults.into_result()
}

/// Whether a calendar counts business days, and so needs to know them.
pub(crate) fn business_terms(calendar: &Calendar) -> bool {
    calendar.day_of_month_terms.iter().any(|term| match term {
        DayOfMonthTerm::BusinessDay { .. } | DayOfMonthTerm::NearestBusinessDay { .. } => true,
        DayOfMonthTerm::LastDay { .. }
        | DayOfMonthTerm::NearestWeekday { .. }
        | DayOfMonthTerm::LastWeekday => false,
    })
}

#[derive(Default)]
struct Faults {
    messages: Vec<String>,
    first_field: &'static str,
}

impl Faults {
    fn ranges(&mut self, field: &FieldKind, ranges: &[Range]) {
        let FieldKind { name, min, max, .. } = *field;
        for range in ranges {
            if range.start < min || range.start > max {
                self.add(field.key, format!("{name} Start is not in range [{min}-{max}]"));
            } else if range.end != 0 && (range.end < range.start || range.end > max) {
                self.add(field.key, format!("{name} End is before Start or not in range [{min}-{max}]"));
            }
            if range.step < 0 {
                self.add(field.key, format!("{name} has invalid Step"));
            }
        }
    }

    fn term(&mut self, field: &FieldKind, holds: bool, rule: &str) {
        if !holds {
            self.add(field.key, format!("{} term is not {rule}", field.name));
        }
    }

    fn add(&mut self, field: &'static str, message: String) {
        if self.messages.is_empty() {
            self.first_field = field;
        }
        // A generated calendar may hold thousands of bad ranges; a person needs the first few.
        if self.messages.len() < 20 {
            self.messages.push(message);
        }
    }

    fn into_result(self) -> Result<(), Error> {
        if self.messages.is_empty() {
            return Ok(());
        }
        let message = format!("invalid calendar spec: {}", self.messages.join(", "));
        Err(Error::value(message).in_field(self.first_field))
    }
}
