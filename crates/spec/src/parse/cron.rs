//! Cron strings in three dialects.

use super::field::{self, Values};
use super::hash::Hasher;
use super::{check_length, duration, every_year, offset_in};
use crate::calendar::{Calendar, Range};
use crate::error::{Error, quoted};
use crate::field::{DAY_OF_MONTH, DAY_OF_WEEK, FieldKind, HOUR, MINUTE, MONTH, SECOND, YEAR};
use crate::interval::Interval;
use crate::spec::{Cron, Dialect};

/// What a cron string says.
pub(crate) struct ParsedCron {
    /// The zone it names.
    pub(crate) zone: Option<String>,
    pub(crate) rule: CronRule,
    /// Where a `#` began a comment although it touches a field, as in `5#3`.
    pub(crate) touching_hash: Option<usize>,
    /// Minute, hour and day, if a sixth field is a year of `*`: it says nothing unless seconds were meant to come first.
    pub(crate) idle_year: Option<[String; 3]>,
}

/// Calendars (two when the unix dialect joins its day fields by "or"), or an interval.
pub(crate) enum CronRule {
    Calendars(Vec<Calendar>),
    Interval(Interval),
}

pub(crate) fn cron(cron: &Cron, hasher: Hasher<'_>) -> Result<ParsedCron, Error> {
    check_length(&cron.text)?;
    read(&cron.text, cron.dialect, hasher).map_err(|error| error.in_text(&cron.text))
}

fn read(text: &str, dialect: Dialect, hasher: Hasher<'_>) -> Result<ParsedCron, Error> {
    let (zone, rest) = split_zone(text)?;
    let (rest, comment, touching_hash) = split_comment(text, rest, dialect);
    let rest = rest.trim();
    if let Some(after) = rest.strip_prefix("@every") {
        // As in Temporal, an interval has no zone and no comment.
        let interval = every(text, after)?;
        let rule = CronRule::Interval(interval);
        return Ok(ParsedCron { zone: None, rule, touching_hash, idle_year: None });
    }
    let (fields, source) = if rest.starts_with('@') {
        let Some(fields) = shorthand(rest) else {
            let at = offset_in(text, rest);
            return Err(Error::syntax(format!(
                "CronString has an unknown shorthand, found {}",
                quoted(rest)
            ))
            .at(at..at + rest.len())
            .with_help("known are @yearly, @monthly, @weekly, @daily, @hourly and @every"));
        };
        (Fields::split(fields, fields, Dialect::Temporal, hasher)?, fields)
    } else {
        (Fields::split(text, rest, dialect, hasher)?, text)
    };
    let idle_year = (fields.second.is_none() && fields.year.is_some_and(|(_, year)| year == "*"))
        .then(|| [fields.minute, fields.hour, fields.day_of_month].map(|(_, text)| text.to_owned()));
    let rule = CronRule::Calendars(fields.calendars(source, comment)?);
    Ok(ParsedCron { zone, rule, touching_hash, idle_year })
}

fn split_zone(text: &str) -> Result<(Option<String>, &str), Error> {
    let trimmed = text.trim();
    if !trimmed.starts_with("TZ=") && !trimmed.starts_with("CRON_TZ=") {
        return Ok((None, trimmed));
    }
    let at = offset_in(text, trimmed);
    let Some((head, rest)) = trimmed.split_once(char::is_whitespace) else {
        return Err(Error::syntax("CronString has time zone but missing fields").at(at..at + trimmed.len()));
    };
    let name = head.split_once('=').map_or("", |(_, name)| name);
    Ok(((!name.is_empty()).then(|| name.to_owned()), rest))
}

/// In the temporal dialect a comment begins at any `#`; in the others only where no field is touched, so that
/// `FRI#3` stays a weekday.
fn split_comment<'t>(text: &str, rest: &'t str, dialect: Dialect) -> (&'t str, &'t str, Option<usize>) {
    let touches = |at: usize| rest[..at].chars().next_back().is_some_and(|before| !before.is_whitespace());
    let begins = |at: &usize| dialect == Dialect::Temporal || !touches(*at);
    match rest.match_indices('#').map(|(at, _)| at).find(begins) {
        None => (rest, "", None),
        Some(at) => {
            let touching = touches(at).then(|| offset_in(text, rest) + at);
            (&rest[..at], rest[at + 1..].trim(), touching)
        }
    }
}

fn every(text: &str, after: &str) -> Result<Interval, Error> {
    let body = after.trim();
    if body.is_empty() || !after.starts_with(char::is_whitespace) {
        let at = offset_in(text, after);
        return Err(Error::syntax("CronString does not have interval after @every")
            .at(at.saturating_sub("@every".len())..at)
            .with_help("write a duration and maybe a phase, as in `@every 5h/45m`"));
    }
    let (interval, phase) =
        body.split_once('/').map_or((body, None), |(interval, phase)| (interval, Some(phase)));
    let read = |part: &str| {
        let part = part.trim();
        let start = offset_in(text, part);
        duration::parse_duration(part).map_err(|error| {
            let span = error.span().unwrap_or(0..part.len());
            error.at(start + span.start..start + span.end.max(span.start + 1)).retold_in(text)
        })
    };
    let interval =
        Interval::every(read(interval)?).phase(phase.map_or(Ok(jiff::SignedDuration::ZERO), read)?);
    let at = offset_in(text, body);
    interval.seconds().map_err(|error| error.at(at..at + body.len()))?;
    Ok(interval)
}

fn shorthand(word: &str) -> Option<&'static str> {
    Some(match word {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => return None,
    })
}

/// The fields of one cron string, each with its offset; a field that is not written has no text.
struct Fields<'t> {
    second: Option<(usize, &'t str)>,
    minute: (usize, &'t str),
    hour: (usize, &'t str),
    day_of_month: (usize, &'t str),
    month: (usize, &'t str),
    day_of_week: (usize, &'t str),
    year: Option<(usize, &'t str)>,
    dialect: Dialect,
    hasher: Hasher<'t>,
}

impl<'t> Fields<'t> {
    fn split(text: &str, rest: &'t str, dialect: Dialect, hasher: Hasher<'t>) -> Result<Fields<'t>, Error> {
        let at = offset_in(text, rest);
        let parts: Vec<(usize, &str)> =
            rest.split_whitespace().map(|part| (at + offset_in(rest, part), part)).collect();
        let (second, five, year) = match (dialect, &parts[..]) {
            (Dialect::Temporal | Dialect::Unix, five) if five.len() == 5 => (None, five, None),
            (Dialect::Temporal, [five @ .., year]) if five.len() == 5 => (None, five, Some(*year)),
            (Dialect::Temporal | Dialect::Quartz, [second, five @ .., year]) if five.len() == 5 => {
                (Some(*second), five, Some(*year))
            }
            (Dialect::Quartz, [second, five @ ..]) if five.len() == 5 => (Some(*second), five, None),
            (dialect, parts) => return Err(wrong_count(dialect, parts.len(), at..at + rest.len().max(1))),
        };
        let [minute, hour, day_of_month, month, day_of_week] = five else {
            unreachable!("the match above asks for five fields")
        };
        Ok(Fields {
            second,
            minute: *minute,
            hour: *hour,
            day_of_month: *day_of_month,
            month: *month,
            day_of_week: *day_of_week,
            year,
            dialect,
            hasher,
        })
    }

    fn read(&self, kind: &'static FieldKind, (at, text): (usize, &str)) -> Result<Values, Error> {
        field::values(kind, text, at, self.dialect, self.hasher).map_err(|error| error.in_field(kind.key))
    }

    fn calendars(&self, text: &str, comment: &str) -> Result<Vec<Calendar>, Error> {
        let second = match self.second {
            Some(second) => self.read(&SECOND, second)?.ranges,
            None => vec![Range::at(0)],
        };
        let year = match self.year {
            Some(year) => {
                every_year(year.1, self.read(&YEAR, year).map_err(|error| self.six_fields(error))?.ranges)
            }
            None => Vec::new(),
        };
        let month_days = self.read(&DAY_OF_MONTH, self.day_of_month)?;
        let week_days = self.read(&DAY_OF_WEEK, self.day_of_week)?;
        self.check_quartz_days(text, &month_days, &week_days)?;
        let calendar = Calendar {
            second,
            minute: self.read(&MINUTE, self.minute)?.ranges,
            hour: self.read(&HOUR, self.hour)?.ranges,
            day_of_month: month_days.ranges,
            day_of_month_terms: month_days.month_terms,
            month: self.read(&MONTH, self.month)?.ranges,
            day_of_week: week_days.ranges,
            day_of_week_terms: week_days.week_terms,
            year,
            comment: comment.to_owned(),
        };
        Ok(if self.either_day() { either(calendar) } else { vec![calendar] })
    }

    /// Six fields with the second first are a habit of other tools; here the sixth is the year.
    fn six_fields(&self, error: Error) -> Error {
        match self.second {
            Some(_) => error,
            None => error.with_help("the sixth field is the year; for seconds first use the quartz dialect"),
        }
    }

    /// Classic cron: if neither day field starts with a star, a day that fits one of them is enough.
    fn either_day(&self) -> bool {
        self.dialect == Dialect::Unix
            && !self.day_of_month.1.starts_with('*')
            && !self.day_of_week.1.starts_with('*')
    }

    /// Quartz wants a `?` in one day field; we are content if one of them does not choose.
    fn check_quartz_days(&self, text: &str, month_days: &Values, week_days: &Values) -> Result<(), Error> {
        if self.dialect != Dialect::Quartz {
            return Ok(());
        }
        let open = |values: &Values, (_, text): (usize, &str)| values.any || text == "*";
        let span = self.day_of_week.0..self.day_of_week.0 + self.day_of_week.1.len();
        if month_days.any && week_days.any {
            return Err(Error::syntax("DayOfMonth and DayOfWeek are both `?`, one of them must choose")
                .at(span)
                .in_text(text)
                .in_field(DAY_OF_WEEK.key));
        }
        if !open(month_days, self.day_of_month) && !open(week_days, self.day_of_week) {
            return Err(Error::syntax(
                "DayOfMonth and DayOfWeek both choose, the quartz dialect allows one of them",
            )
            .at(span)
            .in_text(text)
            .in_field(DAY_OF_WEEK.key)
            .with_help("write `?` for the other, or use the temporal (and) or the unix (or) dialect"));
        }
        Ok(())
    }
}

fn either(calendar: Calendar) -> Vec<Calendar> {
    let by_month = Calendar { day_of_week: Calendar::midnight().day_of_week, ..calendar.clone() };
    let by_week = Calendar { day_of_month: Calendar::midnight().day_of_month, ..calendar };
    vec![by_month, by_week]
}

fn wrong_count(dialect: Dialect, found: usize, span: std::ops::Range<usize>) -> Error {
    let (expected, help) = match (dialect, found) {
        (Dialect::Temporal, _) => {
            ("5-7", "minute hour day month weekday; a year may follow, then a second lead")
        }
        (Dialect::Unix, 6 | 7) => ("5", "the unix dialect has no seconds and no years, the others do"),
        (Dialect::Unix, _) => ("5", "minute hour day month weekday"),
        (Dialect::Quartz, 5) => ("6-7", "the quartz dialect begins with seconds: put `0` in front"),
        (Dialect::Quartz, _) => ("6-7", "second minute hour day month weekday; a year may follow"),
    };
    Error::syntax(format!("CronString does not have {expected} fields, found {found}"))
        .at(span)
        .with_help(help)
}
