//! What the user asked for: the sources of time, what is taken away, and how the zone is read.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};

use crate::calendar::{Calendar, CalendarText};
use crate::compile::{self, CompiledSpec};
use crate::error::Error;
use crate::interval::Interval;
use crate::named::{CalendarRule, NamedCalendar};
use crate::zone::Zones;
use crate::{canonical, explain, lint};

/// When things happen: the union of all sources, minus all exclusions, between the bounds.
///
/// Building a spec checks nothing; [`compile`](Spec::compile) checks everything once. The texts stay as they
/// were given.
///
/// ```
/// use punctual_spec::Spec;
///
/// let spec = Spec::new().cron("0 9 * * MON-FRI").zone("Europe/Berlin");
/// let compiled = spec.compile()?;
///
/// let next = compiled.next("2026-03-27T12:00:00Z".parse().unwrap()).unwrap();
/// assert_eq!(next.nominal_time.to_string(), "2026-03-30T07:00:00Z");
/// assert_eq!(spec.explain()?, "At 09:00, Monday through Friday, in Europe/Berlin.");
/// # Ok::<(), punctual_spec::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Spec {
    /// Calendars in structured form.
    pub calendars: Vec<Calendar>,
    /// Calendars as text, one string a field.
    pub calendar_texts: Vec<CalendarText>,
    /// Cron strings.
    pub crons: Vec<Cron>,
    /// Intervals, which know no zone.
    pub intervals: Vec<Interval>,
    /// Single instants in whole seconds.
    pub times: Vec<Timestamp>,
    /// Calendars whose seconds are taken away.
    pub exclusions: Vec<Calendar>,
    /// The same as text.
    pub exclusion_texts: Vec<CalendarText>,
    /// The same as cron strings.
    pub exclusion_crons: Vec<Cron>,
    /// Whole dates that are taken away.
    pub exclusion_dates: Vec<Date>,
    /// Named calendars to keep to or to avoid.
    pub calendar_rules: Vec<CalendarRule>,
    /// The named calendar of days closed for business, for business-day terms; without it Saturday and Sunday.
    pub business_calendar: Option<String>,
    /// No occurrence is before this, to the second.
    pub start_time: Option<Timestamp>,
    /// No occurrence is after this.
    pub end_time: Option<Timestamp>,
    /// How much later than its nominal time an occurrence may be due.
    pub jitter: SignedDuration,
    /// IANA name for everything but intervals and times; empty is UTC, unless a cron string names one.
    pub zone: String,
    /// TZif bytes to use instead of the name's own data.
    pub zone_data: Option<Vec<u8>>,
    /// What becomes of wall times that a day does not have.
    pub gap: Gap,
    /// What becomes of wall times that a day has twice.
    pub fold: Fold,
}

/// A cron string and how to read it.
///
/// ```
/// use punctual_spec::{Cron, Dialect};
/// let cron = Cron::new(Dialect::Unix, "0 0 13 * 5");
/// assert_eq!(cron.text, "0 0 13 * 5");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Cron {
    /// As it was written.
    pub text: String,
    /// The grammar.
    pub dialect: Dialect,
}

impl Cron {
    /// A cron string in a dialect.
    ///
    /// ```
    /// use punctual_spec::{Cron, Dialect};
    /// assert_eq!(Cron::new(Dialect::default(), "@daily").dialect, Dialect::Temporal);
    /// ```
    pub fn new(dialect: Dialect, text: impl Into<String>) -> Cron {
        Cron { text: text.into(), dialect }
    }
}

/// The grammar of a cron string.
///
/// All know names, lists, ranges, steps, `@daily` and its kin, `@every`, `CRON_TZ=`, comments and `H`.
///
/// ```
/// use punctual_spec::{Dialect, Spec};
///
/// let after = "2026-01-01T12:00:00Z".parse().unwrap();
/// let next = |dialect, text: &str| {
///     let compiled = Spec::new().cron_in(dialect, text).compile().unwrap();
///     compiled.next(after).unwrap().nominal_time.to_string()
/// };
/// // Friday the 13th, against Fridays and thirteenths.
/// assert_eq!(next(Dialect::Temporal, "0 0 13 * FRI"), "2026-02-13T00:00:00Z");
/// assert_eq!(next(Dialect::Unix, "0 0 13 * FRI"), "2026-01-02T00:00:00Z");
/// assert_eq!(next(Dialect::Quartz, "0 0 0 L * ?"), "2026-01-31T00:00:00Z");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Dialect {
    /// 5 fields, 6 with the year last, or 7 with the second first; both day fields must hold.
    #[default]
    Temporal,
    /// 5 fields; if both day fields choose, either may hold.
    Unix,
    /// 6 fields with the second first, 7 with the year last; `L W # ?` and business days (`3B`, `LB`, `15WB`).
    Quartz,
}

/// What becomes of a wall time that does not exist, because the clock is set forward over it.
///
/// ```
/// use punctual_spec::{Gap, Spec};
///
/// let spec = Spec::new().cron("30 2 * * *").zone("Europe/Berlin");
/// let night = "2026-03-28T12:00:00Z".parse().unwrap();
/// let next = |spec: Spec| spec.compile().unwrap().next(night).unwrap().nominal_time.to_string();
///
/// assert_eq!(next(spec.clone()), "2026-03-30T00:30:00Z");
/// assert_eq!(next(spec.gap(Gap::After)), "2026-03-29T01:00:00Z");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Gap {
    /// It does not happen that day.
    #[default]
    Skip,
    /// It happens at the first instant after the gap; many of one gap become one.
    After,
}

/// What becomes of a wall time that exists twice, because the clock is set back over it.
///
/// ```
/// use punctual_spec::{Fold, Spec};
///
/// let count = |fold| {
///     let compiled = Spec::new().cron("30 2 * * *").zone("Europe/Berlin").fold(fold).compile().unwrap();
///     let night = ("2026-10-24T12:00:00Z".parse().unwrap(), "2026-10-25T12:00:00Z".parse().unwrap());
///     compiled.iterate(night.0, night.1).count()
/// };
/// assert_eq!((count(Fold::Both), count(Fold::First), count(Fold::Last)), (2, 1, 1));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Fold {
    /// It happens both times.
    #[default]
    Both,
    /// It happens the first time.
    First,
    /// It happens the last time.
    Last,
}

macro_rules! builder {
    ($($(#[$docs:meta])* $name:ident($argument:ident: $kind:ty) $self:ident => $body:expr;)*) => {
        $($(#[$docs])* pub fn $name(mut $self, $argument: $kind) -> Spec { $body; $self })*
    };
}

impl Spec {
    /// A spec without any source: it never fires by itself.
    ///
    /// ```
    /// use punctual_spec::Spec;
    /// assert!(Spec::new().compile()?.never_fires());
    /// # Ok::<(), punctual_spec::Error>(())
    /// ```
    pub fn new() -> Spec {
        Spec::default()
    }

    builder! {
        /// Adds a cron string in the temporal dialect.
        ///
        /// ```
        /// use punctual_spec::Spec;
        /// assert!(Spec::new().cron("*/5 * * * *").cron("@daily").compile().is_ok());
        /// ```
        cron(text: impl Into<String>) self => self.crons.push(Cron::new(Dialect::Temporal, text));
        /// Adds a structured calendar.
        ///
        /// ```
        /// use punctual_spec::{Calendar, Spec};
        /// assert!(Spec::new().calendar(Calendar::midnight()).compile().is_ok());
        /// ```
        calendar(calendar: Calendar) self => self.calendars.push(calendar);
        /// Adds a calendar as text.
        ///
        /// ```
        /// use punctual_spec::{CalendarText, Spec};
        /// assert!(Spec::new().calendar_text(CalendarText::default()).compile().is_ok());
        /// ```
        calendar_text(calendar: CalendarText) self => self.calendar_texts.push(calendar);
        /// Adds an interval.
        ///
        /// ```
        /// use punctual_spec::{Interval, Spec};
        /// let spec = Spec::new().interval(Interval::every(jiff::SignedDuration::from_mins(90)));
        /// assert_eq!(spec.explain()?, "Every 90 minutes, counted from 1970-01-01 00:00 UTC.");
        /// # Ok::<(), punctual_spec::Error>(())
        /// ```
        interval(interval: Interval) self => self.intervals.push(interval);
        /// Adds one instant.
        ///
        /// ```
        /// use punctual_spec::Spec;
        /// let spec = Spec::new().at("2026-12-24T18:00:00Z".parse().unwrap());
        /// assert_eq!(spec.compile()?.first(), spec.compile()?.last());
        /// # Ok::<(), punctual_spec::Error>(())
        /// ```
        at(time: Timestamp) self => self.times.push(time);
        /// Takes the seconds of a calendar away.
        ///
        /// ```
        /// use punctual_spec::{Calendar, Range, Spec};
        /// let mut december = Calendar::every_second();
        /// december.month = vec![Range::at(12)];
        /// let compiled = Spec::new().cron("@monthly").exclude(december).compile()?;
        /// assert!(!compiled.matches("2026-12-01T00:00:00Z".parse().unwrap()));
        /// # Ok::<(), punctual_spec::Error>(())
        /// ```
        exclude(calendar: Calendar) self => self.exclusions.push(calendar);
        /// Takes the seconds of a calendar text away. Its time of day defaults to midnight alone: write `*` for all.
        ///
        /// ```
        /// use punctual_spec::{CalendarText, Spec};
        /// let midnight = CalendarText::default();
        /// assert!(Spec::new().cron("@daily").exclude_text(midnight).compile()?.never_fires());
        /// # Ok::<(), punctual_spec::Error>(())
        /// ```
        exclude_text(calendar: CalendarText) self => self.exclusion_texts.push(calendar);
        /// Takes the seconds of a cron string away.
        ///
        /// ```
        /// use punctual_spec::{Cron, Dialect, Spec};
        /// let lunch = Cron::new(Dialect::Temporal, "* * 12 * * * *");
        /// let compiled = Spec::new().cron("@hourly").exclude_cron(lunch).compile()?;
        /// assert!(!compiled.matches("2026-01-01T12:00:00Z".parse().unwrap()));
        /// # Ok::<(), punctual_spec::Error>(())
        /// ```
        exclude_cron(cron: Cron) self => self.exclusion_crons.push(cron);
        /// Takes a whole date away.
        ///
        /// ```
        /// use punctual_spec::Spec;
        /// let compiled = Spec::new().cron("@hourly").exclude_date(jiff::civil::date(2026, 1, 1)).compile()?;
        /// let next = compiled.next("2025-12-31T23:00:00Z".parse().unwrap()).unwrap();
        /// assert_eq!(next.nominal_time.to_string(), "2026-01-02T00:00:00Z");
        /// # Ok::<(), punctual_spec::Error>(())
        /// ```
        exclude_date(date: Date) self => self.exclusion_dates.push(date);
        /// Keeps to, or avoids, a named calendar.
        ///
        /// ```
        /// use punctual_spec::{CalendarRule, Spec};
        /// let spec = Spec::new().cron("@daily").calendar_rule(CalendarRule::exclude("holidays"));
        /// assert_eq!(spec.compile().unwrap_err().field(), "calendar_rule[0]");
        /// ```
        calendar_rule(rule: CalendarRule) self => self.calendar_rules.push(rule);
        /// Names the calendar of days closed for business, which business-day terms count by.
        ///
        /// ```
        /// use punctual_spec::Spec;
        /// assert_eq!(Spec::new().business_calendar("bank").business_calendar.as_deref(), Some("bank"));
        /// ```
        business_calendar(name: impl Into<String>) self => self.business_calendar = Some(name.into());
        /// Sets the earliest instant, included and cut to its second.
        ///
        /// ```
        /// use punctual_spec::Spec;
        /// let compiled = Spec::new().cron("@daily").start_time("2030-01-01T00:00:00Z".parse().unwrap()).compile()?;
        /// assert_eq!(compiled.first().unwrap().to_string(), "2030-01-01T00:00:00Z");
        /// # Ok::<(), punctual_spec::Error>(())
        /// ```
        start_time(time: Timestamp) self => self.start_time = Some(time);
        /// Sets the latest instant, included; it bounds nominal times.
        ///
        /// ```
        /// use punctual_spec::Spec;
        /// let compiled = Spec::new().cron("@daily").end_time("2030-01-01T00:00:00Z".parse().unwrap()).compile()?;
        /// assert_eq!(compiled.last().unwrap().to_string(), "2030-01-01T00:00:00Z");
        /// # Ok::<(), punctual_spec::Error>(())
        /// ```
        end_time(time: Timestamp) self => self.end_time = Some(time);
        /// Spreads due times over this much, always the same way for the same seed.
        ///
        /// ```
        /// use punctual_spec::Spec;
        /// let compiled = Spec::new().cron("@daily").jitter(jiff::SignedDuration::from_hours(1)).compile()?;
        /// let next = compiled.next("2022-03-23T11:00:00Z".parse().unwrap()).unwrap();
        /// assert_eq!(next.due_time.to_string(), "2022-03-24T00:35:24.276Z");
        /// # Ok::<(), punctual_spec::Error>(())
        /// ```
        jitter(jitter: SignedDuration) self => self.jitter = jitter;
        /// Sets the zone by its IANA name.
        ///
        /// ```
        /// use punctual_spec::Spec;
        /// let compiled = Spec::new().cron("@daily").zone("Asia/Tokyo").compile()?;
        /// assert_eq!(compiled.zone().name(), "Asia/Tokyo");
        /// # Ok::<(), punctual_spec::Error>(())
        /// ```
        zone(name: impl Into<String>) self => self.zone = name.into();
        /// Uses these TZif bytes as the zone; its name is then only a label.
        ///
        /// ```
        /// use punctual_spec::Spec;
        /// assert!(Spec::new().zone_data(vec![1, 2, 3]).compile().unwrap_err().is_zone());
        /// ```
        zone_data(bytes: Vec<u8>) self => self.zone_data = Some(bytes);
        /// Chooses what becomes of wall times that do not exist.
        ///
        /// ```
        /// use punctual_spec::{Gap, Spec};
        /// assert_eq!(Spec::new().gap(Gap::After).gap, Gap::After);
        /// ```
        gap(gap: Gap) self => self.gap = gap;
        /// Chooses what becomes of wall times that exist twice.
        ///
        /// ```
        /// use punctual_spec::{Fold, Spec};
        /// assert_eq!(Spec::new().fold(Fold::First).fold, Fold::First);
        /// ```
        fold(fold: Fold) self => self.fold = fold;
    }

    /// Adds a cron string in a dialect.
    ///
    /// ```
    /// use punctual_spec::{Dialect, Spec};
    /// assert!(Spec::new().cron_in(Dialect::Quartz, "0 0 9 LW * ?").compile().is_ok());
    /// ```
    pub fn cron_in(mut self, dialect: Dialect, text: impl Into<String>) -> Spec {
        self.crons.push(Cron::new(dialect, text));
        self
    }

    /// Checks the spec and prepares it for questions, with bundled zones, no named calendars and no seed.
    ///
    /// ```
    /// use punctual_spec::Spec;
    /// let compiled = Spec::new().cron("0 0 29 2 *").compile()?;
    /// assert_eq!(compiled.last().unwrap().to_string(), "2096-02-29T00:00:00Z");
    /// # Ok::<(), punctual_spec::Error>(())
    /// ```
    pub fn compile(&self) -> Result<CompiledSpec, Error> {
        self.compile_in(&Environment::default())
    }

    /// Checks the spec and prepares it for questions.
    ///
    /// ```
    /// use punctual_spec::{Environment, Spec};
    /// let environment = Environment::default().with_seed("namespace-schedule");
    /// let spread = Spec::new().cron("H H * * *").compile_in(&environment)?;
    /// assert!(!spread.never_fires());
    /// # Ok::<(), punctual_spec::Error>(())
    /// ```
    pub fn compile_in(&self, environment: &Environment) -> Result<CompiledSpec, Error> {
        compile::compile(&canonical::canonical(self, environment)?.spec, environment)
    }

    /// The same spec with all texts parsed into structured calendars and intervals, ranges in minimal form and
    /// the cron strings' zone as the zone of the spec. For what Temporal can express it is Temporal's own form.
    ///
    /// ```
    /// use punctual_spec::{Environment, Range, Spec};
    ///
    /// let spec = Spec::new().cron("CRON_TZ=Europe/London 30 9 * * *");
    /// let canonical = spec.canonical(&Environment::default())?;
    /// assert!(canonical.crons.is_empty());
    /// assert_eq!(canonical.calendars[0].minute, [Range::at(30)]);
    /// assert_eq!(canonical.zone, "Europe/London");
    /// # Ok::<(), punctual_spec::Error>(())
    /// ```
    pub fn canonical(&self, environment: &Environment) -> Result<Spec, Error> {
        Ok(canonical::canonical(self, environment)?.spec)
    }

    /// Says in plain English when it happens.
    ///
    /// ```
    /// use punctual_spec::{Dialect, Spec};
    /// let spec = Spec::new().cron_in(Dialect::Quartz, "0 30 9 ? * FRIL");
    /// assert_eq!(spec.explain()?, "At 09:30 on the last Friday of the month, in UTC.");
    /// # Ok::<(), punctual_spec::Error>(())
    /// ```
    pub fn explain(&self) -> Result<String, Error> {
        self.explain_in(&Environment::default())
    }

    /// Says in plain English when it happens, with the seed that `H` and jitter need.
    ///
    /// ```
    /// use punctual_spec::{Environment, Spec};
    /// let environment = Environment::default().with_seed("nightly");
    /// assert!(Spec::new().cron("H 3 * * *").explain_in(&environment)?.starts_with("At 03:"));
    /// # Ok::<(), punctual_spec::Error>(())
    /// ```
    pub fn explain_in(&self, environment: &Environment) -> Result<String, Error> {
        explain::explain(&canonical::canonical(self, environment)?.spec)
    }

    /// Finds what is legal but probably not meant, looking two years ahead from `now`.
    ///
    /// ```
    /// use punctual_spec::{Environment, LintCode, Spec};
    ///
    /// let spec = Spec::new().cron("30 2 * * *").zone("Europe/Berlin");
    /// let lints = spec.lint(&Environment::default(), "2026-01-01T00:00:00Z".parse().unwrap())?;
    /// assert_eq!(lints[0].code, LintCode::DstGap);
    /// assert!(lints[0].message.contains("2026-03-29"));
    /// # Ok::<(), punctual_spec::Error>(())
    /// ```
    pub fn lint(&self, environment: &Environment, now: Timestamp) -> Result<Vec<lint::Lint>, Error> {
        lint::lint(self, environment, now)
    }
}

/// What a spec needs from outside: named calendars and the seed of the schedule that owns it.
///
/// ```
/// use punctual_spec::Environment;
/// let environment = Environment::default().with_seed("my-namespace-my-schedule");
/// assert_eq!(environment.seed(), "my-namespace-my-schedule");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Environment {
    calendars: BTreeMap<String, NamedCalendar>,
    seed: String,
}

impl Environment {
    /// Sets the seed of jitter and `H`; Temporal's is `<namespace id>-<schedule id>`.
    ///
    /// ```
    /// use punctual_spec::Environment;
    /// assert_eq!(Environment::default().with_seed("a").seed(), "a");
    /// ```
    pub fn with_seed(mut self, seed: impl Into<String>) -> Environment {
        self.seed = seed.into();
        self
    }

    /// Adds a named calendar.
    ///
    /// ```
    /// use punctual_spec::{Environment, NamedCalendar};
    /// let environment = Environment::default().with_calendar("holidays", NamedCalendar::default());
    /// assert!(environment.calendar("holidays").is_some());
    /// ```
    pub fn with_calendar(mut self, name: impl Into<String>, calendar: NamedCalendar) -> Environment {
        self.calendars.insert(name.into(), calendar);
        self
    }

    /// The seed of jitter and `H`.
    ///
    /// ```
    /// assert_eq!(punctual_spec::Environment::default().seed(), "");
    /// ```
    pub fn seed(&self) -> &str {
        &self.seed
    }

    /// A named calendar.
    ///
    /// ```
    /// assert!(punctual_spec::Environment::default().calendar("holidays").is_none());
    /// ```
    pub fn calendar(&self, name: &str) -> Option<&NamedCalendar> {
        self.calendars.get(name)
    }

    /// The names of all calendars, in order.
    pub(crate) fn calendar_names(&self) -> impl Iterator<Item = &str> {
        self.calendars.keys().map(String::as_str)
    }

    pub(crate) fn zones(&self) -> &'static Zones {
        Zones::bundled()
    }
}
