//! Every bound of this crate, with its reason. Hitting one is an error that names it, never a slow answer.
//!
//! ```
//! use punctual_spec::{Spec, limits};
//!
//! let many = (0..=limits::RULES_MAX).fold(Spec::new(), |spec, _| spec.cron("@daily"));
//! assert!(many.compile().unwrap_err().is_limit());
//! ```

/// First year that calendars know.
///
/// ```
/// use punctual_spec::{Spec, limits};
/// let before = limits::YEAR_MIN - 1;
/// assert!(Spec::new().cron(format!("0 0 1 1 * {before}")).compile().is_err());
/// ```
pub const YEAR_MIN: i16 = 2000;
/// Last year that calendars know; no occurrence is later than its last second in UTC.
///
/// ```
/// use punctual_spec::{Spec, limits};
/// let last = Spec::new().cron("@yearly").compile()?.last().unwrap();
/// assert_eq!(last.to_string(), format!("{}-01-01T00:00:00Z", limits::YEAR_MAX));
/// # Ok::<(), punctual_spec::Error>(())
/// ```
pub const YEAR_MAX: i16 = 2100;

/// Calendars, cron strings, intervals, times, exclusions and calendar rules together.
/// A spec is read by people; ten thousand rules are a generated list that wants a named calendar.
///
/// ```
/// use punctual_spec::{Spec, limits};
/// let most = (0..limits::RULES_MAX).fold(Spec::new(), |spec, _| spec.cron("@daily"));
/// assert!(most.compile().is_ok());
/// ```
pub const RULES_MAX: usize = 10_000;

/// Explicit times and dates in one list.
///
/// ```
/// use jiff::Timestamp;
/// use punctual_spec::{Spec, limits};
/// let many = (0..=limits::TIMES_MAX).fold(Spec::new(), |spec, _| spec.at(Timestamp::UNIX_EPOCH));
/// assert!(many.compile().unwrap_err().is_limit());
/// ```
pub const TIMES_MAX: usize = 10_000;

/// Days over which an occurrence rolls at most; a calendar that allows nothing for longer lacks its dates.
///
/// ```
/// assert!(punctual_spec::limits::ROLL_DAYS_MAX > 31, "a month without business is not unheard of");
/// ```
pub const ROLL_DAYS_MAX: i32 = 100;

/// Bytes of one cron string or calendar field, so that a parse is always short.
///
/// ```
/// use punctual_spec::{Spec, limits};
/// let long = format!("@daily {}", " ".repeat(limits::TEXT_BYTES_MAX));
/// assert!(Spec::new().cron(long).compile().unwrap_err().is_limit());
/// ```
pub const TEXT_BYTES_MAX: usize = 4_096;

/// Bytes of all texts of a spec together.
///
/// ```
/// use punctual_spec::{Spec, limits};
/// let text = format!("@daily # {}", "why".repeat(50));
/// let many = (0..limits::TEXTS_BYTES_MAX / 100).fold(Spec::new(), |spec, _| spec.cron(text.as_str()));
/// assert!(many.compile().unwrap_err().is_limit());
/// ```
pub const TEXTS_BYTES_MAX: usize = 256 * 1_024;

/// Bytes of a calendar's comment, as in Temporal.
///
/// ```
/// use punctual_spec::{Spec, limits};
/// let comment = "x".repeat(limits::COMMENT_BYTES_MAX + 1);
/// let error = Spec::new().cron(format!("@daily # {comment}")).compile().unwrap_err();
/// assert!(error.to_string().contains("comment is too long"));
/// ```
pub const COMMENT_BYTES_MAX: usize = 200;

/// Bytes of the seed, so that the jitter hash needs no heap.
///
/// ```
/// use punctual_spec::{Environment, Spec, limits};
/// let long = Environment::default().with_seed("x".repeat(limits::SEED_BYTES_MAX + 1));
/// assert!(Spec::new().compile_in(&long).unwrap_err().is_limit());
/// ```
pub const SEED_BYTES_MAX: usize = 1_024;

/// Bytes of TZif data; the largest zone of the IANA database has under 4 KiB.
///
/// ```
/// use punctual_spec::{Zone, limits};
/// assert!(Zone::from_tzif("x", &vec![0; limits::ZONE_BYTES_MAX + 1]).unwrap_err().is_limit());
/// ```
pub const ZONE_BYTES_MAX: usize = 256 * 1_024;

/// Offset changes of one zone between 2000 and 2100; the busiest real zone has under 300.
///
/// ```
/// assert!(punctual_spec::limits::ZONE_STRETCHES_MAX > 300, "the busiest real zone must fit");
/// ```
pub const ZONE_STRETCHES_MAX: usize = 1_000;

/// Elementary steps (rule against exclusion, interval against a day) that compiling one spec may take.
/// One step is some tens of nanoseconds, so a refusal comes within milliseconds.
///
/// ```
/// use punctual_spec::{Cron, Dialect, Spec, limits};
/// let only_at_second_0 = Cron::new(Dialect::Temporal, "1-59 * * * * * *");
/// let error = Spec::new().cron("@every 59s").exclude_cron(only_at_second_0).compile().unwrap_err();
/// assert!(error.to_string().contains(&limits::COMPILE_STEPS_MAX.to_string()));
/// ```
pub const COMPILE_STEPS_MAX: u64 = 400_000;

/// Wall-clock rules after the exclusions have been cut out; bounds the work of one `next`.
///
/// ```
/// assert!(punctual_spec::limits::COMPILED_RULES_MAX >= punctual_spec::limits::RULES_MAX);
/// ```
pub const COMPILED_RULES_MAX: usize = 20_000;
