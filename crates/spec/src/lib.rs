//! When things happen: cron strings, calendars, intervals, single times and business days, right in every
//! time zone.
//!
//! A [`Spec`] is what the user asked for: sources of time, exclusions, bounds, a zone. [`Spec::compile`]
//! checks it once and gives a [`CompiledSpec`], which answers [`next`](CompiledSpec::next),
//! [`previous`](CompiledSpec::previous), [`iterate`](CompiledSpec::iterate) and
//! [`matches`](CompiledSpec::matches) in bounded work and without the heap. [`Spec::explain`] says it in
//! English, [`Spec::lint`] finds what was probably not meant, [`diff`] shows what a change would do.
//!
//! ```
//! use punctual_spec::{Dialect, Spec};
//!
//! let spec = Spec::new()
//!     .cron_in(Dialect::Quartz, "0 0 9 LW * ?") // the last weekday of each month
//!     .exclude_date(jiff::civil::date(2026, 12, 31))
//!     .zone("Europe/Berlin");
//! let compiled = spec.compile()?;
//!
//! let year = ("2026-10-01T00:00:00Z".parse().unwrap(), "2027-02-01T00:00:00Z".parse().unwrap());
//! let times: Vec<String> = compiled.iterate(year.0, year.1).map(|o| o.nominal_time.to_string()).collect();
//! assert_eq!(times, ["2026-10-30T08:00:00Z", "2026-11-30T08:00:00Z", "2027-01-29T08:00:00Z"]);
//! # Ok::<(), punctual_spec::Error>(())
//! ```
//!
//! # Daylight saving
//!
//! The contract is literal: a rule fires whenever the wall clock shows its time. A time that a day does not
//! have does not fire, one that it has twice fires twice, in all zones and for shifts of any size. Where that
//! is not wanted, [`Gap`] and [`Fold`] choose otherwise, per spec.
//!
//! # What it is not
//!
//! It reads no clock, no file and no network: time comes in as an argument, zones are bundled or handed in as
//! TZif bytes. It runs nothing. It knows whole seconds and the years 2000 to 2100.

mod spec;
mod calendar;
mod interval;
mod named;

mod field;
mod parse;
mod canonical;

mod civil;
mod days;
mod time_of_day;
mod zone;
mod wall;
mod compile;

mod occurrence;
mod jitter;

mod explain;
mod lint;
mod diff;

mod error;
pub mod limits;

pub use calendar::{Calendar, CalendarText, DayOfMonthTerm, DayOfWeekTerm, Range};
pub use compile::CompiledSpec;
pub use diff::{Change, diff};
pub use error::Error;
pub use interval::Interval;
pub use lint::{Lint, LintCode};
pub use named::{CalendarMode, CalendarRule, NamedCalendar, Roll};
pub use occurrence::{Occurrence, Occurrences};
pub use parse::parse_duration;
pub use spec::{Cron, Dialect, Environment, Fold, Gap, Spec};
pub use zone::{Repeat, Zone, Zones};

/// The crate's README, so that its examples are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
