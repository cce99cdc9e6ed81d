//! Specs.

use punctual_api::v1;
use punctual_spec as core;

use super::time::{instant, length, length_to_wire, to_wire};
use super::word;
use crate::status::{Fault, found};

/// A spec from the wire. Its rules are checked when it is compiled.
pub(crate) fn from_wire(wire: v1::Spec) -> Result<core::Spec, Fault> {
    let mut spec = core::Spec::new();
    spec.calendars = each("calendars", wire.calendars, calendar)?;
    spec.calendar_texts = wire.calendar_texts.into_iter().map(calendar_text).collect();
    spec.crons = each("crons", wire.crons, cron)?;
    spec.intervals = each("intervals", wire.intervals, interval)?;
    spec.times = each("times", wire.times, |time| super::time::needed("", Some(&time)))?;
    spec.exclusions = each("exclusions", wire.exclusions, calendar)?;
    spec.exclusion_texts = wire.exclusion_texts.into_iter().map(calendar_text).collect();
    spec.exclusion_crons = each("exclusion_crons", wire.exclusion_crons, cron)?;
    spec.exclusion_dates = each("exclusion_dates", wire.exclusion_dates, |text| {
        text.parse().map_err(|_| {
            Fault::field("", format!("is no date, expected one such as 2026-12-25, found {}", found(&text)))
        })
    })?;
    spec.calendar_rules = each("calendar_rules", wire.calendar_rules, calendar_rule)?;
    spec.business_calendar = wire.business_calendar;
    spec.start_time = instant("start_time", wire.start_time.as_ref())?;
    spec.end_time = instant("end_time", wire.end_time.as_ref())?;
    spec.jitter = length("jitter", wire.jitter.as_ref())?.unwrap_or_default();
    spec.zone = wire.zone;
    spec.zone_data = wire.zone_data;
    spec.gap = match word("gap", wire.gap)? {
        v1::gap::Policy::Unspecified | v1::gap::Policy::Skip => core::Gap::Skip,
        v1::gap::Policy::After => core::Gap::After,
    };
    spec.fold = match word("fold", wire.fold)? {
        v1::fold::Policy::Unspecified | v1::fold::Policy::Both => core::Fold::Both,
        v1::fold::Policy::First => core::Fold::First,
        v1::fold::Policy::Last => core::Fold::Last,
    };
    Ok(spec)
}

fn each<W, C>(list: &str, wires: Vec<W>, convert: impl Fn(W) -> Result<C, Fault>) -> Result<Vec<C>, Fault> {
    let numbered = wires.into_iter().enumerate();
    numbered
        .map(|(place, wire)| convert(wire).map_err(|fault| fault.within(&format!("{list}[{place}]"))))
        .collect()
}

fn cron(wire: v1::Cron) -> Result<core::Cron, Fault> {
    let dialect = match word("dialect", wire.dialect)? {
        v1::dialect::Name::Unspecified | v1::dialect::Name::Temporal => core::Dialect::Temporal,
        v1::dialect::Name::Unix => core::Dialect::Unix,
        v1::dialect::Name::Quartz => core::Dialect::Quartz,
    };
    Ok(core::Cron::new(dialect, wire.text))
}

fn interval(wire: v1::Interval) -> Result<core::Interval, Fault> {
    let every = length("every", wire.every.as_ref())?
        .ok_or_else(|| Fault::field("every", "is missing, expected a length of time such as 90s"))?;
    let phase = length("phase", wire.phase.as_ref())?.unwrap_or_default();
    let interval = core::Interval::every(every).phase(phase);
    Ok(match instant("anchor", wire.anchor.as_ref())? {
        Some(anchor) => interval.anchored_at(anchor),
        None => interval,
    })
}

fn calendar_rule(wire: v1::CalendarRule) -> Result<core::CalendarRule, Fault> {
    let rule = match word("mode", wire.mode)? {
        v1::calendar_mode::Word::Unspecified | v1::calendar_mode::Word::Exclude => {
            core::CalendarRule::exclude(wire.calendar)
        }
        v1::calendar_mode::Word::Include => core::CalendarRule::only_on(wire.calendar),
    };
    Ok(rule.roll(match word("roll", wire.roll)? {
        v1::roll::Policy::Unspecified | v1::roll::Policy::Skip => core::Roll::Skip,
        v1::roll::Policy::Forward => core::Roll::Forward,
        v1::roll::Policy::Back => core::Roll::Back,
    }))
}

fn calendar(wire: v1::Calendar) -> Result<core::Calendar, Fault> {
    let mut calendar = core::Calendar::default();
    calendar.second = each("second", wire.second, range)?;
    calendar.minute = each("minute", wire.minute, range)?;
    calendar.hour = each("hour", wire.hour, range)?;
    calendar.day_of_month = each("day_of_month", wire.day_of_month, range)?;
    calendar.day_of_month_terms = each("day_of_month_terms", wire.day_of_month_terms, day_of_month_term)?;
    calendar.month = each("month", wire.month, range)?;
    calendar.day_of_week = each("day_of_week", wire.day_of_week, range)?;
    calendar.day_of_week_terms = each("day_of_week_terms", wire.day_of_week_terms, day_of_week_term)?;
    calendar.year = each("year", wire.year, range)?;
    calendar.comment = wire.comment;
    Ok(calendar)
}

fn range(wire: v1::Range) -> Result<core::Range, Fault> {
    let (start, end, step) = (wire.start, wire.end.unwrap_or(wire.start), wire.step.unwrap_or(1));
    if end < start {
        return Err(Fault::field("end", format!("is {end}, at least the start {start} is needed")));
    }
    if step < 1 {
        return Err(Fault::field("step", format!("is {step}, at least 1 is needed")));
    }
    Ok(core::Range::new(start, end, step))
}

fn small<N: TryFrom<i64>>(field: &str, number: i64) -> Result<N, Fault> {
    N::try_from(number).map_err(|_| Fault::field(field, format!("{number} is out of range")))
}

fn day_of_month_term(wire: v1::DayOfMonthTerm) -> Result<core::DayOfMonthTerm, Fault> {
    use v1::day_of_month_term::Kind;
    Ok(match wire.kind {
        None => return Err(Fault::field("", "is empty, expected one of its fields")),
        Some(Kind::LastDay(before)) => {
            core::DayOfMonthTerm::LastDay { before: small("last_day", before.into())? }
        }
        Some(Kind::NearestWeekday(day)) => {
            core::DayOfMonthTerm::NearestWeekday { day: small("nearest_weekday", day.into())? }
        }
        Some(Kind::LastWeekday(())) => core::DayOfMonthTerm::LastWeekday,
        Some(Kind::BusinessDay(nth)) => {
            core::DayOfMonthTerm::BusinessDay { nth: small("business_day", nth.into())? }
        }
        Some(Kind::NearestBusinessDay(day)) => {
            core::DayOfMonthTerm::NearestBusinessDay { day: small("nearest_business_day", day.into())? }
        }
    })
}

fn day_of_week_term(wire: v1::DayOfWeekTerm) -> Result<core::DayOfWeekTerm, Fault> {
    use v1::day_of_week_term::Kind;
    Ok(match wire.kind {
        None => return Err(Fault::field("", "is empty, expected one of its fields")),
        Some(Kind::Nth(nth)) => core::DayOfWeekTerm::Nth {
            weekday: small("nth.weekday", nth.weekday.into())?,
            nth: small("nth.nth", nth.nth.into())?,
        },
        Some(Kind::Last(weekday)) => core::DayOfWeekTerm::Last { weekday: small("last", weekday.into())? },
    })
}

fn calendar_text(wire: v1::CalendarText) -> core::CalendarText {
    let mut text = core::CalendarText::default();
    text.second = wire.second;
    text.minute = wire.minute;
    text.hour = wire.hour;
    text.day_of_month = wire.day_of_month;
    text.month = wire.month;
    text.day_of_week = wire.day_of_week;
    text.year = wire.year;
    text.comment = wire.comment;
    text
}

/// A spec for the wire.
pub(crate) fn to_wire_spec(spec: &core::Spec) -> v1::Spec {
    v1::Spec {
        calendars: spec.calendars.iter().map(calendar_to_wire).collect(),
        calendar_texts: spec.calendar_texts.iter().map(calendar_text_to_wire).collect(),
        crons: spec.crons.iter().map(cron_to_wire).collect(),
        intervals: spec.intervals.iter().map(interval_to_wire).collect(),
        times: spec.times.iter().map(|time| to_wire(*time)).collect(),
        exclusions: spec.exclusions.iter().map(calendar_to_wire).collect(),
        exclusion_texts: spec.exclusion_texts.iter().map(calendar_text_to_wire).collect(),
        exclusion_crons: spec.exclusion_crons.iter().map(cron_to_wire).collect(),
        exclusion_dates: spec.exclusion_dates.iter().map(ToString::to_string).collect(),
        calendar_rules: spec.calendar_rules.iter().map(rule_to_wire).collect(),
        business_calendar: spec.business_calendar.clone(),
        start_time: spec.start_time.map(to_wire),
        end_time: spec.end_time.map(to_wire),
        jitter: (!spec.jitter.is_zero()).then(|| length_to_wire(spec.jitter)),
        zone: spec.zone.clone(),
        zone_data: spec.zone_data.clone(),
        gap: match spec.gap {
            core::Gap::Skip => v1::gap::Policy::Skip,
            core::Gap::After => v1::gap::Policy::After,
        }
        .into(),
        fold: match spec.fold {
            core::Fold::Both => v1::fold::Policy::Both,
            core::Fold::First => v1::fold::Policy::First,
            core::Fold::Last => v1::fold::Policy::Last,
        }
        .into(),
    }
}

fn cron_to_wire(cron: &core::Cron) -> v1::Cron {
    let dialect = match cron.dialect {
        core::Dialect::Temporal => v1::dialect::Name::Temporal,
        core::Dialect::Unix => v1::dialect::Name::Unix,
        core::Dialect::Quartz => v1::dialect::Name::Quartz,
        // The spec crate may learn a dialect before the contract does.
        _ => v1::dialect::Name::Unspecified,
    };
    v1::Cron { text: cron.text.clone(), dialect: dialect.into() }
}

fn interval_to_wire(interval: &core::Interval) -> v1::Interval {
    v1::Interval {
        every: Some(length_to_wire(interval.every)),
        phase: (!interval.phase.is_zero()).then(|| length_to_wire(interval.phase)),
        anchor: interval.anchor.map(to_wire),
    }
}

fn rule_to_wire(rule: &core::CalendarRule) -> v1::CalendarRule {
    let mode = match rule.mode {
        core::CalendarMode::Include => v1::calendar_mode::Word::Include,
        core::CalendarMode::Exclude => v1::calendar_mode::Word::Exclude,
    };
    let roll = match rule.roll {
        core::Roll::Skip => v1::roll::Policy::Skip,
        core::Roll::Forward => v1::roll::Policy::Forward,
        core::Roll::Back => v1::roll::Policy::Back,
    };
    v1::CalendarRule { calendar: rule.calendar.clone(), mode: mode.into(), roll: roll.into() }
}

fn calendar_to_wire(calendar: &core::Calendar) -> v1::Calendar {
    let ranges = |ranges: &[core::Range]| ranges.iter().map(range_to_wire).collect();
    v1::Calendar {
        second: ranges(&calendar.second),
        minute: ranges(&calendar.minute),
        hour: ranges(&calendar.hour),
        day_of_month: ranges(&calendar.day_of_month),
        day_of_month_terms: calendar.day_of_month_terms.iter().map(month_term_to_wire).collect(),
        month: ranges(&calendar.month),
        day_of_week: ranges(&calendar.day_of_week),
        day_of_week_terms: calendar.day_of_week_terms.iter().map(week_term_to_wire).collect(),
        year: ranges(&calendar.year),
        comment: calendar.comment.clone(),
    }
}

fn range_to_wire(range: &core::Range) -> v1::Range {
    let core::Range { start, end, step } = range.filled();
    v1::Range { start, end: (end != start).then_some(end), step: (step != 1).then_some(step) }
}

fn month_term_to_wire(term: &core::DayOfMonthTerm) -> v1::DayOfMonthTerm {
    use v1::day_of_month_term::Kind;
    let kind = match *term {
        core::DayOfMonthTerm::LastDay { before } => Some(Kind::LastDay(before.into())),
        core::DayOfMonthTerm::NearestWeekday { day } => Some(Kind::NearestWeekday(day.into())),
        core::DayOfMonthTerm::LastWeekday => Some(Kind::LastWeekday(())),
        core::DayOfMonthTerm::BusinessDay { nth } => Some(Kind::BusinessDay(nth.into())),
        core::DayOfMonthTerm::NearestBusinessDay { day } => Some(Kind::NearestBusinessDay(day.into())),
        // The spec crate may learn a term before the contract does.
        _ => None,
    };
    v1::DayOfMonthTerm { kind }
}

fn week_term_to_wire(term: &core::DayOfWeekTerm) -> v1::DayOfWeekTerm {
    use v1::day_of_week_term::Kind;
    let kind = match *term {
        core::DayOfWeekTerm::Nth { weekday, nth } => {
            Some(Kind::Nth(v1::day_of_week_term::Nth { weekday: weekday.into(), nth: nth.into() }))
        }
        core::DayOfWeekTerm::Last { weekday } => Some(Kind::Last(weekday.into())),
        // The spec crate may learn a term before the contract does.
        _ => None,
    };
    v1::DayOfWeekTerm { kind }
}

fn calendar_text_to_wire(text: &core::CalendarText) -> v1::CalendarText {
    v1::CalendarText {
        second: text.second.clone(),
        minute: text.minute.clone(),
        hour: text.hour.clone(),
        day_of_month: text.day_of_month.clone(),
        month: text.month.clone(),
        day_of_week: text.day_of_week.clone(),
        year: text.year.clone(),
        comment: text.comment.clone(),
    }
}

/// An occurrence for the wire.
pub(crate) fn occurrence(occurrence: &core::Occurrence) -> v1::Occurrence {
    v1::Occurrence {
        nominal_time: Some(to_wire(occurrence.nominal_time)),
        due_time: Some(to_wire(occurrence.due_time)),
    }
}

/// A finding for the wire.
pub(crate) fn lint(lint: core::Lint) -> v1::Lint {
    v1::Lint {
        code: lint.code.name().into(),
        message: lint.message,
        help: lint.help,
        field: lint.field,
        position: lint.position.and_then(|position| u32::try_from(position).ok()),
        dates: lint.dates.iter().map(ToString::to_string).collect(),
    }
}
