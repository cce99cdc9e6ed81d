//! Text to structure, with the position of the fault.
//!
//! A new text form (RFC 5545 rules are next) is one more file here and one more list in
//! [`Spec`](crate::Spec); everything behind the canonical form stays as it is.

use crate::calendar::{Calendar, CalendarText};
use crate::error::Error;
use crate::field::{DAY_OF_MONTH, DAY_OF_WEEK, FieldKind, HOUR, MINUTE, MONTH, SECOND, YEAR};
use crate::limits::TEXT_BYTES_MAX;
use crate::spec::Dialect;

mod cron;
mod duration;
mod field;
mod hash;
mod terms;

pub(crate) use cron::{CronRule, ParsedCron, cron};
pub(crate) use hash::Hasher;

pub use duration::parse_duration;

/// Reads a calendar text.
pub(crate) fn calendar_text(text: &CalendarText, hasher: Hasher<'_>) -> Result<Calendar, Error> {
    let read = |kind: &'static FieldKind, text: &str, default: &str| {
        check_length(text).map_err(|error| error.in_field(kind.key))?;
        let trimmed = text.trim();
        let used = if trimmed.is_empty() { default } else { trimmed };
        let offset = if trimmed.is_empty() { 0 } else { text.len() - text.trim_start().len() };
        let values = field::values(kind, used, offset, Dialect::Temporal, hasher);
        values.map(|values| values.ranges).map_err(|error| error.in_field(kind.key).in_text(text))
    };
    Ok(Calendar {
        second: read(&SECOND, &text.second, "0")?,
        minute: read(&MINUTE, &text.minute, "0")?,
        hour: read(&HOUR, &text.hour, "0")?,
        day_of_month: read(&DAY_OF_MONTH, &text.day_of_month, "*")?,
        month: read(&MONTH, &text.month, "*")?,
        day_of_week: read(&DAY_OF_WEEK, &text.day_of_week, "*")?,
        year: every_year(&text.year, read(&YEAR, &text.year, "*")?),
        comment: text.comment.clone(),
        ..Calendar::default()
    })
}

/// The canonical form of every year is no range at all.
fn every_year(text: &str, ranges: Vec<crate::Range>) -> Vec<crate::Range> {
    if matches!(text.trim(), "" | "*") { Vec::new() } else { ranges }
}

fn check_length(text: &str) -> Result<(), Error> {
    if text.len() > TEXT_BYTES_MAX {
        let found = text.len();
        return Err(Error::limit(format!("text has {found} bytes, at most {TEXT_BYTES_MAX} are read")));
    }
    Ok(())
}

/// Where a part stands in the text that it was cut from.
fn offset_in(text: &str, part: &str) -> usize {
    part.as_ptr() as usize - text.as_ptr() as usize
}
