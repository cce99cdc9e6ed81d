//! A filter compared with the types of its attributes, once for all schedules.

use jiff::Timestamp;
use punctual_temporal_api::temporal::api::enums::v1::IndexedValueType as Kind;

use super::{Comparison, Literal, Operator, Order, Query, QueryError};

/// A filter whose attributes are known and whose values have their types.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::temporal) enum Filter {
    Both(Box<Filter>, Box<Filter>),
    Either(Box<Filter>, Box<Filter>),
    Not(Box<Filter>),
    Condition(Condition),
}

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::temporal) struct Condition {
    pub(in crate::temporal) attribute: String,
    pub(in crate::temporal) test: Test,
}

/// What is asked of a value.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::temporal) enum Test {
    Is(Order, Value),
    In(Vec<Value>),
    StartsWith(String),
    Between(Value, Value),
    /// A text that has one of these words.
    HasWord(Vec<String>),
    Null,
    Not(Box<Test>),
}

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::temporal) enum Value {
    Keyword(String),
    Text(String),
    Int(i64),
    Double(f64),
    Bool(bool),
    Datetime(Timestamp),
    KeywordList(Vec<String>),
}

impl Query {
    /// The names of the attributes that are asked for.
    pub(in crate::temporal) fn attributes(&self) -> Vec<&str> {
        match self {
            Query::Both(left, right) | Query::Either(left, right) => {
                [left.attributes(), right.attributes()].concat()
            }
            Query::Not(query) => query.attributes(),
            Query::Compare(comparison) => vec![&comparison.attribute],
        }
    }

    /// Compares it with the types of its attributes; `kind` says what an attribute may hold, or why nobody may ask for it.
    pub(in crate::temporal) fn check(
        self,
        kind: &impl Fn(&str) -> Result<Kind, String>,
    ) -> Result<Filter, QueryError> {
        Ok(match self {
            Query::Both(left, right) => {
                Filter::Both(Box::new(left.check(kind)?), Box::new(right.check(kind)?))
            }
            Query::Either(left, right) => {
                Filter::Either(Box::new(left.check(kind)?), Box::new(right.check(kind)?))
            }
            Query::Not(query) => Filter::Not(Box::new(query.check(kind)?)),
            Query::Compare(Comparison { attribute, operator, position }) => {
                let fault = |message| QueryError { message, position };
                let kind = kind(&attribute).map_err(fault)?;
                let test =
                    test(operator, kind).map_err(|message| fault(format!("{attribute}: {message}")))?;
                Filter::Condition(Condition { attribute, test })
            }
        })
    }
}

fn test(operator: Operator, kind: Kind) -> Result<Test, String> {
    let word = kind.as_str_name().trim_start_matches("INDEXED_VALUE_TYPE_").to_lowercase();
    let unfit = |what: &str| Err(format!("{what} makes no sense for an attribute of type {word}"));
    Ok(match operator {
        Operator::Not(inner) => Test::Not(Box::new(test(*inner, kind)?)),
        Operator::Null => Test::Null,
        Operator::Is(Order::Equal, Literal::Text(text)) if kind == Kind::Text => Test::HasWord(words(&text)),
        Operator::Is(order, _) if order != Order::Equal && !is_ordered(kind) => return unfit("an order"),
        Operator::Is(order, literal) => Test::Is(order, value(literal, kind)?),
        Operator::In(_) | Operator::Between(..) | Operator::StartsWith(_) if kind == Kind::Text => {
            return unfit("anything but = and !=");
        }
        Operator::In(literals) => {
            Test::In(literals.into_iter().map(|literal| value(literal, kind)).collect::<Result<_, _>>()?)
        }
        Operator::StartsWith(Literal::Text(text)) if matches!(kind, Kind::Keyword | Kind::KeywordList) => {
            Test::StartsWith(text)
        }
        Operator::StartsWith(_) => return unfit("STARTS_WITH"),
        Operator::Between(_, _) if !is_ordered(kind) => return unfit("BETWEEN"),
        Operator::Between(low, high) => Test::Between(value(low, kind)?, value(high, kind)?),
    })
}

fn is_ordered(kind: Kind) -> bool {
    matches!(kind, Kind::Keyword | Kind::Int | Kind::Double | Kind::Datetime)
}

/// The words of a text, in lower case.
pub(in crate::temporal) fn words(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

fn value(literal: Literal, kind: Kind) -> Result<Value, String> {
    let unfit = |expected: &str, found: &str| Err(format!("expected {expected}, found `{found}`"));
    match (kind, literal) {
        (Kind::Keyword | Kind::KeywordList, Literal::Text(text)) => Ok(Value::Keyword(text)),
        (Kind::Text, Literal::Text(text)) => Ok(Value::Text(text)),
        (Kind::Int, Literal::Number(text) | Literal::Text(text)) => match text.parse() {
            Ok(number) => Ok(Value::Int(number)),
            Err(_) => unfit("a whole number", &text),
        },
        (Kind::Double, Literal::Number(text) | Literal::Text(text)) => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Value::Double(number)),
            _ => unfit("a number", &text),
        },
        (Kind::Bool, Literal::Flag(flag)) => Ok(Value::Bool(flag)),
        (Kind::Bool, Literal::Text(text)) => match text.to_lowercase().as_str() {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            _ => unfit("true or false", &text),
        },
        (Kind::Datetime, Literal::Text(text)) => match text.parse() {
            Ok(time) => Ok(Value::Datetime(time)),
            Err(_) => unfit("a time such as '2026-01-31T09:00:00Z'", &text),
        },
        (Kind::Datetime, Literal::Number(text)) => {
            let time = text.parse().ok().and_then(|nanos| Timestamp::from_nanosecond(nanos).ok());
            time.map_or_else(|| unfit("nanoseconds since 1970", &text), |time| Ok(Value::Datetime(time)))
        }
        (_, Literal::Number(text)) => unfit("another type than a number", &text),
        (_, Literal::Flag(flag)) => unfit("another type than true or false", &flag.to_string()),
        (Kind::Unspecified, Literal::Text(text)) => unfit("nothing", &text),
    }
}
