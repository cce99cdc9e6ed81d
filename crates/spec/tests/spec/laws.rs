//! Laws that hold for every spec: order, bounds, split ranges, mirrors, and text that survives a round trip.

use jiff::{SignedDuration, Timestamp};
use punctual_spec::{Calendar, Change, Dialect, Environment, Spec, diff, limits};

use crate::oracle::ZONES;
use crate::random::{self, Grain, Random};

const START: i64 = 946_684_800;
const END: i64 = 4_133_980_799;

fn timestamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn random_spec(random: &mut Random) -> Spec {
    let from = random.between(START, END - 40 * 86_400);
    let around = (from, from + 40 * 86_400);
    let year = i64::from(jiff::tz::TimeZone::UTC.to_datetime(timestamp(from)).year());
    let spec = random::spec(random, Grain::Second, around, (year, (year + 3).min(2100)));
    spec.zone(*random.pick(&ZONES)).jitter(SignedDuration::from_secs(random.between(-600, 600)))
}

#[test]
fn occurrences_increase_lie_in_bounds_and_mirror_each_other() {
    let mut random = Random::new(77);
    for _ in 0..3_000 {
        let spec = random_spec(&mut random);
        let Ok(compiled) = spec.compile() else { continue };
        let mut after = timestamp(random.between(START, END));
        for _ in 0..20 {
            let Some(found) = compiled.next(after) else {
                assert!(compiled.last().is_none_or(|last| last <= after), "{spec:?}");
                break;
            };
            assert!(found.nominal_time > after, "{spec:?}");
            assert!(compiled.matches(found.nominal_time), "{spec:?}");
            assert_eq!(found.nominal_time.subsec_nanosecond(), 0);
            assert!(found.due_time >= found.nominal_time, "{spec:?}");
            assert!(found.due_time.duration_since(found.nominal_time).as_secs() <= 600, "{spec:?}");
            assert!(spec.start_time.is_none_or(|start| found.nominal_time >= start), "{spec:?}");
            assert!(spec.end_time.is_none_or(|end| found.nominal_time <= end), "{spec:?}");
            assert!(
                compiled.first().unwrap() <= found.nominal_time
                    && found.nominal_time <= compiled.last().unwrap()
            );
            // The one before the next is the last one up to now, and the next of the previous is this one.
            let earlier = compiled.previous(found.nominal_time);
            assert!(earlier.is_none_or(|earlier| earlier.nominal_time <= after), "{spec:?}");
            if let Some(earlier) = earlier {
                assert_eq!(compiled.next(earlier.nominal_time), Some(found), "{spec:?}");
            }
            // A fraction of a second changes nothing on this side of the second.
            let nearly = found.nominal_time - SignedDuration::from_nanos(1);
            assert_eq!(compiled.next(nearly), Some(found), "{spec:?}");
            let just_after = found.nominal_time + SignedDuration::from_nanos(1);
            assert_eq!(compiled.previous(just_after), Some(found), "{spec:?}");
            after = found.nominal_time;
        }
    }
}

#[test]
fn a_split_range_holds_the_same_occurrences() {
    let mut random = Random::new(78);
    for _ in 0..2_000 {
        let spec = random_spec(&mut random);
        let Ok(compiled) = spec.compile() else { continue };
        let a = random.between(START, END - 86_400);
        let c = a + random.between(0, 7_200);
        let b = random.between(a, c);
        let (a, b, c) = (timestamp(a), timestamp(b), timestamp(c));
        let whole = compiled.iterate(a, c);
        assert!(whole.eq(compiled.iterate(a, b).chain(compiled.iterate(b, c))), "{spec:?}");
    }
}

#[test]
fn a_spec_compared_with_itself_keeps_everything() {
    let mut random = Random::new(79);
    for _ in 0..300 {
        let spec = random_spec(&mut random);
        let Ok(compiled) = spec.compile() else { continue };
        let Some(first) = compiled.first() else { continue };
        let through = first + SignedDuration::from_hours(1);
        assert!(diff(&compiled, &compiled, first, through).all(|change| matches!(change, Change::Kept(_))));
        let other = Spec::new().compile().unwrap();
        assert!(diff(&compiled, &other, first, through).all(|change| matches!(change, Change::Removed(_))));
        assert!(diff(&other, &compiled, first, through).all(|change| matches!(change, Change::Added(_))));
    }
}

/// A calendar printed as a cron string parses back to the same calendar.
#[test]
fn printed_calendars_parse_back() {
    let mut random = Random::new(80);
    let mut printed = [0, 0];
    for _ in 0..20_000 {
        let calendar = random::calendar(&mut random, Grain::Second, (2000, 2100));
        let Some(text) = calendar.to_cron() else { continue };
        let relative = !calendar.day_of_month_terms.is_empty() || !calendar.day_of_week_terms.is_empty();
        let dialect = if relative { Dialect::Quartz } else { Dialect::Temporal };
        printed[usize::from(relative)] += 1;
        let canonical = |spec: Spec| spec.canonical(&Environment::default()).unwrap().calendars;
        let back = canonical(Spec::new().cron_in(dialect, text.as_str()));
        assert_eq!(back, canonical(Spec::new().calendar(calendar)), "{text}");
    }
    assert!(printed.iter().all(|count| *count > 1_000), "{printed:?}");
}

/// Text that follows the grammar is accepted, and its print means the same.
#[test]
fn random_cron_text_survives_a_round_trip() {
    let mut random = Random::new(81);
    for _ in 0..20_000 {
        let dialect = *random.pick(&[Dialect::Temporal, Dialect::Unix, Dialect::Quartz]);
        let text = cron_text(&mut random, dialect);
        let spec = Spec::new().cron_in(dialect, text.as_str());
        let calendars = match spec.canonical(&Environment::default()) {
            Ok(canonical) => canonical.calendars,
            Err(error) => panic!("{text} in {dialect:?}: {}", error.report()),
        };
        for calendar in calendars {
            let printed = calendar.to_cron().unwrap_or_else(|| panic!("{calendar:?}"));
            let relative = !calendar.day_of_month_terms.is_empty() || !calendar.day_of_week_terms.is_empty();
            let dialect = if relative { Dialect::Quartz } else { Dialect::Temporal };
            let back =
                Spec::new().cron_in(dialect, printed.as_str()).canonical(&Environment::default()).unwrap();
            assert_eq!(back.calendars, [calendar], "{text} printed as {printed}");
        }
    }
}

fn cron_text(random: &mut Random, dialect: Dialect) -> String {
    let number = |random: &mut Random, min: i64, max: i64| random.between(min, max).to_string();
    let field = |random: &mut Random, min: i64, max: i64, names: &[&str]| {
        let parts: Vec<String> = (0..random.between(1, 3))
            .map(|_| {
                let low = random.between(min, max);
                let high = random.between(low, max);
                let step = random.between(1, 9);
                match random.between(0, 6) {
                    0 => "*".into(),
                    1 => format!("*/{step}"),
                    2 => format!("{low}-{high}"),
                    3 => format!("{low}-{high}/{step}"),
                    4 => format!("{low}/{step}"),
                    5 if !names.is_empty() => random.pick(names).to_string(),
                    6 => format!("H({low}-{low})"),
                    _ => low.to_string(),
                }
            })
            .collect();
        parts.join(",")
    };
    let months = ["jan", "Feb", "MARCH", "apri", "sept", "dec"];
    let weekdays = ["su", "Mon", "TUES", "wednesday", "thu", "Fr", "SAT"];
    let minute = field(random, 0, 59, &[]);
    let hour = field(random, 0, 23, &[]);
    let month = field(random, 1, 12, &months);
    let year = field(random, 2000, 2100, &[]).replace("H(", "").replace(')', "");
    let year =
        year.split(',').map(|part| part.split_once('-').filter(|(a, b)| a == b).map_or(part, |(a, _)| a));
    let year = year.collect::<Vec<_>>().join(",");
    let comment = if random.chance(20) { " # why" } else { "" };
    if dialect == Dialect::Quartz {
        let second = field(random, 0, 59, &[]);
        let days = if random.chance(50) {
            let day = match random.between(0, 5) {
                0 => "L".into(),
                1 => format!("L-{}", number(random, 1, 30)),
                2 => format!("{}W", number(random, 1, 31)),
                3 => "LW,1".into(),
                4 => format!("{}B,LB", number(random, 1, 20)),
                _ => field(random, 1, 31, &[]),
            };
            format!("{day} {month} ?")
        } else {
            let day = match random.between(0, 2) {
                0 => format!("{}#{}", number(random, 1, 7), number(random, 1, 5)),
                1 => format!("{}L,MON", random.pick(&["FRI", "6", "sun"])),
                _ => field(random, 1, 7, &weekdays),
            };
            format!("? {month} {day}")
        };
        let year = if random.chance(50) { format!(" {year}") } else { String::new() };
        return format!("{second} {minute} {hour} {days}{year}{comment}");
    }
    let days = (field(random, 1, 31, &[]), field(random, 0, 7, &weekdays));
    let days = (days.0, days.1.replace("H(7-7)", "7"));
    let five = format!("{minute} {hour} {} {month} {}", days.0, days.1);
    match (dialect, random.between(0, 2)) {
        (Dialect::Temporal, 1) => format!("{five} {year}{comment}"),
        (Dialect::Temporal, 2) => format!("{} {five} {year}{comment}", field(random, 0, 59, &[])),
        _ => format!("{five}{comment}"),
    }
}

#[test]
fn canonical_is_a_fixed_point_and_means_the_same() {
    let mut random = Random::new(82);
    for _ in 0..1_000 {
        let text = cron_text(&mut random, Dialect::Temporal);
        let spec = Spec::new().cron(text.as_str()).calendar(Calendar::midnight());
        let canonical = spec.canonical(&Environment::default()).unwrap();
        assert_eq!(canonical.canonical(&Environment::default()).unwrap(), canonical);
        let (a, b) = (spec.compile().unwrap(), canonical.compile().unwrap());
        assert_eq!((a.first(), a.last()), (b.first(), b.last()), "{text}");
    }
}

/// A fault always says which field it is in, and its span lies in the text that it comes with.
#[test]
fn errors_point_into_their_text() {
    for (text, field, span) in [
        ("0 0 * * 1,", "cron[0].day_of_week", 10..10),
        ("", "cron[0]", 0..0),
        ("@every 0s", "cron[0].every", 7..9),
        ("@every 1h/2h", "cron[0].phase", 7..12),
        ("CRON_TZ=Europe/Berln 0 9 * * *", "cron[0].zone", 8..20),
        ("0 0 */0 * *", "cron[0].day_of_month", 6..7),
        ("0 0 5-1 * *", "cron[0].day_of_month", 4..7),
    ] {
        let error = Spec::new().cron(text).compile().unwrap_err();
        assert_eq!((error.field(), error.span()), (field, Some(span)), "{text}: {error}");
        assert!(error.text().unwrap().get(error.span().unwrap()).is_some());
    }
    let conflict = Spec::new().cron("TZ=Asia/Tokyo 0 9 * * *").zone("Europe/Berlin").compile().unwrap_err();
    assert_eq!(conflict.span(), Some(3..13));
    assert!(Spec::new().cron("TZ=asia/tokyo 0 9 * * *").zone("Asia/Tokyo").compile().is_ok());
}

/// Found in review: jitter of any size, and times beyond the end, bound the due time as they should.
#[test]
fn jitter_is_bounded_by_the_next_time_even_beyond_the_end() {
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let spec = Spec::new()
        .at(at("2026-01-01T10:00:00Z"))
        .at(at("2026-01-01T10:01:00Z"))
        .end_time(at("2026-01-01T10:00:30Z"))
        .jitter(SignedDuration::from_hours(10));
    let due = spec.compile().unwrap().next(at("2026-01-01T00:00:00Z")).unwrap().due_time;
    assert!(due < at("2026-01-01T10:01:00Z"), "{due}");
    let huge = Spec::new().cron("@daily").jitter(SignedDuration::MAX).compile().unwrap();
    let next = huge.next(at("2026-01-01T00:00:00Z")).unwrap();
    assert!(next.due_time > next.nominal_time);
}

#[test]
fn the_years_are_bounded_in_utc() {
    let compiled = Spec::new().cron("* * * * *").zone("Pacific/Honolulu").compile().unwrap();
    assert_eq!(compiled.last().unwrap().to_string(), "2100-12-31T23:59:00Z");
    assert_eq!(compiled.first().unwrap().to_string(), "2000-01-01T10:00:00Z");
    assert!(compiled.next(timestamp(END + 86_400)).is_none());
    assert_eq!((limits::YEAR_MIN, limits::YEAR_MAX), (2000, 2100));
}
