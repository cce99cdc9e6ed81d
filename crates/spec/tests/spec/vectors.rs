//! Recorded answers of other schedulers: classic cron, Quartz terms, and a real Temporal west of UTC.
//!
//! `cargo xtask vectors` records them anew; each script says what it had to leave out and why.

use jiff::Timestamp;
use punctual_spec::{Dialect, Environment, Spec};
use serde_json::Value;

use crate::wire::{self, instant, list};

fn vectors(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap()
}

/// The first answers after an instant, as many as were recorded, and nothing more where the peer saw the end.
fn check_cron(dialect: Dialect, case: &Value) {
    let text = case["expr"].as_str().unwrap();
    let compiled = Spec::new()
        .cron_in(dialect, text)
        .compile()
        .unwrap_or_else(|error| panic!("{text}: {}", error.report()));
    let expected: Vec<Timestamp> = list(case, "expect").map(|time| instant(time.as_str().unwrap())).collect();
    let ends = usize::from(case["end"] == true);
    let mut found = Vec::new();
    let mut after = instant(case["after"].as_str().unwrap());
    while let Some(next) = compiled.next(after).filter(|_| found.len() < expected.len() + ends) {
        after = next.nominal_time;
        found.push(after);
    }
    // We know the years up to 2100; a peer may know more.
    let known: Vec<Timestamp> =
        expected.into_iter().filter(|time| *time < instant("2101-01-01T00:00:00Z")).collect();
    assert_eq!(found, known, "{text}");
}

#[test]
fn the_unix_dialect_is_classic_cron() {
    let cases = vectors(include_str!("../vectors/unix.json"));
    assert!(cases.len() >= 400);
    cases.iter().for_each(|case| check_cron(Dialect::Unix, case));
}

#[test]
fn the_quartz_dialect_reads_its_special_terms_as_others_do() {
    let cases = vectors(include_str!("../vectors/quartz.json"));
    assert!(cases.len() >= 400);
    cases.iter().for_each(|case| check_cron(Dialect::Quartz, case));
}

/// A real server listed the matching times; each answer is fed back, and the end bounds the due time.
#[test]
fn temporal_west_of_utc_lists_the_same_times() {
    let cases = vectors(include_str!("../vectors/temporal.json"));
    assert!(cases.len() >= 500);
    for case in &cases {
        let environment = Environment::default().with_seed(case["seed"].as_str().unwrap_or(""));
        let compiled = wire::spec(&case["spec"]).unwrap().compile_in(&environment).unwrap();
        let end = instant(case["end"].as_str().unwrap());
        let mut after = instant(case["start"].as_str().unwrap());
        let mut found = Vec::new();
        while let Some(next) = compiled.next(after).filter(|next| next.due_time <= end) {
            after = next.due_time;
            found.push(next.due_time);
        }
        let expected: Vec<Timestamp> =
            list(case, "expect").map(|time| instant(time.as_str().unwrap())).collect();
        assert_eq!(found, expected, "{case}");
    }
}
