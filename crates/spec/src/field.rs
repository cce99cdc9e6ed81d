//! The seven fields of a calendar: their names, bounds and the words that stand for numbers.

use crate::limits::{YEAR_MAX, YEAR_MIN};

/// One field of a calendar.
#[derive(Debug)]
pub(crate) struct FieldKind {
    /// As Temporal's messages spell it.
    pub(crate) name: &'static str,
    /// As our own paths spell it.
    pub(crate) key: &'static str,
    pub(crate) min: i32,
    pub(crate) max: i32,
    pub(crate) names: Names,
}

/// Which words a field understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    None,
    Months,
    Weekdays,
}

const fn field(name: &'static str, key: &'static str, min: i32, max: i32, names: Names) -> FieldKind {
    FieldKind { name, key, min, max, names }
}

pub(crate) static SECOND: FieldKind = field("Second", "second", 0, 59, Names::None);
pub(crate) static MINUTE: FieldKind = field("Minute", "minute", 0, 59, Names::None);
pub(crate) static HOUR: FieldKind = field("Hour", "hour", 0, 23, Names::None);
pub(crate) static DAY_OF_MONTH: FieldKind = field("DayOfMonth", "day_of_month", 1, 31, Names::None);
pub(crate) static MONTH: FieldKind = field("Month", "month", 1, 12, Names::Months);
pub(crate) static DAY_OF_WEEK: FieldKind = field("DayOfWeek", "day_of_week", 0, 6, Names::Weekdays);
pub(crate) static YEAR: FieldKind = field("Year", "year", YEAR_MIN as i32, YEAR_MAX as i32, Names::None);

pub(crate) const MONTH_NAMES: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

pub(crate) const WEEKDAY_NAMES: [&str; 7] =
    ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

impl Names {
    /// The number of a word: months by at least three letters, weekdays (0 is Sunday) by at least two.
    pub(crate) fn lookup(self, word: &str) -> Option<i32> {
        let (names, letters_min, first): (&[&str], usize, i32) = match self {
            Names::None => return None,
            Names::Months => (&MONTH_NAMES, 3, 1),
            Names::Weekdays => (&WEEKDAY_NAMES, 2, 0),
        };
        if word.len() < letters_min {
            return None;
        }
        let matches =
            |name: &&str| name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
        names.iter().position(matches).map(|index| index as i32 + first)
    }
}
