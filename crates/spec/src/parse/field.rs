//! One field of a cron string or calendar text: lists, ranges, steps, names and `H`.

use super::hash::Hasher;
use super::terms;
use crate::calendar::{DayOfMonthTerm, DayOfWeekTerm, Range};
use crate::error::{Error, quoted};
use crate::field::{DAY_OF_MONTH, FieldKind, Names};
use crate::spec::Dialect;

/// What a field holds.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) ranges: Vec<Range>,
    pub(super) month_terms: Vec<DayOfMonthTerm>,
    pub(super) week_terms: Vec<DayOfWeekTerm>,
    /// It is a lone `?`: the other day field decides.
    pub(super) any: bool,
}

/// Reads a field that begins at `offset` of the whole text.
pub(super) fn values(
    kind: &'static FieldKind,
    text: &str,
    offset: usize,
    dialect: Dialect,
    hasher: Hasher<'_>,
) -> Result<Values, Error> {
    let reader = Reader::new(kind, dialect, hasher);
    let mut values = Values::default();
    if text == "?" && reader.has_terms() {
        values.any = true;
        values.ranges.push(Range::new(kind.min, kind.max, 1));
        return Ok(values);
    }
    let mut at = offset;
    for part in text.split(',') {
        reader.part(part, at, &mut values)?;
        at += part.len() + 1;
    }
    Ok(values)
}

/// Knows the bounds of one field in one dialect.
pub(super) struct Reader<'a> {
    pub(super) kind: &'a FieldKind,
    dialect: Dialect,
    hasher: Hasher<'a>,
    /// The bounds as written in this dialect.
    min: i32,
    max: i32,
}

impl<'a> Reader<'a> {
    pub(super) fn new(kind: &'a FieldKind, dialect: Dialect, hasher: Hasher<'a>) -> Reader<'a> {
        let (min, max) = match (kind.names, dialect) {
            (Names::Weekdays, Dialect::Quartz) => (1, 7),
            (Names::Weekdays, Dialect::Temporal | Dialect::Unix) => (0, 7),
            (Names::None | Names::Months, _) => (kind.min, kind.max),
        };
        Reader { kind, dialect, hasher, min, max }
    }

    /// A reader with bounds of its own, for the published test cases.
    #[cfg(test)]
    pub(super) fn with_bounds(kind: &'a FieldKind, min: i32, max: i32) -> Reader<'a> {
        Reader { min, max, ..Reader::new(kind, Dialect::Temporal, Hasher::new("")) }
    }

    fn has_terms(&self) -> bool {
        self.dialect == Dialect::Quartz
            && (self.kind.names == Names::Weekdays || self.kind.key == DAY_OF_MONTH.key)
    }

    pub(super) fn part(&self, part: &str, at: usize, values: &mut Values) -> Result<(), Error> {
        if self.has_terms() && terms::read(self, part, at, values)? {
            return Ok(());
        }
        let (body, step) = self.split_step(part, at)?;
        if let Some(range) = self.hashed(body, step, at)? {
            values.ranges.push(range);
            return Ok(());
        }
        let (start, end) = match body.split_once('-') {
            _ if body == "*" || (body.is_empty() && step.is_some() && self.dialect == Dialect::Quartz) => {
                (self.min, self.max)
            }
            None => {
                let start = self.value(body, at)?;
                (start, if step.is_some() { self.max } else { start })
            }
            Some((_, rest)) if rest.contains('-') => {
                return Err(self.fault("has too many dashes", part, at));
            }
            Some((from, to)) => {
                let start = self.value(from, at)?;
                (start, self.end(to, start, body, at)?)
            }
        };
        self.push(start, end, step.unwrap_or(1), values);
        Ok(())
    }

    fn split_step<'t>(&self, part: &'t str, at: usize) -> Result<(&'t str, Option<i32>), Error> {
        let Some((body, step)) = part.split_once('/') else { return Ok((part, None)) };
        let step_at = at + body.len() + 1;
        if step.contains('/') {
            return Err(self.fault("has too many slashes", part, at));
        }
        if step.is_empty() {
            return Err(self.fault("has a slash but is missing step value", part, at));
        }
        match step.parse::<i32>() {
            Ok(step) if step >= 1 => Ok((body, Some(step))),
            _ => Err(self.fault("has invalid step, at least 1 is needed", step, step_at)),
        }
    }

    /// `H`, `H/15`, `H(0-29)`, `H(0-29)/10`.
    fn hashed(&self, body: &str, step: Option<i32>, at: usize) -> Result<Option<Range>, Error> {
        let Some(rest) = body.strip_prefix('H') else { return Ok(None) };
        let (low, high) = if rest.is_empty() {
            // Every month has 28 days; H must never pick a day that some months lack.
            (self.kind.min, if self.kind.key == DAY_OF_MONTH.key { 28 } else { self.kind.max })
        } else {
            let inner = rest.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
            let Some((low, high)) = inner.and_then(|inner| inner.split_once('-')) else { return Ok(None) };
            let (low_at, high_at) = (at + 2, at + 3 + low.len());
            let (low, high) = (self.value(low, low_at)?, self.value(high, high_at)?);
            (self.numbered(low), self.numbered(high))
        };
        if high < low || high > self.kind.max {
            let message = format!("has an H range that is empty or ends after {}", self.kind.max);
            return Err(self.fault(&message, body, at));
        }
        if self.kind.key == "year" {
            return Err(self.fault("cannot be drawn by H", body, at));
        }
        let size = high - low + 1;
        Ok(Some(match step {
            None => Range::at(low + self.hasher.below(self.kind, size)),
            Some(step) => Range::new(low + self.hasher.below(self.kind, size.min(step)), high, step),
        }))
    }

    /// A number or a name, within the field.
    pub(super) fn value(&self, word: &str, at: usize) -> Result<i32, Error> {
        self.number_or_name(word)
            .filter(|value| (self.min..=self.max).contains(value))
            .ok_or_else(|| self.fault(&format!("is not in range [{}-{}]", self.min, self.max), word, at))
    }

    fn end(&self, word: &str, start: i32, body: &str, at: usize) -> Result<i32, Error> {
        let value = self.number_or_name(word).filter(|value| (self.min..=self.max).contains(value));
        match value {
            Some(value) if value >= start || self.dialect == Dialect::Quartz => Ok(value),
            found => {
                let message = format!("End is before Start or not in range [{}-{}]", self.min, self.max);
                let error = self.fault(&message, body, at);
                Err(match found {
                    Some(_) => {
                        error.with_help("a range cannot wrap around; list its two parts, as in `5-6,0-1`")
                    }
                    None => error,
                })
            }
        }
    }

    fn number_or_name(&self, word: &str) -> Option<i32> {
        match self.kind.names.lookup(word) {
            // Names need no counting, numbers of the quartz dialect start at 1 for Sunday.
            Some(named) if self.kind.names == Names::Weekdays => Some(named + self.min.min(1)),
            Some(named) => Some(named),
            None => word.parse().ok(),
        }
    }

    /// A weekday as we count it, from 0 for Sunday.
    pub(super) fn numbered(&self, value: i32) -> i32 {
        match (self.kind.names, self.dialect) {
            (Names::Weekdays, Dialect::Quartz) => value - 1,
            (Names::Weekdays | Names::None | Names::Months, _) => value,
        }
    }

    fn push(&self, start: i32, end: i32, step: i32, values: &mut Values) {
        let ranges = &mut values.ranges;
        if self.dialect == Dialect::Quartz {
            let (start, end) = (self.numbered(start), self.numbered(end));
            if end >= start {
                ranges.push(Range::new(start, end, step));
            } else {
                // A range that wraps goes on counting past the top: 22-2/3 is 22 and 1.
                let size = self.kind.max - self.kind.min + 1;
                let wrapped = (start..=end + size).step_by(step as usize);
                ranges.extend(wrapped.map(|value| Range::at((value - self.kind.min) % size + self.kind.min)));
            }
        } else if self.max == 7 && end == 7 && self.kind.names == Names::Weekdays {
            // Sunday is 0 for us. A range that starts at 0, or at 1 with step 1, holds it already or by its end.
            if (7 - start) % step == 0 && !(step == 1 && start <= 1) {
                ranges.push(Range::at(0));
            }
            if step == 1 && start == 1 {
                ranges.push(Range::new(0, 6, 1));
            } else if start <= 6 {
                ranges.push(Range::new(start, 6, step));
            }
        } else {
            ranges.push(Range::new(start, end, step));
        }
    }

    pub(super) fn fault(&self, what: &str, found: &str, at: usize) -> Error {
        let shown = if found.is_empty() { "nothing".to_owned() } else { quoted(found) };
        let error = Error::syntax(format!("{} {what}, found {shown}", self.kind.name))
            .at(at..at + found.len().max(1));
        let quartz_only = self.dialect != Dialect::Quartz
            && found.contains(['L', 'W', '#', '?'])
            && !found.bytes().any(|b| b.is_ascii_lowercase());
        if quartz_only {
            error.with_help("`L`, `W`, `#` and `?` belong to the quartz dialect")
        } else {
            error
        }
    }
}

#[cfg(test)]
mod tests;
