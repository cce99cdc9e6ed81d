//! List filters: `ScheduleId STARTS_WITH 'billing-' AND (Team IN ('a', 'b') OR NOT TemporalSchedulePaused = true)`.
//!
//! Text becomes words (`words`), words become a tree (here), the tree is compared with the types of its attributes (`check`), and
//! then asked of each schedule (`matches`).

mod words;
mod check;
mod matches;

pub(super) use check::{Condition, Filter, Test, Value};
pub(super) use matches::Facts;

use words::{Word, Words};

/// Bytes of a filter: more is no question that a person has.
pub(super) const QUERY_BYTES_MAX: usize = 10_000;

/// Brackets and `NOT`s inside each other.
const DEPTH_MAX: usize = 50;

/// Why a filter cannot be read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueryError {
    message: String,
    /// The place in the text, counted in letters from 1.
    position: usize,
}

impl std::fmt::Display for QueryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "invalid query: {} at position {}", self.message, self.position)
    }
}

/// A filter as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Query {
    Both(Box<Query>, Box<Query>),
    Either(Box<Query>, Box<Query>),
    Not(Box<Query>),
    Compare(Comparison),
}

/// One comparison of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparison {
    pub(super) attribute: String,
    pub(super) operator: Operator,
    pub(super) position: usize,
}

/// What is asked of the attribute.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operator {
    Is(Order, Literal),
    In(Vec<Literal>),
    StartsWith(Literal),
    Between(Literal, Literal),
    Null,
    Not(Box<Operator>),
}

/// How two values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A value as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Text(String),
    Number(String),
    Flag(bool),
}

/// Reads a filter; nothing if there is none.
pub(super) fn read(text: &str) -> Result<Option<Query>, QueryError> {
    if text.len() > QUERY_BYTES_MAX {
        let message = format!("it has {} bytes, at most {QUERY_BYTES_MAX} are allowed", text.len());
        return Err(QueryError { message, position: 1 });
    }
    let mut words = Words::read(text)?;
    if words.is_over() {
        return Ok(None);
    }
    refuse_groups(&mut words)?;
    let query = either(&mut words, 0)?;
    refuse_groups(&mut words)?;
    if !words.is_over() {
        return Err(words.expected("AND, OR or the end"));
    }
    Ok(Some(query))
}

/// Temporal counts schedules in no groups either, and says so in these words.
fn refuse_groups(words: &mut Words) -> Result<(), QueryError> {
    let position = words.position();
    if !words.take_both("GROUP", "BY") {
        return Ok(());
    }
    let name = words.name()?;
    let reason = match words.take(",") {
        true => "supports only a single field".to_owned(),
        false => format!("is not supported for search attribute {name}"),
    };
    let message = format!("operation is not supported: 'GROUP BY' clause {reason}");
    Err(QueryError { message, position })
}

fn either(words: &mut Words, depth: usize) -> Result<Query, QueryError> {
    let mut query = both(words, depth)?;
    while words.take("OR") {
        query = Query::Either(Box::new(query), Box::new(both(words, depth)?));
    }
    Ok(query)
}

fn both(words: &mut Words, depth: usize) -> Result<Query, QueryError> {
    let mut query = one(words, depth)?;
    while words.take("AND") {
        query = Query::Both(Box::new(query), Box::new(one(words, depth)?));
    }
    Ok(query)
}

fn one(words: &mut Words, depth: usize) -> Result<Query, QueryError> {
    if depth >= DEPTH_MAX {
        return Err(words.fault(format!("more than {DEPTH_MAX} brackets inside each other")));
    }
    if words.take("NOT") {
        return Ok(Query::Not(Box::new(one(words, depth + 1)?)));
    }
    if words.take("(") {
        let query = either(words, depth + 1)?;
        return if words.take(")") { Ok(query) } else { Err(words.expected("`)`")) };
    }
    let position = words.position();
    let attribute = words.name()?;
    Ok(Query::Compare(Comparison { attribute, operator: operator(words)?, position }))
}

fn operator(words: &mut Words) -> Result<Operator, QueryError> {
    let orders = [
        ("=", Order::Equal),
        ("<=", Order::LessOrEqual),
        (">=", Order::GreaterOrEqual),
        ("<", Order::Less),
        (">", Order::Greater),
    ];
    for (sign, order) in orders {
        if words.take(sign) {
            return Ok(Operator::Is(order, literal(words)?));
        }
    }
    if words.take("!=") || words.take("<>") {
        return Ok(negated(Operator::Is(Order::Equal, literal(words)?)));
    }
    if words.take("IS") {
        let not = words.take("NOT");
        if !words.take("NULL") {
            return Err(words.expected("NULL"));
        }
        return Ok(if not { negated(Operator::Null) } else { Operator::Null });
    }
    let not = words.take("NOT");
    let operator = match () {
        () if words.take("IN") => Operator::In(list(words)?),
        () if words.take("STARTS_WITH") => Operator::StartsWith(literal(words)?),
        () if words.take("BETWEEN") => {
            let low = literal(words)?;
            if !words.take("AND") {
                return Err(words.expected("AND"));
            }
            Operator::Between(low, literal(words)?)
        }
        () if not => return Err(words.expected("IN, STARTS_WITH or BETWEEN")),
        () => {
            return Err(words.expected("a comparison such as =, !=, <, IN, STARTS_WITH, BETWEEN or IS NULL"));
        }
    };
    Ok(if not { negated(operator) } else { operator })
}

fn negated(operator: Operator) -> Operator {
    Operator::Not(Box::new(operator))
}

fn list(words: &mut Words) -> Result<Vec<Literal>, QueryError> {
    if !words.take("(") {
        return Err(words.expected("`(`"));
    }
    let mut literals = vec![literal(words)?];
    while words.take(",") {
        literals.push(literal(words)?);
    }
    if words.take(")") { Ok(literals) } else { Err(words.expected("`,` or `)`")) }
}

fn literal(words: &mut Words) -> Result<Literal, QueryError> {
    let literal = match words.peek() {
        Some(Word::Text(text)) => Literal::Text(text.clone()),
        Some(Word::Number(text)) => Literal::Number(text.clone()),
        Some(Word::Name(name)) if name.eq_ignore_ascii_case("true") => Literal::Flag(true),
        Some(Word::Name(name)) if name.eq_ignore_ascii_case("false") => Literal::Flag(false),
        _ => return Err(words.expected("a text in quotes, a number, true or false")),
    };
    words.next();
    Ok(literal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn and_binds_closer_than_or_and_not_closest() {
        let name = |query: &Query| match query {
            Query::Compare(comparison) => comparison.attribute.clone(),
            other => panic!("{other:?}"),
        };
        let Some(Query::Either(left, right)) = read("a = 1 or not b = 2 and c = 3").unwrap() else {
            panic!("an OR")
        };
        let Query::Both(not, last) = *right else { panic!("an AND") };
        let Query::Not(middle) = *not else { panic!("a NOT") };
        assert_eq!((name(&left), name(&middle), name(&last)), ("a".into(), "b".into(), "c".into()));
        assert_eq!(read(" \n ").unwrap(), None);
    }

    #[test]
    fn every_comparison_is_read() {
        for text in [
            "a = 'x'",
            "`a b` != \"it''s\"",
            "a <> -1.5e3",
            "a >= 1 AND a<=2 AND a>0 AND a<9",
            "a IN ('x', 2, true)",
            "a NOT IN ('x')",
            "a starts_with 'x'",
            "a NOT STARTS_WITH 'x'",
            "a BETWEEN 1 AND 2 AND b NOT BETWEEN 3 AND 4",
            "a IS NULL OR a is not null",
            "((a = 1))",
        ] {
            assert!(read(text).unwrap().is_some(), "{text}");
        }
    }

    #[test]
    fn groups_are_refused_in_temporals_words_and_a_name_is_no_group() {
        let refused = "invalid query: operation is not supported: 'GROUP BY' clause";
        assert_eq!(
            fault("group by a"),
            format!("{refused} is not supported for search attribute a at position 1")
        );
        assert_eq!(
            fault("a = 1 GROUP BY b"),
            format!("{refused} is not supported for search attribute b at position 7")
        );
        assert_eq!(fault("GROUP BY a, b"), format!("{refused} supports only a single field at position 1"));
        assert!(fault("GROUP BY").contains("expected the name of an attribute"));
        assert!(read("group = 1 AND `GROUP` = 2").unwrap().is_some());
    }

    #[test]
    fn faults_say_where_they_are() {
        assert_eq!(
            fault("a = "),
            "invalid query: expected a text in quotes, a number, true or false, found the end at position 5"
        );
        assert_eq!(fault("a = 1 b"), "invalid query: expected AND, OR or the end, found `b` at position 7");
        assert_eq!(fault("(a = 1"), "invalid query: expected `)`, found the end at position 7");
        assert_eq!(fault("é = 'x"), "invalid query: a text has no end at position 5");
        assert_eq!(fault("a ~ 1"), "invalid query: `~` means nothing here at position 3");
        assert!(fault("a IN 1").contains("expected `(`"));
        assert!(fault("a NOT 1").contains("expected IN, STARTS_WITH or BETWEEN"));
        assert!(fault("a BETWEEN 1 OR 2").contains("expected AND"));
        assert!(fault(&"(".repeat(1_000)).contains("more than 50 brackets"));
        assert!(fault(&"NOT ".repeat(1_000)).contains("more than 50 brackets"));
        assert!(fault(&" ".repeat(20_000)).contains("20000 bytes"));
    }
}
