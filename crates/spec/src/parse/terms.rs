//! The relative day terms of the quartz dialect: `L W #` and, of our own, `B` for business days.

use super::field::{Reader, Values};
use crate::calendar::{DayOfMonthTerm, DayOfWeekTerm, Range};
use crate::error::Error;
use crate::field::Names;

/// Reads a relative term, if the part is one.
pub(super) fn read(reader: &Reader<'_>, part: &str, at: usize, values: &mut Values) -> Result<bool, Error> {
    // Quartz reads its terms in any case.
    let part = part.to_ascii_uppercase();
    let part = part.as_str();
    if reader.kind.names == Names::Weekdays {
        if part == "L" {
            // As in Quartz: the last day of a week is Saturday.
            values.ranges.push(Range::at(6));
            return Ok(true);
        }
        let Some(term) = week_term(reader, part, at)? else { return Ok(false) };
        values.week_terms.push(term);
    } else {
        let Some(term) = month_term(reader, part, at)? else { return Ok(false) };
        values.month_terms.push(term);
    }
    Ok(true)
}

fn month_term(reader: &Reader<'_>, part: &str, at: usize) -> Result<Option<DayOfMonthTerm>, Error> {
    let day = |digits: &str| reader.value(digits, at).map(|day| day as u8);
    let before = |digits: &str| match digits.parse::<u8>() {
        Ok(before) if before <= 30 && !digits.starts_with('+') => Ok(before),
        _ => Err(reader.fault("counts back at most 30 days", digits, at + part.len() - digits.len())),
    };
    Ok(Some(match part {
        "L" => DayOfMonthTerm::LastDay { before: 0 },
        "LW" => DayOfMonthTerm::LastWeekday,
        "LB" => DayOfMonthTerm::BusinessDay { nth: -1 },
        _ => {
            if part.starts_with("L-") && part.ends_with('W') {
                return Err(reader.fault("cannot combine `L-n` with `W`", part, at));
            } else if let Some(digits) = part.strip_prefix("LB-") {
                DayOfMonthTerm::BusinessDay { nth: -1 - before(digits)? as i8 }
            } else if let Some(digits) = part.strip_prefix("L-") {
                DayOfMonthTerm::LastDay { before: before(digits)? }
            } else if let Some(digits) = part.strip_suffix("WB") {
                DayOfMonthTerm::NearestBusinessDay { day: day(digits)? }
            } else if let Some(digits) = part.strip_suffix('W') {
                DayOfMonthTerm::NearestWeekday { day: day(digits)? }
            } else if let Some(digits) = part.strip_suffix('B') {
                DayOfMonthTerm::BusinessDay { nth: day(digits)? as i8 }
            } else {
                return Ok(None);
            }
        }
    }))
}

fn week_term(reader: &Reader<'_>, part: &str, at: usize) -> Result<Option<DayOfWeekTerm>, Error> {
    if let Some((day, nth)) = part.split_once('#') {
        let weekday = reader.numbered(reader.value(day, at)?) as u8;
        let nth_at = at + day.len() + 1;
        return match nth.parse::<u8>() {
            Ok(nth @ 1..=5) => Ok(Some(DayOfWeekTerm::Nth { weekday, nth })),
            _ => Err(reader.fault("counts weekdays of a month from 1 to 5", nth, nth_at)),
        };
    }
    match part.strip_suffix('L') {
        Some(day) => {
            let weekday = reader.numbered(reader.value(day, at)?) as u8;
            Ok(Some(DayOfWeekTerm::Last { weekday }))
        }
        None => Ok(None),
    }
}
