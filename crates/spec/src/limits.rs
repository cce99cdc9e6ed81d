//! Every bound of this crate, with its reason. Hitting one is an error that names it, never a slow answer.
//!
//! ```
//! use punctual_spec::{Spec, limits};
//!
//! let many = (0..=limits::RULES_MAX).fold(Spec::new(), |spec, _| spec.cron("@daily"));
//! assert!(many.compile().unwrap_err().is_limit());
//! ```

/// First year that calendars know.
pub const YEAR_MIN: i16 = 2000;
/// Last year that calendars know; no occurrence is later than its last second in UTC.
pub const YEAR_MAX: i16 = 2100;

/// Calendars, cron strings, intervals, times, exclusions and calendar rules together.
/// A spec is read by people; ten thousand rules are a generated list that wants a named calendar.
pub const RULES_MAX: usize = 10_000;

/// Explicit times and dates in one list.
pub const TIMES_MAX: usize = 10_000;

/// Days over which an occurrence rolls at most; a calendar that allows nothing for longer lacks its dates.
pub const ROLL_DAYS_MAX: i32 = 100;

/// Bytes of one cron string or calendar field, so that a parse is always short.
pub const TEXT_BYTES_MAX: usize = 4_096;

/// Bytes of all texts of a spec together.
pub const TEXTS_BYTES_MAX: usize = 256 * 1_024;

/// Bytes of a calendar's comment, as in Temporal.
pub const COMMENT_BYTES_MAX: usize = 200;

/// Bytes of the seed, so that the jitter hash needs no heap.
pub const SEED_BYTES_MAX: usize = 1_024;

/// Bytes of TZif data; the largest zone of the IANA database has under 4 KiB.
pub const ZONE_BYTES_MAX: usize = 256 * 1_024;

/// Offset changes of one zone between 2000 and 2100; the busiest real zone has under 300.
pub const ZONE_STRETCHES_MAX: usize = 1_000;

/// Elementary steps (rule against exclusion, interval against a day) that compiling one spec may take.
/// One step is some tens of nanoseconds, so a refusal comes within milliseconds.
pub const COMPILE_STEPS_MAX: u64 = 400_000;

/// Wall-clock rules after the exclusions have been cut out; bounds the work of one `next`.
pub const COMPILED_RULES_MAX: usize = 20_000;
