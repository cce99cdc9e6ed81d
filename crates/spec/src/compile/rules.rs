//! Calendars, dates and named calendars to rules on the wall clock.

use jiff::civil::Date;

use super::Meter;
use crate::calendar::{self, Calendar, DayOfMonthTerm, DayOfWeekTerm, Range};
use crate::civil::{DAY_MAX, DAY_MIN, MONTHS, Month, day_of_date, month};
use crate::days::bits::DayBits;
use crate::days::{ALL_YEARS, DaySet, Pattern, days_of_weekday};
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
    let rolls = Rolls::new(spec, environment, meter)?;
    let mut rules = Vec::new();
    for calendar in &spec.calendars {
        meter.step(cost_of(calendar), "reading the calendars")?;
        let mut rule = calendar_rule(calendar, &closed);
        if let Some(rolls) = &rolls {
            meter.step(2_000, "rolling the calendars")?;
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
        let named = named(environment, &rule.calendar)
            .map_err(|error| error.in_field(&format!("calendar_rule[{index}]")))?;
        meter.step(200 + named.dates_len() as u64, "reading the named calendars")?;
        if rule.roll == Roll::Skip {
            rules.push(WallRule { days: DaySet::listed(forbidden(named, rule.mode)), time: TimeOfDay::ALL });
        }
    }
    rules.retain(|rule| !rule.is_empty());
    join(rules, meter)
}

/// Business days are counted through a century, other days through 28 shapes of a month.
fn cost_of(calendar: &Calendar) -> u64 {
    let terms = (calendar.day_of_month_terms.len() + calendar.day_of_week_terms.len()) as u64;
    let each = if calendar::business_terms(calendar) { 400 } else { 2 };
    10 + terms * each
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

/// The rules that move occurrences to another day, as sets: each day is in at most one of the first three.
struct Rolls {
    forward: DayBits,
    back: DayBits,
    /// Days on which an occurrence is skipped rather than moved.
    skipped: DayBits,
    /// Days that all rules allow, those that only skip included.
    allowed: DayBits,
}

impl Rolls {
    fn new(spec: &Spec, environment: &Environment, meter: &mut Meter) -> Result<Option<Rolls>, Error> {
        if spec.calendar_rules.iter().all(|rule| rule.roll == Roll::Skip) {
            return Ok(None);
        }
        let (mut forward, mut back, mut skipped) = (DayBits::none(), DayBits::none(), DayBits::none());
        let mut allowed = DaySet::all().to_bits();
        for (index, rule) in spec.calendar_rules.iter().enumerate() {
            let place = format!("calendar_rule[{index}]");
            let named = named(environment, &rule.calendar).map_err(|error| error.in_field(&place))?;
            meter.step(200 + named.dates_len() as u64, "reading the named calendars")?;
            let mut forbidden = forbidden(named, rule.mode);
            allowed.remove(&forbidden);
            if rule.roll != Roll::Skip && (!spec.intervals.is_empty() || !spec.times.is_empty()) {
                return Err(Error::value("only calendars and cron strings can roll to another day")
                    .in_field(&place)
                    .with_help("intervals and single times name instants: let the rule skip them instead"));
            }
            // A list of allowed dates says nothing about the time before and after it.
            if let (CalendarMode::Include, Some(coverage)) = (rule.mode, named.coverage()) {
                let outside = outside(coverage);
                skipped.insert_all(&outside);
                forbidden.remove(&outside);
            }
            match rule.roll {
                Roll::Skip => skipped.insert_all(&forbidden),
                // The first rule that forbids a day decides where it goes.
                Roll::Forward => {
                    forbidden.remove(&back);
                    forward.insert_all(&forbidden);
                }
                Roll::Back => {
                    forbidden.remove(&forward);
                    back.insert_all(&forbidden);
                }
            }
        }
        forward.remove(&skipped);
        back.remove(&skipped);
        Ok(Some(Rolls { forward, back, skipped, allowed }))
    }

    fn roll(&self, days: &DaySet) -> DaySet {
        let days = days.to_bits();
        let mut rolled = days.clone();
        for moved in [&self.forward, &self.back, &self.skipped] {
            rolled.remove(moved);
        }
        let both = |moving: &DayBits| {
            let mut moved = days.clone();
            moved.retain(moving);
            moved
        };
        for day in both(&self.forward).iter() {
            let target = self.allowed.at_or_after(day).filter(|target| target - day <= ROLL_DAYS_MAX);
            target.into_iter().for_each(|target| rolled.insert(target));
        }
        for day in both(&self.back).iter() {
            let target = self.allowed.at_or_before(day).filter(|target| day - target <= ROLL_DAYS_MAX);
            target.into_iter().for_each(|target| rolled.insert(target));
        }
        DaySet::listed(rolled)
    }
}

/// All days before the first and after the last of two dates.
fn outside((first, last): (Date, Date)) -> DayBits {
    let mut days = DaySet::all().to_bits();
    let first = day_of_date(first).unwrap_or(if first.year() < YEAR_MIN { DAY_MIN } else { DAY_MAX + 1 });
    let last = day_of_date(last).unwrap_or(if last.year() < YEAR_MIN { DAY_MIN - 1 } else { DAY_MAX });
    (first..=last).for_each(|day| days.take(day));
    days
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
                last.days = last.days.union(&rule.days);
                meter.days(&last.days, "joining the exclusions")?;
            }
            None => joined.push(rule),
        }
    }
    Ok(joined)
}
