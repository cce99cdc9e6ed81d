//! Named calendars: keep to, avoid, roll, and count business days, agreed with brute force date by date.

use jiff::civil::{Date, Weekday, date};
use jiff::tz::TimeZone;
use punctual_spec::{
    Calendar, CalendarMode, CalendarRule, Environment, Interval, NamedCalendar, Range, Roll, Spec, limits,
};

use crate::oracle::{fits, weekend};
use crate::random::{self, Grain, Random};

/// Dates that random calendars may list, and around which everything is compared.
const FIRST: Date = date(2026, 1, 1);
const DAYS: i64 = 500;

fn dates() -> impl Iterator<Item = Date> {
    FIRST.series(jiff::Span::new().days(1)).take(DAYS as usize)
}

fn named(random: &mut Random) -> NamedCalendar {
    let list: Vec<Date> = dates().collect();
    let count = *random.pick(&[3, 30, 200]);
    let listed: Vec<Date> = (0..count).map(|_| *random.pick(&list)).collect();
    let calendar = NamedCalendar::new(listed);
    match random.between(0, 3) {
        0 => calendar.with_weekdays([Weekday::Saturday, Weekday::Sunday]),
        1 => calendar.with_weekdays([Weekday::Friday]),
        _ => calendar,
    }
}

/// Where a spec with rules puts an occurrence of one date, if anywhere.
fn landing(on: Date, rules: &[(CalendarRule, NamedCalendar)]) -> Option<Date> {
    let forbids = |(rule, calendar): &(CalendarRule, NamedCalendar), on: Date| match rule.mode {
        CalendarMode::Include => !calendar.contains(on),
        CalendarMode::Exclude => calendar.contains(on),
    };
    // A list of allowed dates says nothing about the time before and after it.
    let uncovered = rules.iter().any(|(rule, calendar)| {
        let known = || dates().filter(|date| calendar.contains(*date));
        let endless = (1..=7).any(|day| calendar.contains(date(2090, 1, day)));
        rule.mode == CalendarMode::Include
            && !endless
            && (known().next().is_some_and(|first| on < first)
                || known().last().is_some_and(|last| on > last))
    });
    let mut forbidding = rules.iter().filter(|rule| forbids(rule, on)).peekable();
    let Some((first, _)) = forbidding.peek() else { return Some(on) };
    if uncovered || rules.iter().any(|rule| rule.0.roll == Roll::Skip && forbids(rule, on)) {
        return None;
    }
    let step = jiff::Span::new().days(if first.roll == Roll::Forward { 1 } else { -1 });
    on.series(step)
        .skip(1)
        .take(limits::ROLL_DAYS_MAX as usize)
        .find(|to| !rules.iter().any(|rule| forbids(rule, *to)))
}

#[test]
fn rolling_and_business_days_agree_with_brute_force() {
    let mut random = Random::new(300);
    for _ in 0..600 {
        let mut calendar = random::calendar(&mut random, Grain::Quarter, (2026, 2027));
        (calendar.hour, calendar.minute) = (vec![Range::at(9)], vec![Range::at(30)]);
        let mut rules = Vec::new();
        for index in 0..random.between(0, 2) {
            let name = format!("rule-{index}");
            let roll = *random.pick(&[Roll::Skip, Roll::Forward, Roll::Back]);
            let rule =
                if random.chance(70) { CalendarRule::exclude(name) } else { CalendarRule::only_on(name) };
            rules.push((rule.roll(roll), named(&mut random)));
        }
        let business = named(&mut random);
        let mut spec = Spec::new().calendar(calendar.clone());
        let mut environment = Environment::default().with_calendar("business", business.clone());
        if random.chance(70) {
            spec = spec.business_calendar("business");
        }
        for (rule, calendar) in &rules {
            environment = environment.with_calendar(rule.calendar.clone(), calendar.clone());
            spec = spec.calendar_rule(rule.clone());
        }

        let has_weekdays = (0..7).any(|day| {
            // A weekday that is in the calendar far from every listed date is one of its weekdays.
            business.contains(date(2090, 1, 1 + day))
        });
        let closed = |on: Date| match spec.business_calendar {
            Some(_) => business.contains(on) || (!has_weekdays && weekend(on)),
            None => weekend(on),
        };
        // A year on both sides, from which occurrences may roll in.
        let three_years = date(2024, 12, 1).series(jiff::Span::new().days(1)).take(3 * 366 + 60);
        let mut expected: Vec<Date> = three_years
            .filter(|on| fits(&calendar, on.at(9, 30, 0, 0), &closed))
            .filter_map(|on| landing(on, &rules))
            .filter(|on| *on >= FIRST && *on < date(2027, 1, 1))
            .collect();
        expected.sort_unstable();
        expected.dedup();

        let compiled = spec.compile_in(&environment).unwrap();
        let midnight = |on: Date| on.to_zoned(TimeZone::UTC).unwrap().timestamp();
        let found: Vec<Date> = compiled
            .iterate(midnight(FIRST), midnight(date(2027, 1, 1)))
            .map(|occurrence| TimeZone::UTC.to_datetime(occurrence.nominal_time).date())
            .collect();
        assert_eq!(found, expected, "{spec:?} {environment:?}");
    }
}

/// A calendar of one year draws nothing into it from the years around.
#[test]
fn a_list_of_allowed_dates_does_not_reach_beyond_itself() {
    let weekdays: Vec<Date> =
        date(2026, 1, 1).series(jiff::Span::new().days(1)).take(365).filter(|d| !weekend(*d)).collect();
    let environment = Environment::default().with_calendar("trading", NamedCalendar::new(weekdays));
    for roll in [Roll::Forward, Roll::Back] {
        let spec = Spec::new().cron("0 9 15 * *").calendar_rule(CalendarRule::only_on("trading").roll(roll));
        let compiled = spec.compile_in(&environment).unwrap();
        let ever = (jiff::Timestamp::MIN, jiff::Timestamp::MAX);
        assert_eq!(compiled.iterate(ever.0, ever.1).count(), 12, "{roll:?}");
    }
}

#[test]
fn intervals_and_single_times_are_skipped_and_never_roll() {
    let environment = Environment::default().with_calendar("closed", NamedCalendar::new([date(2026, 5, 1)]));
    let hourly = Spec::new().interval(Interval::every(jiff::SignedDuration::from_hours(1)));
    let skipping =
        hourly.clone().calendar_rule(CalendarRule::exclude("closed")).compile_in(&environment).unwrap();
    let next = skipping.next("2026-04-30T23:00:00Z".parse().unwrap()).unwrap();
    assert_eq!(next.nominal_time.to_string(), "2026-05-02T00:00:00Z");
    let rolling = hourly.calendar_rule(CalendarRule::exclude("closed").roll(Roll::Back));
    let error = rolling.compile_in(&environment).unwrap_err();
    assert_eq!((error.field(), error.is_value()), ("calendar_rule[0]", true));
}

#[test]
fn an_unknown_calendar_is_named_with_those_that_are_known() {
    let environment = Environment::default().with_calendar("bank", NamedCalendar::default());
    let spec = Spec::new().calendar(Calendar::midnight()).calendar_rule(CalendarRule::exclude("bnak"));
    let error = spec.compile_in(&environment).unwrap_err();
    assert_eq!(error.to_string(), "unknown calendar `bnak`");
    assert_eq!(error.help(), Some("known are `bank`"));
}
