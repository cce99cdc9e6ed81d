//! Calendars, dates and named calendars to rules on the wall clock.

use super::Meter;
use crate::calendar::{self, Calendar, DayOfMonthTerm, DayOfWeekTerm, Range};
use crate::civil::{DAY_MAX, DAY_MIN, MONTHS, Month, day_of_date, month};
use crate::days::bits::DayBits;
use crate::days::{ALL_YEARS, DaySet, Pattern};
use crate::error::Error;
use crate::limits::{ROLL_DAYS_MAX, TIMES_MAX, YEAR_MIN};
use crate::named::{CalendarMode, NamedCalendar, Roll};
use crate::spec::{Environment, Spec};
use crate::time_of_day::TimeOfDay;
use crate::wall::WallRule;

/// The calendars of a spec as rules, rolled by its named calendars.
pub(super) fn sources(
    spec: &Spec,
    environment: &Environment,
    meter: &mut Meter,
) -> Result<Vec<WallRule>, Error> {
    let closed = closed_days(spec, environment)?;
    let rolls = Rolls::new(spec, environment)?;
    let mut rules = Vec::new();
    for calendar in &spec.calendars {
        meter.step(cost_of(calendar), "reading the calendars")?;
        let mut rule = calendar_rule(calendar, &closed);
        if let Some(rolls) = &rolls {
            meter.step(1_000, "rolling the calendars")?;
            rule.days = rolls.roll(&rule.days);
        }
        if !rule.is_empty() {
            rules.push(rule);
        }
    }
    Ok(merge(rules))
}

/// Everything that a spec takes away, as rules.
pub(super) fn exclusions(
    spec: &Spec,
    environment: &Environment,
    meter: &mut Meter,
) -> Result<Vec<WallRule>, Error> {
    let closed = closed_days(spec, environment)?;
    let mut rules = Vec::new();
    for exclusion in &spec.exclusions {
        meter.step(cost_of(exclusion), "reading the exclusions")?;
        rules.push(calendar_rule(exclusion, &closed));
    }
    let mut dates = DayBits::none();
    for day in spec.exclusion_dates.iter().filter_map(|date| day_of_date(*date)) {
        dates.insert(day);
    }
    rules.push(WallRule { days: DaySet::listed(dates), time: TimeOfDay::ALL });
    for (index, rule) in spec.calendar_rules.iter().enumerate() {
        meter.step(100, "reading the named calendars")?;
        let named = named(environment, &rule.calendar)
            .map_err(|error| error.in_field(&format!("calendar_rule[{index}]")))?;
        if rule.roll == Roll::Skip {
            rules.push(WallRule { days: DaySet::listed(forbidden(named, rule.mode)), time: TimeOfDay::ALL });
        }
    }
    rules.retain(|rule| !rule.is_empty());
    join(rules, meter)
}

/// Business days are counted through a century, other days through 28 shapes of a month.
fn cost_of(calendar: &Calendar) -> u64 {
    if calendar::business_terms(calendar) { 400 } else { 10 }
}

/// One calendar as a rule.
pub(crate) fn calendar_rule(calendar: &Calendar, closed: &Option<DayBits>) -> WallRule {
    let bits = |ranges: &[Range]| {
        ranges.iter().flat_map(|range| range.values()).fold(0u64, |bits, value| bits | 1 << value)
    };
    let time = TimeOfDay {
        hours: bits(&calendar.hour) as u32,
        minutes: bits(&calendar.minute),
        seconds: bits(&calendar.second),
    };
    let months = (bits(&calendar.month) >> 1) as u16;
    let years = if calendar.year.is_empty() {
        ALL_YEARS
    } else {
        let values = calendar.year.iter().flat_map(|range| range.values());
        values.fold(0, |years, year| years | 1u128 << (year - i32::from(YEAR_MIN)))
    };
    let by_shape = |days: &dyn Fn(u8, u8) -> u32| DaySet::Pattern(Pattern::new(years, months, days));
    let week_days = bits(&calendar.day_of_week);
    let fits_week = |len: u8, first_weekday: u8| {
        let terms = calendar.day_of_week_terms.iter().map(|term| match *term {
            DayOfWeekTerm::Nth { weekday, nth } => {
                days_of_weekday(first_weekday, weekday) & (0xfe << (nth * 7 - 7))
            }
            DayOfWeekTerm::Last { weekday } => days_of_weekday(first_weekday, weekday) & (0xfe << (len - 7)),
        });
        let plain = (0..7).filter(|weekday| week_days >> weekday & 1 == 1);
        plain
            .map(|weekday| days_of_weekday(first_weekday, weekday))
            .chain(terms)
            .fold(0, |days, more| days | more)
    };
    let month_days = bits(&calendar.day_of_month) as u32;
    let fits_month = |len: u8, first_weekday: u8| {
        let terms = calendar.day_of_month_terms.iter().map(|term| match *term {
            DayOfMonthTerm::LastDay { before } => len.checked_sub(before).map_or(0, |day| 1 << day),
            DayOfMonthTerm::NearestWeekday { day } => nearest_weekday(len, first_weekday, day),
            DayOfMonthTerm::LastWeekday => nearest_weekday(len, first_weekday, len),
            // These depend on the dates, not on the shape of the month alone.
            DayOfMonthTerm::BusinessDay { .. } | DayOfMonthTerm::NearestBusinessDay { .. } => 0,
        });
        terms.fold(month_days, |days, more| days | more)
    };
    let mut days = by_shape(&|len, first| fits_month(len, first) & fits_week(len, first));
    if let Some(closed) = closed.as_ref().filter(|_| calendar::business_terms(calendar)) {
        let business = DaySet::listed(business_days(&calendar.day_of_month_terms, closed));
        days = days.union(&business.intersect(&by_shape(&fits_week)));
    }
    WallRule { days, time }
}

/// The days of a month that fall on a weekday, bit n for day n.
fn days_of_weekday(first_weekday: u8, weekday: u8) -> u32 {
    const EVERY_SEVENTH: u32 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28;
    EVERY_SEVENTH << ((weekday + 7 - first_weekday) % 7 + 1)
}

/// Monday to Friday, nearest to a day without leaving the month, as Quartz has it.
fn nearest_weekday(len: u8, first_weekday: u8, day: u8) -> u32 {
    if day > len {
        return 0;
    }
    1 << match (first_weekday + day - 1) % 7 {
        6 if day == 1 => 3,
        6 => day - 1,
        0 if day == len => day - 2,
        0 => day + 1,
        _ => day,
    }
}

/// The days that the business-day terms choose, month by month.
fn business_days(terms: &[DayOfMonthTerm], closed: &DayBits) -> DayBits {
    let mut chosen = DayBits::none();
    for index in 0..MONTHS {
        let Month { first_day, len, .. } = month(index);
        let open = !closed.month(first_day, len) & (u32::MAX >> (31 - len) & !1);
        let days = terms.iter().map(|term| match *term {
            DayOfMonthTerm::BusinessDay { nth } if nth > 0 => {
                lowest_bit((1..nth).fold(open, |left, _| left & left.wrapping_sub(1)))
            }
            DayOfMonthTerm::BusinessDay { nth } => {
                highest_bit((1..nth.unsigned_abs()).fold(open, |left, _| left & !highest_bit(left)))
            }
            DayOfMonthTerm::NearestBusinessDay { day } if day <= len => nearest_bit(open, day),
            DayOfMonthTerm::NearestBusinessDay { .. }
            | DayOfMonthTerm::LastDay { .. }
            | DayOfMonthTerm::NearestWeekday { .. }
            | DayOfMonthTerm::LastWeekday => 0,
        });
        chosen.insert_month(first_day, days.fold(0, |days, more| days | more));
    }
    chosen
}

fn lowest_bit(mask: u32) -> u32 {
    mask & mask.wrapping_neg()
}

fn highest_bit(mask: u32) -> u32 {
    mask.checked_ilog2().map_or(0, |bit| 1 << bit)
}

/// The bit nearest to a place, the lower one of two.
fn nearest_bit(mask: u32, place: u8) -> u32 {
    let below = highest_bit(mask & (u32::MAX >> (31 - place)));
    let above = lowest_bit(mask & (u32::MAX << place));
    let distance = |bit: u32| if bit == 0 { u32::MAX } else { bit.ilog2().abs_diff(place.into()) };
    if distance(below) <= distance(above) { below } else { above }
}

/// The days closed for business, if any calendar asks.
fn closed_days(spec: &Spec, environment: &Environment) -> Result<Option<DayBits>, Error> {
    let named = match &spec.business_calendar {
        Some(name) => named(environment, name).map_err(|error| error.in_field("business_calendar"))?,
        None => &NamedCalendar::default(),
    };
    let asked = spec.calendars.iter().chain(&spec.exclusions).any(calendar::business_terms);
    Ok(asked.then(|| named.closed_days()))
}

fn named<'e>(environment: &'e Environment, name: &str) -> Result<&'e NamedCalendar, Error> {
    let Some(named) = environment.calendar(name) else {
        let known: Vec<String> = environment.calendar_names().map(|known| format!("`{known}`")).collect();
        let help = if known.is_empty() {
            "no calendar is known".into()
        } else {
            format!("known are {}", known.join(", "))
        };
        return Err(Error::calendar(format!("unknown calendar `{name}`")).with_help(help));
    };
    if named.dates_len() > TIMES_MAX {
        return Err(Error::limit(format!("calendar `{name}` has more than {TIMES_MAX} dates")));
    }
    Ok(named)
}

fn forbidden(named: &NamedCalendar, mode: CalendarMode) -> DayBits {
    match mode {
        CalendarMode::Exclude => named.days(),
        CalendarMode::Include => {
            let mut others = DaySet::all().to_bits();
            others.remove(&named.days());
            others
        }
    }
}

/// The rules that move occurrences to another day.
struct Rolls {
    /// Each rule's forbidden days and its direction, in the order of the spec.
    moving: Vec<(DayBits, Roll)>,
    /// Days that all rules allow, those that only skip included.
    allowed: DayBits,
    /// Days on which an occurrence is skipped rather than moved.
    skipped: DayBits,
}

impl Rolls {
    fn new(spec: &Spec, environment: &Environment) -> Result<Option<Rolls>, Error> {
        let mut rolls =
            Rolls { moving: Vec::new(), allowed: DaySet::all().to_bits(), skipped: DayBits::none() };
        for (index, rule) in spec.calendar_rules.iter().enumerate() {
            let place = format!("calendar_rule[{index}]");
            let named = named(environment, &rule.calendar).map_err(|error| error.in_field(&place))?;
            let forbidden = forbidden(named, rule.mode);
            rolls.allowed.remove(&forbidden);
            if rule.roll == Roll::Skip {
                rolls.skipped.insert_all(&forbidden);
                continue;
            }
            if !spec.intervals.is_empty() || !spec.times.is_empty() {
                return Err(Error::value("only calendars and cron strings can roll to another day")
                    .in_field(&place)
                    .with_help("intervals and single times name instants: let the rule skip them instead"));
            }
            rolls.moving.push((forbidden, rule.roll));
        }
        Ok((!rolls.moving.is_empty()).then_some(rolls))
    }

    fn roll(&self, days: &DaySet) -> DaySet {
        let mut rolled = DayBits::none();
        let mut from = DAY_MIN;
        while let Some(day) = days.at_or_after(from) {
            from = day + 1;
            if self.skipped.contains(day) {
                continue;
            }
            let target = match self.moving.iter().find(|(forbidden, _)| forbidden.contains(day)) {
                None => Some(day),
                Some((_, Roll::Forward)) if day < DAY_MAX => self.allowed.at_or_after(day + 1),
                Some((_, Roll::Back)) if day > DAY_MIN => self.allowed.at_or_before(day - 1),
                Some((_, Roll::Forward | Roll::Back | Roll::Skip)) => None,
            };
            if let Some(target) = target.filter(|target| (target - day).abs() <= ROLL_DAYS_MAX) {
                rolled.insert(target);
            }
        }
        DaySet::listed(rolled)
    }
}

/// Makes one rule of those with equal times, where their days together are still a compact pattern.
pub(super) fn merge(mut rules: Vec<WallRule>) -> Vec<WallRule> {
    rules.sort_by_key(|rule| rule.time);
    let mut merged: Vec<WallRule> = Vec::with_capacity(rules.len());
    for rule in rules {
        let union = merged
            .last()
            .filter(|last| last.time == rule.time)
            .and_then(|last| last.days.union_as_pattern(&rule.days));
        match (union, merged.last_mut()) {
            (Some(days), Some(last)) => last.days = days,
            _ => merged.push(rule),
        }
    }
    merged
}

/// Makes one rule of all those with equal times.
fn join(mut rules: Vec<WallRule>, meter: &mut Meter) -> Result<Vec<WallRule>, Error> {
    rules.sort_by_key(|rule| rule.time);
    let mut joined: Vec<WallRule> = Vec::with_capacity(rules.len());
    for rule in rules {
        match joined.last_mut().filter(|last| last.time == rule.time) {
            Some(last) => {
                meter.days(&last.days, &rule.days, "joining the exclusions")?;
                last.days = last.days.union(&rule.days);
            }
            None => joined.push(rule),
        }
    }
    Ok(joined)
}
