//! Each lint is found where it should be, and nowhere else.

use jiff::SignedDuration;
use punctual_spec::{CalendarText, Cron, Dialect, Environment, Fold, Gap, Interval, Lint, LintCode, Spec};

use crate::wire::instant;

fn lints(spec: &Spec) -> Vec<Lint> {
    spec.lint(&Environment::default(), instant("2026-01-01T00:00:00Z")).unwrap()
}

fn check(spec: Spec, expected: &[(LintCode, &str)]) {
    let found: Vec<(LintCode, String)> =
        lints(&spec).into_iter().map(|lint| (lint.code, lint.message)).collect();
    let expected: Vec<(LintCode, String)> =
        expected.iter().map(|(code, text)| (*code, text.to_string())).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_sound_spec_has_none() {
    check(Spec::new(), &[]);
    check(Spec::new().cron("0 9 * * MON-FRI").zone("Europe/Berlin"), &[]);
    check(Spec::new().cron("*/5 * * * *").zone("Europe/Berlin"), &[]);
    check(Spec::new().cron("0 0 * * 5 # every friday"), &[]);
    check(Spec::new().cron_in(Dialect::Unix, "0 0 13 * 5"), &[]);
    check(Spec::new().cron("30 2 * * *").zone("Asia/Tokyo"), &[]);
}

#[test]
fn times_that_the_clock_skips_or_repeats_are_named_with_dates() {
    let nightly = Spec::new().cron("30 2 * * *").zone("Europe/Berlin");
    let gap = (
        LintCode::DstGap,
        "02:30 does not exist on 2026-03-29 and 2027-03-28 in Europe/Berlin and is skipped",
    );
    let fold = (
        LintCode::DstFold,
        "02:30 exists twice on 2026-10-25 and 2027-10-31 in Europe/Berlin and fires twice",
    );
    check(nightly.clone(), &[gap, fold]);
    check(nightly.clone().gap(Gap::After), &[fold]);
    check(nightly.clone().fold(Fold::Last), &[gap]);
    check(nightly.gap(Gap::After).fold(Fold::First), &[]);
    check(
        Spec::new().cron("15 2 * * *").zone("Australia/Lord_Howe"),
        &[(
            LintCode::DstGap,
            "02:15 does not exist on 2026-10-04 and 2027-10-03 in Australia/Lord_Howe and is skipped",
        )],
    );
    check(
        Spec::new().cron("*/10 2 * * *").zone("Europe/Berlin").fold(Fold::First),
        &[(
            LintCode::DstGap,
            "02:00 (through 02:50) does not exist on 2026-03-29 and 2027-03-28 in Europe/Berlin and is skipped",
        )],
    );
    // It only fires on days without a change.
    check(Spec::new().cron("30 2 * 6 *").zone("Europe/Berlin"), &[]);
}

/// Found in review.
#[test]
fn hourly_specs_meet_only_shifts_that_are_no_whole_hours() {
    check(Spec::new().cron("0 * * * *").zone("Europe/Berlin"), &[]);
    let lunch = Cron::new(Dialect::Temporal, "* * 12 * * * *");
    check(Spec::new().cron("@hourly").exclude_cron(lunch).zone("Europe/Berlin"), &[]);
    let codes: Vec<LintCode> = lints(&Spec::new().cron("0 * * * *").zone("Australia/Lord_Howe"))
        .into_iter()
        .map(|lint| lint.code)
        .collect();
    assert_eq!(codes, [LintCode::DstGap]);
    let later =
        Spec::new().cron("30 2 * * *").zone("Europe/Berlin").start_time(instant("2027-12-01T00:00:00Z"));
    check(later, &[]);
}

#[test]
fn specs_without_a_future_say_why() {
    check(
        Spec::new().cron("0 0 31 2 *"),
        &[(LintCode::NeverFires, "never fires: no date fits all of its fields")],
    );
    check(
        Spec::new().cron("@daily").exclude_cron(Cron::new(Dialect::Temporal, "* * * * * * *")),
        &[(LintCode::NeverFires, "never fires: its exclusions remove every occurrence")],
    );
    check(
        Spec::new().cron("@daily").start_time(instant("2101-01-01T00:00:00Z")),
        &[(LintCode::NeverFires, "never fires: nothing lies between its start and end times")],
    );
    check(
        Spec::new().cron("0 0 1 1 * 2020"),
        &[(LintCode::NeverAgain, "never fires again: the last occurrence was 2020-01-01T00:00:00Z")],
    );
}

#[test]
fn both_day_fields_are_pointed_out() {
    let spec = Spec::new().cron("@daily").cron("0 0 13 * FRI");
    let found = lints(&spec);
    assert_eq!((found[0].code, found[0].field.as_str()), (LintCode::DayFieldsAnded, "cron[1]"));
    assert_eq!(found.len(), 1);
    let mut text = CalendarText::default();
    (text.day_of_month, text.day_of_week) = ("1".into(), "mon".into());
    assert_eq!(lints(&Spec::new().calendar_text(text))[0].code, LintCode::DayFieldsAnded);
}

#[test]
fn a_hash_that_touches_a_field_is_pointed_out() {
    let found = lints(&Spec::new().cron("0 0 * * 5#3"));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].code, found[0].position), (LintCode::HashComment, Some(9)));
    assert_eq!(found[0].message, "`5#3` is read as `5` and a comment, not as an nth weekday");
    let excluded = Cron::new(Dialect::Temporal, "* * * * 5#3");
    let found = lints(&Spec::new().cron("0 9 * * *").exclude_cron(excluded));
    assert_eq!((found[0].code, found[0].field.as_str()), (LintCode::HashComment, "exclude_cron[0]"));
}

#[test]
fn an_exclusion_of_midnight_alone_is_pointed_out() {
    let mut christmas = CalendarText::default();
    (christmas.month, christmas.day_of_month) = ("12".into(), "25".into());
    let found = lints(&Spec::new().cron("0 9 * * *").exclude_text(christmas.clone()));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].code, found[0].field.as_str()), (LintCode::MidnightExclusion, "exclude_text[0]"));
    // A spec that fires at midnight alone loses the whole day by it.
    check(Spec::new().cron("@daily").exclude_text(christmas), &[]);
}

#[test]
fn six_fields_with_an_idle_year_are_pointed_out() {
    let message = "six fields begin with the minute and end with the year: minute `0`, hour `3`, day `9`";
    check(Spec::new().cron("0 3 9 * * *"), &[(LintCode::SixFields, message)]);
    check(Spec::new().cron("0 3 9 * * * # daily run at nine"), &[(LintCode::SixFields, message)]);
    check(Spec::new().cron("30 9 * * * 2027"), &[]);
    let error = Spec::new().cron("0 0 9 * * MON-FRI").compile().unwrap_err();
    assert_eq!(error.help(), Some("the sixth field is the year; for seconds first use the quartz dialect"));
}

#[test]
fn a_high_rate_is_pointed_out() {
    check(
        Spec::new().interval(Interval::every(SignedDuration::from_secs(10))),
        &[(LintCode::HighRate, "fires 360 times within an hour, about every 10 seconds")],
    );
    check(Spec::new().interval(Interval::every(SignedDuration::from_secs(60))), &[]);
    check(
        Spec::new().cron("@daily").cron("* * 12 * * * *"),
        &[(LintCode::HighRate, "fires 3600 times within an hour, about every 1 second")],
    );
}
