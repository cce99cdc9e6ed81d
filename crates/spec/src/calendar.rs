//! Calendars: which seconds of which days, as ranges (structured) or as text.

use crate::error::Error;

mod print;
mod validate;

pub(crate) use validate::{business_terms, check};

/// The values `start`, `start + step`, … up to `end`, in Temporal's compact form.
///
/// An `end` below `start` (so also the default 0) means `start` alone; a `step` of 0 means 1.
///
/// ```
/// use punctual_spec::Range;
///
/// assert_eq!(Range::at(5), Range { start: 5, end: 0, step: 0 });
/// assert_eq!(Range::new(9, 17, 2).values().collect::<Vec<_>>(), [9, 11, 13, 15, 17]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Range {
    /// The first value.
    pub start: i32,
    /// The last value, included; below `start` it means `start`.
    pub end: i32,
    /// The distance between values; 0 means 1.
    pub step: i32,
}

impl Range {
    /// A range in its minimal form: `end` 0 when it equals `start`, `step` 0 when it is 1.
    ///
    /// ```
    /// use punctual_spec::Range;
    /// assert_eq!(Range::new(5, 5, 1), Range::at(5));
    /// ```
    pub fn new(start: i32, end: i32, step: i32) -> Range {
        Range { start, end: if end == start { 0 } else { end }, step: if step == 1 { 0 } else { step } }
    }

    /// A single value.
    ///
    /// ```
    /// use punctual_spec::Range;
    /// assert_eq!(Range::at(7).values().collect::<Vec<_>>(), [7]);
    /// ```
    pub fn at(value: i32) -> Range {
        Range::new(value, value, 1)
    }

    /// The form that describes itself: `end` and `step` filled in.
    ///
    /// ```
    /// use punctual_spec::Range;
    /// assert_eq!(Range::at(7).filled(), Range { start: 7, end: 7, step: 1 });
    /// ```
    pub fn filled(self) -> Range {
        Range { start: self.start, end: self.end.max(self.start), step: self.step.max(1) }
    }

    /// The values in order.
    ///
    /// ```
    /// use punctual_spec::Range;
    /// assert_eq!(Range::new(0, 59, 20).values().collect::<Vec<_>>(), [0, 20, 40]);
    /// ```
    pub fn values(self) -> impl Iterator<Item = i32> {
        let Range { start, end, step } = self.filled();
        (start..=end).step_by(step as usize)
    }
}

/// A day of the month that depends on the month.
///
/// ```
/// use punctual_spec::{Calendar, DayOfMonthTerm, Spec};
///
/// let mut last_day = Calendar::midnight();
/// last_day.day_of_month.clear();
/// last_day.day_of_month_terms.push(DayOfMonthTerm::LastDay { before: 0 });
/// let compiled = Spec::new().calendar(last_day).compile()?;
/// let next = compiled.next("2028-02-01T00:00:00Z".parse().unwrap()).unwrap();
/// assert_eq!(next.nominal_time.to_string(), "2028-02-29T00:00:00Z");
/// # Ok::<(), punctual_spec::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum DayOfMonthTerm {
    /// The last day, or this many days before it: `L`, `L-3`.
    LastDay {
        /// Days before the last, 0 to 30.
        before: u8,
    },
    /// The weekday (Monday to Friday) nearest to a day, within the month: `15W`.
    NearestWeekday {
        /// 1 to 31; a month without that day has no such weekday.
        day: u8,
    },
    /// The last weekday (Monday to Friday): `LW`.
    LastWeekday,
    /// The nth business day, by the spec's business calendar: `3B`; counted from the end if negative: `LB` is -1.
    BusinessDay {
        /// 1 to 31, or -31 to -1.
        nth: i8,
    },
    /// The business day nearest to a day, within the month; the earlier one of two: `15WB`.
    NearestBusinessDay {
        /// 1 to 31; a month without that day has no such business day.
        day: u8,
    },
}

/// A weekday that depends on the month. Weekdays count from 0, Sunday.
///
/// ```
/// use punctual_spec::{Dialect, Spec};
///
/// let compiled = Spec::new().cron_in(Dialect::Quartz, "0 0 9 ? * FRI#3").compile()?;
/// let next = compiled.next("2026-01-01T00:00:00Z".parse().unwrap()).unwrap();
/// assert_eq!(next.nominal_time.to_string(), "2026-01-16T09:00:00Z");
/// # Ok::<(), punctual_spec::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum DayOfWeekTerm {
    /// The nth of a weekday: `FRI#3`.
    Nth {
        /// 0 (Sunday) to 6.
        weekday: u8,
        /// 1 to 5; a month without a fifth has none.
        nth: u8,
    },
    /// The last of a weekday: `FRIL`.
    Last {
        /// 0 (Sunday) to 6.
        weekday: u8,
    },
}

/// A calendar in structured form: all fields must hold at once, day of month and day of week included.
///
/// As in Temporal, a field without any value matches nothing, except that no `year` means every year. The
/// relative terms are added to the values of their field.
///
/// ```
/// use punctual_spec::{Calendar, Range, Spec};
///
/// let mut noon_on_workdays = Calendar::midnight();
/// noon_on_workdays.hour = vec![Range::at(12)];
/// noon_on_workdays.day_of_week = vec![Range::new(1, 5, 1)];
/// assert_eq!(noon_on_workdays.to_cron().as_deref(), Some("0 0 12 * * 1-5 *"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Calendar {
    /// 0 to 59.
    pub second: Vec<Range>,
    /// 0 to 59.
    pub minute: Vec<Range>,
    /// 0 to 23.
    pub hour: Vec<Range>,
    /// 1 to 31.
    pub day_of_month: Vec<Range>,
    /// More days of the month, relative ones.
    pub day_of_month_terms: Vec<DayOfMonthTerm>,
    /// 1 to 12.
    pub month: Vec<Range>,
    /// 0 (Sunday) to 6.
    pub day_of_week: Vec<Range>,
    /// More weekdays, relative to the month.
    pub day_of_week_terms: Vec<DayOfWeekTerm>,
    /// 2000 to 2100; empty means all of them.
    pub year: Vec<Range>,
    /// For people; at most 200 bytes.
    pub comment: String,
}

impl Calendar {
    /// Every day at midnight: what a calendar text without any field means.
    ///
    /// ```
    /// use punctual_spec::Calendar;
    /// assert_eq!(Calendar::midnight().to_cron().as_deref(), Some("0 0 0 * * * *"));
    /// ```
    pub fn midnight() -> Calendar {
        Calendar {
            second: vec![Range::at(0)],
            minute: vec![Range::at(0)],
            hour: vec![Range::at(0)],
            day_of_month: vec![Range::new(1, 31, 1)],
            month: vec![Range::new(1, 12, 1)],
            day_of_week: vec![Range::new(0, 6, 1)],
            ..Calendar::default()
        }
    }

    /// Every second of every day: a base for exclusions of whole days.
    ///
    /// ```
    /// use punctual_spec::Calendar;
    /// assert_eq!(Calendar::every_second().to_cron().as_deref(), Some("* * * * * * *"));
    /// ```
    pub fn every_second() -> Calendar {
        Calendar {
            second: vec![Range::new(0, 59, 1)],
            minute: vec![Range::new(0, 59, 1)],
            hour: vec![Range::new(0, 23, 1)],
            ..Calendar::midnight()
        }
    }

    /// The calendar as a cron string that parses back to it: with seconds and year in the temporal dialect, or,
    /// with relative terms, in the quartz dialect. Nothing if neither can say it.
    ///
    /// ```
    /// use punctual_spec::{Calendar, DayOfWeekTerm};
    ///
    /// let mut last_friday = Calendar::midnight();
    /// last_friday.day_of_week.clear();
    /// last_friday.day_of_week_terms.push(DayOfWeekTerm::Last { weekday: 5 });
    /// assert_eq!(last_friday.to_cron().as_deref(), Some("0 0 0 ? * FRIL *"));
    /// ```
    pub fn to_cron(&self) -> Option<String> {
        print::to_cron(self)
    }

    /// Checks ranges, terms and comment, as [`Spec::compile`](crate::Spec::compile) does.
    ///
    /// ```
    /// use punctual_spec::{Calendar, Range};
    ///
    /// let mut calendar = Calendar::midnight();
    /// calendar.hour = vec![Range::at(24)];
    /// let error = calendar.check().unwrap_err();
    /// assert_eq!(error.to_string(), "invalid calendar spec: Hour Start is not in range [0-23]");
    /// ```
    pub fn check(&self) -> Result<(), Error> {
        check(self)
    }
}

/// A calendar as text, one string a field, in Temporal's grammar.
///
/// An empty string is the default: `0` for the time of day, `*` for the rest. So the empty calendar means
/// every day at midnight.
///
/// ```
/// use punctual_spec::{CalendarText, Spec};
///
/// let mut text = CalendarText::default();
/// text.hour = "9-17/2".into();
/// text.day_of_week = "mon-fri".into();
/// let compiled = Spec::new().calendar_text(text).compile()?;
/// let next = compiled.next("2026-01-03T00:00:00Z".parse().unwrap()).unwrap();
/// assert_eq!(next.nominal_time.to_string(), "2026-01-05T09:00:00Z");
/// # Ok::<(), punctual_spec::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct CalendarText {
    /// 0 to 59.
    pub second: String,
    /// 0 to 59.
    pub minute: String,
    /// 0 to 23.
    pub hour: String,
    /// 1 to 31.
    pub day_of_month: String,
    /// 1 to 12, or names.
    pub month: String,
    /// 0 (Sunday) to 7 (Sunday again), or names.
    pub day_of_week: String,
    /// 2000 to 2100.
    pub year: String,
    /// For people; at most 200 bytes.
    pub comment: String,
}
