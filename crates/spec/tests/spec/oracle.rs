//! A brute-force oracle agrees with the compiled spec: it asks every second (or quarter of an hour) of a
//! window what the wall clock shows, and compares field by field. It knows no masks, stretches or searches.

use jiff::civil::{Date, DateTime};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use punctual_spec::{Calendar, CompiledSpec, DayOfMonthTerm, DayOfWeekTerm, Fold, Gap, Range, Spec};

use crate::random::{self, Grain, Random};

/// 42 zones: every kind of shift (an hour, 30 minutes, 2 or 3 hours, a day, negative DST, odd offsets, none).
pub const ZONES: [&str; 42] = [
    "UTC",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Africa/Johannesburg",
    "Africa/Juba",
    "America/Asuncion",
    "America/Caracas",
    "America/Chicago",
    "America/Havana",
    "America/Los_Angeles",
    "America/New_York",
    "America/Nuuk",
    "America/Santiago",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Casey",
    "Antarctica/Macquarie",
    "Antarctica/Troll",
    "Asia/Amman",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Jerusalem",
    "Asia/Kathmandu",
    "Asia/Kolkata",
    "Asia/Pyongyang",
    "Asia/Tehran",
    "Asia/Tokyo",
    "Atlantic/Azores",
    "Australia/Adelaide",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Europe/Berlin",
    "Europe/Dublin",
    "Europe/Istanbul",
    "Europe/Lisbon",
    "Europe/London",
    "Europe/Moscow",
    "Europe/Volgograd",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Fakaofo",
    "Pacific/Norfolk",
];

/// One instant and what its wall clock shows.
struct Moment {
    instant: i64,
    wall: DateTime,
    /// The same wall time was shown before, or will be shown again.
    seen_before: bool,
    seen_again: bool,
}

/// A wall time that is skipped, and the first instant after the skip with its wall time.
struct Skipped {
    wall: DateTime,
    instant: i64,
    instant_wall: DateTime,
}

struct Window {
    zone: TimeZone,
    after: i64,
    through: i64,
    moments: Vec<Moment>,
    skipped: Vec<Skipped>,
}

impl Window {
    fn new(zone: &TimeZone, after: i64, through: i64, step: i64) -> Window {
        let (mut moments, mut skipped) = (Vec::new(), Vec::new());
        let offset_at = |instant: i64| i64::from(zone.to_offset(timestamp(instant)).seconds());
        let mut offsets = vec![offset_at(after - 86_400)];
        let near = zone.following(timestamp(after - 86_400));
        let near = near.take_while(|change| change.timestamp().as_second() < through + 86_400);
        offsets.extend(near.map(|change| i64::from(change.offset().seconds())));
        offsets.sort_unstable();
        offsets.dedup();
        for instant in (after + 1..=through).filter(|instant| instant % step == 0) {
            let offset = offset_at(instant);
            let wall = zone.to_datetime(timestamp(instant));
            // The same wall time under another offset, if that offset was in force then.
            let copy = |other: &i64| instant + offset - other;
            let copies = || offsets.iter().filter(|other| offset_at(copy(other)) == **other).map(copy);
            let seen_before = copies().any(|copy| copy < instant);
            let seen_again = copies().any(|copy| copy > instant);
            moments.push(Moment { instant, wall, seen_before, seen_again });
        }
        for change in
            zone.following(timestamp(after - 1)).take_while(|c| c.timestamp().as_second() <= through)
        {
            let instant = change.timestamp();
            let before = zone.to_datetime(instant - SignedDuration::from_secs(1));
            let (mut wall, instant_wall) = (before + SignedDuration::from_secs(1), zone.to_datetime(instant));
            while wall < instant_wall && instant.as_second() > after {
                if wall.to_zoned(TimeZone::UTC).unwrap().timestamp().as_second() % step == 0 {
                    skipped.push(Skipped { wall, instant: instant.as_second(), instant_wall });
                }
                wall += SignedDuration::from_secs(1);
            }
        }
        Window { zone: zone.clone(), after, through, moments, skipped }
    }

    /// All instants of the window at which the spec fires.
    fn expected(&self, spec: &Spec) -> Vec<i64> {
        let excluded = |wall: DateTime| {
            spec.exclusions.iter().any(|calendar| fits(calendar, wall, &weekend))
                || spec.exclusion_dates.contains(&wall.date())
        };
        let by_wall = |wall: DateTime| {
            spec.calendars.iter().any(|calendar| fits(calendar, wall, &weekend)) && !excluded(wall)
        };
        let by_instant = |moment: &Moment| {
            let ticks = spec.intervals.iter().any(|interval| {
                (moment.instant - interval.phase.as_secs()).rem_euclid(interval.every.as_secs()) == 0
            });
            let listed = spec.times.iter().any(|time| time.as_second() == moment.instant);
            (ticks || listed) && !excluded(moment.wall)
        };
        let copy_counts = |moment: &Moment| match spec.fold {
            Fold::Both => true,
            Fold::First => !moment.seen_before,
            Fold::Last => !moment.seen_again,
        };
        let mut fired: Vec<i64> = self
            .moments
            .iter()
            .filter(|moment| (by_wall(moment.wall) && copy_counts(moment)) || by_instant(moment))
            .map(|moment| moment.instant)
            .collect();
        if spec.gap == Gap::After {
            let moved = self.skipped.iter().filter(|s| by_wall(s.wall) && !excluded(s.instant_wall));
            fired.extend(moved.map(|skipped| skipped.instant));
        }
        fired.sort_unstable();
        fired.dedup();
        let start = spec.start_time.map_or(0, Timestamp::as_second);
        let end = spec.end_time.map_or(i64::MAX, Timestamp::as_second);
        fired.retain(|instant| (start..=end).contains(instant));
        fired
    }

    fn check(&self, spec: &Spec) {
        let compiled = match spec.compile() {
            Ok(compiled) => compiled,
            // Random intervals under random exclusions may be refused, but only for their cost.
            Err(error) => return assert!(error.is_limit(), "{error}: {spec:?}"),
        };
        let expected = self.expected(spec);
        let (after, through) = (timestamp(self.after), timestamp(self.through));
        let forward: Vec<i64> =
            compiled.iterate(after, through).map(|o| o.nominal_time.as_second()).collect();
        let zone = self.zone.iana_name();
        agree(&forward, &expected, || format!("next in {zone:?}, window from {after}: {spec:?}"));
        let backward = self.backward(&compiled);
        agree(&backward, &expected, || format!("previous in {zone:?}, window from {after}: {spec:?}"));
        for moment in self.moments.iter().step_by(7) {
            let matches = compiled.matches(timestamp(moment.instant));
            let fires = expected.binary_search(&moment.instant).is_ok();
            assert_eq!(matches, fires, "matches({}) in {zone:?}: {spec:?}", timestamp(moment.instant));
        }
    }

    fn backward(&self, compiled: &CompiledSpec) -> Vec<i64> {
        let mut found = Vec::new();
        let mut before = timestamp(self.through + 1);
        while let Some(occurrence) = compiled.previous(before) {
            if occurrence.nominal_time.as_second() <= self.after {
                break;
            }
            before = occurrence.nominal_time;
            found.push(before.as_second());
        }
        found.reverse();
        found
    }
}

/// Fails with the first difference alone; a dense window holds thousands of times.
fn agree(found: &[i64], expected: &[i64], place: impl Fn() -> String) {
    if found != expected {
        let same = found.iter().zip(expected).take_while(|(a, b)| a == b).count();
        let show =
            |list: &[i64]| list.get(same).map_or("nothing".into(), |second| timestamp(*second).to_string());
        panic!("found {}, expected {}: {}", show(found), show(expected), place());
    }
}

/// Whether a calendar names this wall time, field by field.
pub fn fits(calendar: &Calendar, wall: DateTime, closed: &dyn Fn(Date) -> bool) -> bool {
    let holds = |ranges: &[Range], value: i32| {
        ranges.iter().any(|range| {
            let (end, step) = (range.end.max(range.start), range.step.max(1));
            range.start <= value && value <= end && (value - range.start) % step == 0
        })
    };
    holds(&calendar.second, wall.second().into())
        && holds(&calendar.minute, wall.minute().into())
        && holds(&calendar.hour, wall.hour().into())
        && holds(&calendar.month, wall.month().into())
        && (calendar.year.is_empty() || holds(&calendar.year, wall.year().into()))
        && (holds(&calendar.day_of_month, wall.day().into())
            || calendar.day_of_month_terms.iter().any(|term| is_month_term(*term, wall, closed)))
        && (holds(&calendar.day_of_week, wall.weekday().to_sunday_zero_offset().into())
            || calendar.day_of_week_terms.iter().any(|term| is_week_term(*term, wall)))
}

fn is_month_term(term: DayOfMonthTerm, wall: DateTime, closed: &dyn Fn(Date) -> bool) -> bool {
    let date = wall.date();
    let last = date.days_in_month();
    let days_without = |closed: &dyn Fn(Date) -> bool| -> Vec<i8> {
        (1..=last).filter(|day| !closed(date.with().day(*day).build().unwrap())).collect()
    };
    // The earlier one of two that are equally near; a month without the day has none.
    let nearest = |days: Vec<i8>, wanted: i8| {
        days.into_iter().min_by_key(|day| ((day - wanted).abs(), *day)).filter(|_| wanted <= last)
    };
    match term {
        DayOfMonthTerm::LastDay { before } => date.day() + before as i8 == last,
        DayOfMonthTerm::NearestWeekday { day } => {
            nearest(days_without(&weekend), day as i8) == Some(date.day())
        }
        DayOfMonthTerm::LastWeekday => days_without(&weekend).last() == Some(&date.day()),
        DayOfMonthTerm::NearestBusinessDay { day } => {
            nearest(days_without(closed), day as i8) == Some(date.day())
        }
        DayOfMonthTerm::BusinessDay { nth } if nth > 0 => {
            days_without(closed).get(nth as usize - 1) == Some(&date.day())
        }
        DayOfMonthTerm::BusinessDay { nth } => {
            days_without(closed).iter().rev().nth(-nth as usize - 1) == Some(&date.day())
        }
        _ => unreachable!("the generator knows the terms above"),
    }
}

pub fn weekend(date: Date) -> bool {
    date.weekday().to_monday_one_offset() > 5
}

fn is_week_term(term: DayOfWeekTerm, wall: DateTime) -> bool {
    let number = wall.weekday().to_sunday_zero_offset() as u8;
    match term {
        DayOfWeekTerm::Nth { weekday, nth } => weekday == number && (wall.day() as u8 - 1) / 7 + 1 == nth,
        DayOfWeekTerm::Last { weekday } => weekday == number && wall.day() + 7 > wall.date().days_in_month(),
        _ => unreachable!("the generator knows the terms above"),
    }
}

fn timestamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap()
}

/// The changes of a zone's clock, or a few plain days where it has none.
fn changes(zone: &TimeZone, random: &mut Random) -> Vec<i64> {
    let years = (timestamp(946_857_600), timestamp(4_102_444_800));
    let changes = zone.following(years.0).take_while(|change| change.timestamp() < years.1);
    let mut found: Vec<i64> = changes.map(|change| change.timestamp().as_second()).collect();
    // The first two decades hold the odd ones; of the rest a few are enough.
    let odd = found.iter().filter(|at| **at < 1_735_689_600).count();
    let later: Vec<i64> = found.split_off(odd);
    found.extend((0..4.min(later.len())).map(|_| *random.pick(&later)));
    found.push(random.between(years.0.as_second(), years.1.as_second()));
    found
}

#[test]
fn agrees_second_by_second_around_every_change_of_the_clock() {
    let mut specs = 0;
    for (index, name) in ZONES.iter().enumerate() {
        let mut random = Random::new(index as u64);
        let zone = zone(name);
        for change in changes(&zone, &mut random) {
            // Wide enough for shifts of three hours on both sides; Samoa's lost day is met by the next test.
            let before = random.between(3_600, 4 * 3_600);
            let window = Window::new(&zone, change - before, change + 4 * 3_600, 1);
            let year = i64::from(zone.to_datetime(timestamp(change)).year());
            for _ in 0..25 {
                let around = (window.after - 600, window.through + 600);
                let spec = random::spec(
                    &mut random,
                    Grain::Second,
                    around,
                    ((year - 1).max(2000), (year + 1).min(2100)),
                );
                window.check(&spec.zone(*name));
                specs += 1;
            }
        }
    }
    assert!(specs > 25_000, "only {specs} specs were tried");
}

#[test]
fn agrees_by_quarters_of_an_hour_over_long_stretches() {
    let mut specs = 0;
    for (index, name) in ZONES.iter().enumerate() {
        let mut random = Random::new(1_000 + index as u64);
        let zone = zone(name);
        for lap in 0..6 {
            // One window always holds Samoa's lost day and the many changes of 2011.
            let start = if lap == 0 { 1_293_840_000 } else { random.between(10_957, 46_800) * 86_400 };
            let window = Window::new(&zone, start, (start + 430 * 86_400).min(4_133_000_000), 900);
            let year = i64::from(zone.to_datetime(timestamp(start)).year());
            for _ in 0..30 {
                let around = (window.after, window.through);
                let years = ((year - 1).max(2000), (year + 1).min(2100));
                let spec = random::spec(&mut random, Grain::Quarter, around, years);
                window.check(&spec.zone(*name));
                specs += 1;
            }
        }
    }
    assert!(specs > 7_000, "only {specs} specs were tried");
}
