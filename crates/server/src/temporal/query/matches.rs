//! A filter asked of one schedule, by the logic of SQL: what is compared with nothing is neither true nor false.

use std::cmp::Ordering;

use super::check::words;
use super::{Condition, Filter, Order, Test, Value};

/// What a schedule answers.
pub(in crate::temporal) trait Facts {
    /// The value of an attribute, if it has one.
    fn fact(&self, attribute: &str) -> Option<Value>;
}

impl Filter {
    /// Whether a schedule is one of those that were asked for.
    pub(in crate::temporal) fn is_met(&self, facts: &impl Facts) -> bool {
        self.holds(facts) == Some(true)
    }

    fn holds(&self, facts: &impl Facts) -> Option<bool> {
        match self {
            Filter::Both(left, right) => match (left.holds(facts), right.holds(facts)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Filter::Either(left, right) => match (left.holds(facts), right.holds(facts)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            },
            Filter::Not(filter) => filter.holds(facts).map(|holds| !holds),
            Filter::Condition(Condition { attribute, test }) => test.holds(facts.fact(attribute).as_ref()),
        }
    }
}

impl Test {
    fn holds(&self, value: Option<&Value>) -> Option<bool> {
        match (self, value) {
            (Test::Not(test), value) => test.holds(value).map(|holds| !holds),
            (Test::Null, value) => Some(value.is_none()),
            (_, None) => None,
            // One of a list is enough.
            (test, Some(Value::KeywordList(keywords))) => {
                let each = keywords.iter().map(|keyword| test.holds(Some(&Value::Keyword(keyword.clone()))));
                Some(each.into_iter().any(|holds| holds == Some(true)))
            }
            (Test::Is(order, wanted), Some(value)) => compare(value, wanted).map(|found| order.allows(found)),
            (Test::In(wanted), Some(value)) => {
                Some(wanted.iter().any(|wanted| compare(value, wanted) == Some(Ordering::Equal)))
            }
            (Test::Between(low, high), Some(value)) => Some(
                compare(value, low).is_some_and(Ordering::is_ge)
                    && compare(value, high).is_some_and(Ordering::is_le),
            ),
            (Test::StartsWith(prefix), Some(Value::Keyword(text))) => Some(text.starts_with(prefix)),
            (Test::HasWord(wanted), Some(Value::Text(text))) => {
                let found = words(text);
                Some(wanted.iter().any(|word| found.contains(word)))
            }
            (Test::StartsWith(_) | Test::HasWord(_), Some(_)) => Some(false),
        }
    }
}

impl Order {
    fn allows(self, found: Ordering) -> bool {
        match self {
            Order::Equal => found.is_eq(),
            Order::Less => found.is_lt(),
            Order::LessOrEqual => found.is_le(),
            Order::Greater => found.is_gt(),
            Order::GreaterOrEqual => found.is_ge(),
        }
    }
}

/// Nothing if they are of different types, as after an attribute was removed and made anew.
fn compare(value: &Value, wanted: &Value) -> Option<Ordering> {
    match (value, wanted) {
        (Value::Keyword(value), Value::Keyword(wanted)) => Some(value.cmp(wanted)),
        (Value::Text(value), Value::Text(wanted)) => Some(value.cmp(wanted)),
        (Value::Int(value), Value::Int(wanted)) => Some(value.cmp(wanted)),
        (Value::Double(value), Value::Double(wanted)) => value.partial_cmp(wanted),
        (Value::Bool(value), Value::Bool(wanted)) => Some(value.cmp(wanted)),
        (Value::Datetime(value), Value::Datetime(wanted)) => Some(value.cmp(wanted)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;
    use punctual_temporal_api::temporal::api::enums::v1::IndexedValueType as Kind;

    struct Sample;

    impl Facts for Sample {
        fn fact(&self, attribute: &str) -> Option<Value> {
            Some(match attribute {
                "id" => Value::Keyword("billing-7".into()),
                "about" => Value::Text("Quarterly billing report".into()),
                "count" => Value::Int(5),
                "share" => Value::Double(0.25),
                "paused" => Value::Bool(true),
                "next" => Value::Datetime("2026-01-02T03:04:05Z".parse().unwrap()),
                "tags" => Value::KeywordList(vec!["red".into(), "green".into()]),
                _ => return None,
            })
        }
    }

    fn kind(name: &str) -> Result<Kind, String> {
        Ok(match name {
            "id" | "missing" => Kind::Keyword,
            "about" => Kind::Text,
            "count" => Kind::Int,
            "share" => Kind::Double,
            "paused" => Kind::Bool,
            "next" => Kind::Datetime,
            "tags" => Kind::KeywordList,
            other => return Err(format!("there is no search attribute {other}")),
        })
    }

    fn met(text: &str) -> bool {
        read(text).unwrap().unwrap().check(&kind).unwrap().is_met(&Sample)
    }

    #[test]
    fn every_type_is_compared_as_what_it_is() {
        for text in [
            "id = 'billing-7' AND id STARTS_WITH 'billing' AND id > 'a'",
            "id NOT STARTS_WITH 'x' AND id NOT IN ('a', 'b') AND id != 'c'",
            "about = 'BILLING' AND about != 'payroll'",
            "count = 5 AND count > 4 AND count BETWEEN 5 AND 9 AND count NOT BETWEEN 6 AND 9",
            "share < 0.5 AND share IN (0.25, 1)",
            "paused = true AND NOT paused = false",
            "next >= '2026-01-02T00:00:00Z' AND next < '2026-01-02T04:04:06+01:00'",
            "tags = 'red' AND tags IN ('blue', 'green') AND tags != 'blue'",
            "missing IS NULL AND id IS NOT NULL",
            "count = 1 OR (count = 2 OR count = 5)",
        ] {
            assert!(met(text), "{text}");
        }
    }

    #[test]
    fn what_is_not_there_is_neither_equal_nor_different() {
        for text in
            ["missing = 'x'", "missing != 'x'", "NOT missing = 'x'", "missing NOT IN ('x')", "count = 6"]
        {
            assert!(!met(text), "{text}");
        }
        assert!(met("missing = 'x' OR count = 5"));
        assert!(!met("missing = 'x' AND count = 5"));
    }

    #[test]
    fn values_of_the_wrong_type_are_refused_where_they_are() {
        let fault = |text: &str| read(text).unwrap().unwrap().check(&kind).unwrap_err().to_string();
        assert_eq!(
            fault("id = 'x' AND count = 'many'"),
            "invalid query: count: expected a whole number, found `many` at position 14"
        );
        assert!(fault("nobody = 1").contains("there is no search attribute nobody at position 1"));
        assert!(fault("paused > true").contains("an order makes no sense for an attribute of type bool"));
        assert!(fault("about STARTS_WITH 'x'").contains("anything but = and !="));
        assert!(fault("next = 'noon'").contains("expected a time"));
        assert!(fault("count STARTS_WITH 'x'").contains("STARTS_WITH makes no sense"));
        assert!(fault("id = 5").contains("expected another type than a number"));
    }
}
