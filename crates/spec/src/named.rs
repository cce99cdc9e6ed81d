//! Named calendars: sets of dates that the caller knows, such as holidays or trading days.

use jiff::civil::{Date, Weekday};

use crate::civil::day_of_date;
use crate::days::bits::DayBits;
use crate::days::{ALL_MONTHS, ALL_YEARS, DaySet, Pattern, days_of_weekday};

/// A set of dates under a name: listed ones, and weekdays that are always in it.
///
/// ```
/// use jiff::civil::{Weekday, date};
/// use punctual_spec::{CalendarRule, Environment, NamedCalendar, Roll, Spec};
///
/// let closed = NamedCalendar::new([date(2026, 1, 1)]).with_weekdays([Weekday::Saturday, Weekday::Sunday]);
/// let environment = Environment::default().with_calendar("bank", closed);
/// let spec = Spec::new().cron("0 9 1 * *").calendar_rule(CalendarRule::exclude("bank").roll(Roll::Forward));
///
/// let compiled = spec.compile_in(&environment)?;
/// let first = compiled.next("2025-12-31T00:00:00Z".parse().unwrap()).unwrap();
/// assert_eq!(first.nominal_time.to_string(), "2026-01-02T09:00:00Z");
/// # Ok::<(), punctual_spec::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedCalendar {
    dates: Vec<Date>,
    weekdays: Vec<Weekday>,
}

impl NamedCalendar {
    /// A calendar of these dates; order and repetition do not matter, dates outside of 2000 to 2100 never occur.
    ///
    /// ```
    /// use jiff::civil::date;
    /// let christmas = punctual_spec::NamedCalendar::new([date(2026, 12, 25)]);
    /// assert!(christmas.contains(date(2026, 12, 25)));
    /// ```
    pub fn new(dates: impl IntoIterator<Item = Date>) -> NamedCalendar {
        let mut dates: Vec<Date> = dates.into_iter().collect();
        dates.sort_unstable();
        dates.dedup();
        NamedCalendar { dates, weekdays: Vec::new() }
    }

    /// Adds weekdays that are always in the calendar, such as a weekend.
    ///
    /// ```
    /// use jiff::civil::{Weekday, date};
    /// let weekend = punctual_spec::NamedCalendar::new([]).with_weekdays([Weekday::Saturday, Weekday::Sunday]);
    /// assert!(weekend.contains(date(2026, 1, 3)) && !weekend.contains(date(2026, 1, 5)));
    /// ```
    pub fn with_weekdays(mut self, weekdays: impl IntoIterator<Item = Weekday>) -> NamedCalendar {
        self.weekdays.extend(weekdays);
        self
    }

    /// Whether a date is in the calendar.
    ///
    /// ```
    /// use jiff::civil::date;
    /// assert!(!punctual_spec::NamedCalendar::default().contains(date(2026, 1, 1)));
    /// ```
    pub fn contains(&self, date: Date) -> bool {
        self.dates.binary_search(&date).is_ok() || self.weekdays.contains(&date.weekday())
    }

    pub(crate) fn dates_len(&self) -> usize {
        self.dates.len()
    }

    pub(crate) fn days(&self) -> DayBits {
        let mut days = self.days_by(&self.weekdays);
        for day in self.dates.iter().filter_map(|date| day_of_date(*date)) {
            days.insert(day);
        }
        days
    }

    /// The days that are closed for business: the calendar's, and its weekdays or else Saturday and Sunday.
    pub(crate) fn closed_days(&self) -> DayBits {
        let mut days = self.days();
        if self.weekdays.is_empty() {
            days.insert_all(&self.days_by(&[Weekday::Saturday, Weekday::Sunday]));
        }
        days
    }

    fn days_by(&self, weekdays: &[Weekday]) -> DayBits {
        let days_of = |first_weekday: u8| {
            let days =
                weekdays.iter().map(|w| days_of_weekday(first_weekday, w.to_sunday_zero_offset() as u8));
            days.fold(0, |days, more| days | more)
        };
        DaySet::Pattern(Pattern::new(ALL_YEARS, ALL_MONTHS, |_, first_weekday| days_of(first_weekday)))
            .to_bits()
    }

    /// The first and the last date it knows; nothing when its weekdays go on for ever.
    pub(crate) fn coverage(&self) -> Option<(Date, Date)> {
        match (&self.weekdays[..], &self.dates[..]) {
            ([], [only]) => Some((*only, *only)),
            ([], [first, .., last]) => Some((*first, *last)),
            _ => None,
        }
    }
}

/// How a spec uses a named calendar.
///
/// ```
/// use punctual_spec::{CalendarMode, CalendarRule, Roll};
///
/// let rule = CalendarRule::only_on("trading-days").roll(Roll::Back);
/// assert_eq!((rule.mode, rule.roll), (CalendarMode::Include, Roll::Back));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CalendarRule {
    /// The name of the calendar in the [`Environment`](crate::Environment).
    pub calendar: String,
    /// Whether its dates are the only ones, or none of them.
    pub mode: CalendarMode,
    /// What becomes of an occurrence on a date that the rule forbids.
    pub roll: Roll,
}

impl CalendarRule {
    /// Nothing occurs on a date of the calendar.
    ///
    /// ```
    /// use punctual_spec::{CalendarRule, Roll};
    /// assert_eq!(CalendarRule::exclude("holidays").roll, Roll::Skip);
    /// ```
    pub fn exclude(calendar: impl Into<String>) -> CalendarRule {
        CalendarRule { calendar: calendar.into(), mode: CalendarMode::Exclude, roll: Roll::Skip }
    }

    /// Everything occurs on a date of the calendar.
    ///
    /// ```
    /// use punctual_spec::{CalendarMode, CalendarRule};
    /// assert_eq!(CalendarRule::only_on("trading-days").mode, CalendarMode::Include);
    /// ```
    pub fn only_on(calendar: impl Into<String>) -> CalendarRule {
        CalendarRule { calendar: calendar.into(), mode: CalendarMode::Include, roll: Roll::Skip }
    }

    /// What to do with an occurrence on a date that the rule forbids.
    ///
    /// ```
    /// use punctual_spec::{CalendarRule, Roll};
    /// assert_eq!(CalendarRule::exclude("holidays").roll(Roll::Forward).roll, Roll::Forward);
    /// ```
    pub fn roll(self, roll: Roll) -> CalendarRule {
        CalendarRule { roll, ..self }
    }
}

/// Whether a named calendar says where occurrences may be, or where they may not.
///
/// ```
/// use punctual_spec::{CalendarMode, CalendarRule};
/// assert_eq!(CalendarRule::exclude("holidays").mode, CalendarMode::Exclude);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum CalendarMode {
    /// Only on its dates.
    Include,
    /// On none of its dates.
    Exclude,
}

/// What becomes of an occurrence on a forbidden date. The time of day stays.
///
/// ```
/// use jiff::civil::date;
/// use punctual_spec::{CalendarRule, Environment, NamedCalendar, Roll, Spec};
///
/// let environment = Environment::default().with_calendar("closed", NamedCalendar::new([date(2026, 5, 1)]));
/// let first = |roll| {
///     let spec = Spec::new().cron("0 9 1 5 * 2026").calendar_rule(CalendarRule::exclude("closed").roll(roll));
///     spec.compile_in(&environment).unwrap().first().map(|time| time.to_string())
/// };
/// assert_eq!(first(Roll::Skip), None);
/// assert_eq!(first(Roll::Forward).as_deref(), Some("2026-05-02T09:00:00Z"));
/// assert_eq!(first(Roll::Back).as_deref(), Some("2026-04-30T09:00:00Z"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Roll {
    /// It does not happen.
    #[default]
    Skip,
    /// It moves to the next date that every rule allows.
    Forward,
    /// It moves to the previous date that every rule allows.
    Back,
}
