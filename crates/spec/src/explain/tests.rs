//! Explanations as a person would write them, one row a kind of spec.

use jiff::SignedDuration;

use crate::{
    Calendar, CalendarRule, Cron, DayOfMonthTerm, Dialect, Environment, Fold, Gap, Interval, Range, Roll,
    Spec,
};

fn check(spec: Spec, expected: &str) {
    assert_eq!(spec.explain_in(&Environment::default()).unwrap(), expected);
}

#[test]
fn cron_strings() {
    for (text, expected) in [
        ("* * * * *", "Every minute, in UTC."),
        ("*/5 * * * *", "Every 5 minutes, in UTC."),
        ("3/10 * * * *", "Every 10 minutes from :03, in UTC."),
        ("0 * * * *", "Every hour, in UTC."),
        ("15 * * * *", "Every hour at :15, in UTC."),
        ("15,45 * * * *", "At :15 and :45 past the hour, in UTC."),
        ("0 */2 * * *", "Every 2 hours, in UTC."),
        ("23 0-20/2 * * *", "Every 2 hours from 00:23 through 20:23, in UTC."),
        ("0 0,1,2,5,7,9,11 * * *", "At 00:00, 01:00, 02:00, 05:00, 07:00, 09:00 and 11:00, in UTC."),
        ("*/30 0,2,4,6 * * *", "Every 30 minutes in the hours 00, 02, 04 and 06, in UTC."),
        ("10-20 9 * * *", "Every minute from 09:10 through 09:20, in UTC."),
        ("*/15 9 * * * * *", "Every 15 seconds of minute :09 of every hour, in UTC."),
        ("30 15 * * * * *", "Every hour at :15:30, in UTC."),
        ("0 0 1 1 * 2000/4", "At 00:00 on the 1st of January every 4 years from 2000, in UTC."),
        ("0 0 2/2 * *", "At 00:00 on every 2nd day from the 2nd of the month, in UTC."),
        (
            "0 0 13 * 1-5",
            "At 00:00 on the 13th of the month if it is a day from Monday through Friday, in UTC.",
        ),
        ("@every 90s", "Every 90 seconds."),
        ("@every 1d/9h", "Every day at 09:00 UTC."),
        ("30 9 * * *", "At 09:30 every day, in UTC."),
        ("0 9,17 * * *", "At 09:00 and 17:00 every day, in UTC."),
        ("0 9 * * 1-5", "At 09:00, Monday through Friday, in UTC."),
        ("0 9 * * 1,3,5", "At 09:00 on Monday, Wednesday and Friday, in UTC."),
        ("0 9 * * 0,6", "At 09:00 on Saturday and Sunday, in UTC."),
        ("*/15 9-17 * * 1-5", "Every 15 minutes from 09:00 through 17:45, Monday through Friday, in UTC."),
        ("0 9-17 * * *", "Every hour from 09:00 through 17:00, in UTC."),
        ("0 0 1 * *", "At 00:00 on the 1st of the month, in UTC."),
        ("0 0 1,15 * *", "At 00:00 on the 1st and 15th of the month, in UTC."),
        ("0 0 1-7 * *", "At 00:00 on the 1st through 7th of the month, in UTC."),
        ("0 0 */2 * *", "At 00:00 on every 2nd day from the 1st of the month, in UTC."),
        ("0 0 13 * 5", "At 00:00 on the 13th of the month if it is a Friday, in UTC."),
        ("0 0 25 12 *", "At 00:00 on the 25th of December, in UTC."),
        ("0 0 * 6-8 *", "At 00:00 in June through August, in UTC."),
        ("0 0 1 1 * 2026", "At 00:00 on the 1st of January in 2026, in UTC."),
        ("*/10 * * * * * *", "Every 10 seconds, in UTC."),
        ("15 30 12 * * * *", "At 12:30:15 every day, in UTC."),
        ("* * 3 * * * *", "Every second from 03:00 through 03:59, in UTC."),
        ("@every 90m", "Every 90 minutes, counted from 1970-01-01 00:00 UTC."),
        ("@every 1h", "Every hour."),
        ("@every 5h/45m", "Every 5 hours, counted from 1970-01-01 00:45 UTC."),
    ] {
        check(Spec::new().cron(text), expected);
    }
}

#[test]
fn other_dialects() {
    for (dialect, text, expected) in [
        (Dialect::Unix, "0 0 13 * 5", "At 00:00 on the 13th of the month or on Friday, in UTC."),
        (Dialect::Quartz, "0 0 9 L * ?", "At 09:00 on the last day of the month, in UTC."),
        (Dialect::Quartz, "0 0 9 L-3 * ?", "At 09:00 on the 3rd day before the last of the month, in UTC."),
        (Dialect::Quartz, "0 0 9 15W * ?", "At 09:00 on the weekday nearest the 15th of the month, in UTC."),
        (Dialect::Quartz, "0 0 9 LW 3 ?", "At 09:00 on the last weekday of March, in UTC."),
        (Dialect::Quartz, "0 0 9 ? * FRI#3", "At 09:00 on the 3rd Friday of the month, in UTC."),
        (Dialect::Quartz, "0 0 9 ? * 6L", "At 09:00 on the last Friday of the month, in UTC."),
        (Dialect::Quartz, "0 0 9 3B * ?", "At 09:00 on the 3rd business day of the month, in UTC."),
        (Dialect::Quartz, "0 0 9 LB * ?", "At 09:00 on the last business day of the month, in UTC."),
        (
            Dialect::Quartz,
            "0 0 9 15WB * ?",
            "At 09:00 on the business day nearest the 15th of the month, in UTC.",
        ),
    ] {
        check(Spec::new().cron_in(dialect, text), expected);
    }
}

#[test]
fn everything_else() {
    let at = |text: &str| text.parse().unwrap();
    check(Spec::new(), "Never by itself: there is no calendar, interval or time.");
    check(Spec::new().at(at("2026-12-24T18:00:00Z")), "Once at 2026-12-24 18:00 UTC.");
    check(
        Spec::new().interval(
            Interval::every(SignedDuration::from_hours(14 * 24)).anchored_at(at("2026-01-05T09:00:00Z")),
        ),
        "Every 14 days, counted from 2026-01-05 09:00 UTC.",
    );
    check(
        Spec::new().cron("0 9 * * *").cron("30 17 * * 5").zone("Europe/Berlin"),
        "At 09:00 every day; also at 17:30 on Friday; all in Europe/Berlin.",
    );
    check(
        Spec::new().cron("@every 1h").exclude_date(jiff::civil::date(2026, 12, 25)).zone("Asia/Tokyo"),
        "Every hour. Except on 2026-12-25, in Asia/Tokyo.",
    );
    check(
        Spec::new().cron("@hourly").exclude_cron(Cron::new(Dialect::Temporal, "* 0-29 12 * * * *")),
        "Every hour, in UTC. Except every second, every minute from 12:00 through 12:29.",
    );
    check(
        Spec::new().cron_in(Dialect::Unix, "0 0 13 * MON-FRI").jitter(SignedDuration::from_millis(1_500)),
        "At 00:00 on the 13th of the month or on Monday through Friday, in UTC. \
         Each one is spread over up to 1.5 seconds after its time.",
    );
    let mut christmas = Calendar::every_second();
    christmas.month = vec![Range::at(12)];
    christmas.day_of_month = vec![Range::new(24, 26, 1)];
    check(
        Spec::new().cron("@hourly").exclude(christmas),
        "Every hour, in UTC. Except all day on the 24th through 26th of December.",
    );
    check(
        Spec::new()
            .cron("@every 1h")
            .exclude_cron(Cron::new(Dialect::Temporal, "* * 0-5 * * * *"))
            .exclude_cron(Cron::new(Dialect::Temporal, "* * * * * SUN *"))
            .zone("Asia/Tokyo"),
        "Every hour. Except from 00:00 through 05:59; and all day on Sunday, in Asia/Tokyo.",
    );
    check(
        Spec::new().cron("@daily").exclude_cron(Cron::new(Dialect::Temporal, "0 0 25 12 *")),
        "At 00:00 every day, in UTC. Except at 00:00 on the 25th of December.",
    );
    check(
        Spec::new().cron("@daily").calendar_rule(CalendarRule::exclude("bank").roll(Roll::Forward)),
        "At 00:00 every day, in UTC. Not on dates of the calendar `bank`: \
         what falls on another day moves to the next allowed date.",
    );
    check(
        Spec::new()
            .cron("30 2 * * *")
            .gap(Gap::After)
            .fold(Fold::First)
            .jitter(SignedDuration::from_secs(90))
            .start_time(at("2026-01-01T00:00:00Z"))
            .end_time(at("2026-12-31T23:59:59Z")),
        "At 02:30 every day, in UTC. From 2026-01-01 00:00 UTC until 2026-12-31 23:59:59 UTC. \
         Each one is spread over up to 90 seconds after its time. \
         A time that the clock skips happens right after the change; \
         a time that the clock repeats happens the first time only.",
    );
    let mut last_two = Calendar::midnight();
    last_two.day_of_month = vec![Range::at(1)];
    last_two.day_of_month_terms = vec![DayOfMonthTerm::LastDay { before: 0 }];
    check(Spec::new().calendar(last_two), "At 00:00 on the 1st and the last day of the month, in UTC.");
}
