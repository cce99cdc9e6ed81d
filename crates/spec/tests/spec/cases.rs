//! Every published case about specs gives the published answer; where the original breaks its own
//! wall-clock contract, ours is the contract's.

use jiff::{SignedDuration, Timestamp};
use punctual_spec::{CompiledSpec, Environment, Occurrence};
use serde_json::Value;

use crate::wire::{self, instant, list};

fn cases(kind: &str) -> Vec<Value> {
    let text = include_str!("../cases/temporal-spec-cases.json");
    let all: Vec<Value> = serde_json::from_str(text).unwrap();
    all.into_iter().filter(|case| case["kind"] == kind).collect()
}

fn compile(case: &Value) -> CompiledSpec {
    let environment = Environment::default().with_seed(case["jitterSeed"].as_str().unwrap_or(""));
    let spec = wire::spec(&case["spec"]).unwrap();
    spec.compile_in(&environment).unwrap_or_else(|error| panic!("{case}: {error}"))
}

/// Feeds each due time back as the next `after`, as the originals do.
fn chain(compiled: &CompiledSpec, after: Timestamp, count: usize) -> Vec<Occurrence> {
    let mut found: Vec<Occurrence> = Vec::new();
    while found.len() < count {
        let after = found.last().map_or(after, |last| last.due_time);
        match compiled.next(after) {
            Some(occurrence) => found.push(occurrence),
            None => break,
        }
    }
    found
}

#[test]
fn next_times() {
    let cases = cases("next");
    assert_eq!(cases.len(), 103);
    for case in &cases {
        let compiled = compile(case);
        let upstream: Vec<Timestamp> =
            list(case, "expect").map(|time| instant(time.as_str().unwrap())).collect();
        let literal: Vec<Timestamp> =
            list(case, "expectLiteralWallClock").map(|time| instant(time.as_str().unwrap())).collect();
        let deviates = !literal.is_empty();
        let expected = if deviates { literal } else { upstream };
        let ends = case["endOfSequence"] == true && !deviates;
        let found =
            chain(&compiled, instant(case["after"].as_str().unwrap()), expected.len() + usize::from(ends));
        let due: Vec<Timestamp> = found.iter().map(|occurrence| occurrence.due_time).collect();
        assert_eq!(due, expected, "{case}");
        match &case["nominal"] {
            Value::Null => {}
            Value::String(time) => assert_eq!(found[0].nominal_time, instant(time), "{case}"),
            times => {
                let nominal: Vec<String> = found.iter().map(|o| o.nominal_time.to_string()).collect();
                assert_eq!(Value::from(nominal), *times, "{case}");
            }
        }
    }
}

#[test]
fn matches() {
    let cases = cases("match");
    assert_eq!(cases.len(), 43);
    for case in &cases {
        let found = compile(case).matches(instant(case["at"].as_str().unwrap()));
        assert_eq!(Value::Bool(found), case["expect"], "{case}");
    }
}

#[test]
fn canonical_forms() {
    let cases = cases("canonical");
    assert_eq!(cases.len(), 10);
    for case in &cases {
        let canonical = wire::spec(&case["spec"]).unwrap().canonical(&Environment::default()).unwrap();
        assert_eq!(wire::print(&canonical, false), case["expectSpec"], "{case}");
        assert_eq!(canonical.canonical(&Environment::default()).unwrap(), canonical, "twice is once: {case}");
    }
}

#[test]
fn described_forms() {
    let cases = cases("described");
    assert_eq!(cases.len(), 1);
    for case in &cases {
        let canonical = wire::spec(&case["spec"]).unwrap().canonical(&Environment::default()).unwrap();
        assert_eq!(wire::print(&canonical, true), case["expectSpec"], "{case}");
    }
}

#[test]
fn valid_specs() {
    let cases = cases("valid");
    assert_eq!(cases.len(), 4);
    for case in &cases {
        compile(case);
    }
}

#[test]
fn refused_specs() {
    let cases = cases("error");
    assert_eq!(cases.len(), 42);
    for case in &cases {
        let error = wire::spec(&case["spec"]).and_then(|spec| spec.compile()).unwrap_err();
        let expected = case["errorContains"].as_str().unwrap();
        assert!(error.to_string().contains(expected), "{case}: {error}");
        assert!(!error.field().is_empty(), "{case}: {error} does not say where");
    }
}

/// The original searches until a limit stops it; we know that nothing is left.
#[test]
fn a_spec_that_would_exceed_the_compute_limit_is_known_to_never_fire() {
    let cases = cases("computeLimit");
    assert_eq!(cases.len(), 1);
    for case in &cases {
        assert!(compile(case).never_fires(), "{case}");
    }
}

#[test]
fn matching_times_exclude_the_start_and_include_the_end() {
    let cases = cases("matchingTimes");
    assert_eq!(cases.len(), 1);
    for case in &cases {
        let (start, end) = (instant(case["start"].as_str().unwrap()), instant(case["end"].as_str().unwrap()));
        let count = compile(case).iterate(start, end).count();
        assert_eq!(Value::from(count), case["expectCount"], "{case}");
    }
}

#[test]
fn backfill_ranges_include_both_ends() {
    let cases = cases("backfill");
    assert_eq!(cases.len(), 3);
    for case in &cases {
        let (start, end) = (instant(case["start"].as_str().unwrap()), instant(case["end"].as_str().unwrap()));
        let before = start - SignedDuration::from_nanos(1);
        let count = compile(case).iterate(before, end).count();
        assert_eq!(Value::from(count), case["expectCount"], "{case}");
    }
}
