//! The published `range` and `values` cases of Temporal's field parser.

use serde_json::Value;

use super::*;

const CASES: &str = include_str!("../../../tests/cases/temporal-spec-cases.json");

fn cases(kind: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_json::from_str(CASES).unwrap();
    all.into_iter().filter(|case| case["kind"] == kind).collect()
}

fn parse(case: &Value) -> Result<Vec<Range>, Error> {
    let number = |key: &str| case[key].as_i64().unwrap() as i32;
    let names = match case["mode"].as_str().unwrap() {
        "month" => Names::Months,
        "dow" => Names::Weekdays,
        _ => Names::None,
    };
    let kind = FieldKind { name: "Test", key: "test", min: number("min"), max: number("max"), names };
    let reader = Reader::with_bounds(&kind, kind.min, kind.max);
    let mut values = Values::default();
    let mut at = 0;
    for part in case["input"].as_str().unwrap().split(',') {
        reader.part(part, at, &mut values)?;
        at += part.len() + 1;
    }
    Ok(values.ranges)
}

#[test]
fn ranges_are_as_published() {
    let cases = cases("range");
    assert_eq!(cases.len(), 20);
    for case in &cases {
        let parsed = parse(case);
        if let Some(message) = case["errorContains"].as_str() {
            let error = parsed.unwrap_err().to_string();
            assert!(error.contains(message), "{case}: {error}");
            continue;
        }
        let expected: Vec<Range> = case["expectRanges"]
            .as_array()
            .unwrap()
            .iter()
            .map(|range| {
                let number = |key: &str| range[key].as_i64().unwrap_or(0) as i32;
                Range { start: number("start"), end: number("end"), step: number("step") }
            })
            .collect();
        assert_eq!(parsed.unwrap(), expected, "{case}");
    }
}

#[test]
fn value_sets_are_as_published() {
    let cases = cases("values");
    assert_eq!(cases.len(), 7);
    for case in &cases {
        let values: Vec<i64> =
            parse(case).unwrap().into_iter().flat_map(Range::values).map(i64::from).collect();
        let listed =
            |key: &str| case[key].as_array().unwrap().iter().map(|v| v.as_i64().unwrap()).collect::<Vec<_>>();
        assert!(listed("includes").iter().all(|value| values.contains(value)), "{case}: {values:?}");
        assert!(!listed("excludes").iter().any(|value| values.contains(value)), "{case}: {values:?}");
    }
}
