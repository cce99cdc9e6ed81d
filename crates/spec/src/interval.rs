//! Intervals: every so many seconds, counted from the epoch or from an anchor.

use jiff::{SignedDuration, Timestamp};

use crate::error::Error;

/// The instants `epoch + n × every + phase`, or `anchor + n × every`.
///
/// An interval follows the epoch, not the moment it was created: every 7 days with no phase is always
/// Thursday 00:00 UTC. Name an anchor to hit a certain instant; it sets the phase and is no bound, so
/// instants before the anchor belong to the interval too. Fractions of a second are cut off.
///
/// ```
/// use jiff::SignedDuration;
/// use punctual_spec::{Interval, Spec};
///
/// let fortnight = Interval::every(SignedDuration::from_hours(14 * 24))
///     .anchored_at("2026-01-05T09:00:00Z".parse().unwrap());
/// let compiled = Spec::new().interval(fortnight).compile()?;
/// let next = compiled.next("2026-01-06T00:00:00Z".parse().unwrap()).unwrap();
/// assert_eq!(next.nominal_time.to_string(), "2026-01-19T09:00:00Z");
/// # Ok::<(), punctual_spec::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Interval {
    /// At least one second.
    pub every: SignedDuration,
    /// At least zero and below `every`.
    pub phase: SignedDuration,
    /// An instant of the interval, instead of a phase.
    pub anchor: Option<Timestamp>,
}

/// Seconds that a protobuf duration may have: about 10,000 years.
const WIRE_SECONDS_MAX: i64 = 315_576_000_000;

impl Interval {
    /// An interval that counts from the epoch.
    ///
    /// ```
    /// use punctual_spec::Interval;
    /// assert!(Interval::every(jiff::SignedDuration::from_mins(5)).phase.is_zero());
    /// ```
    pub fn every(every: SignedDuration) -> Interval {
        Interval { every, phase: SignedDuration::ZERO, anchor: None }
    }

    /// Shifts all instants by this much.
    ///
    /// ```
    /// use jiff::SignedDuration;
    /// use punctual_spec::Interval;
    /// let at_half_past = Interval::every(SignedDuration::from_hours(1)).phase(SignedDuration::from_mins(30));
    /// assert_eq!(at_half_past.phase.as_mins(), 30);
    /// ```
    pub fn phase(self, phase: SignedDuration) -> Interval {
        Interval { phase, ..self }
    }

    /// Makes this instant, in whole seconds, one of the interval's.
    ///
    /// ```
    /// use jiff::{SignedDuration, Timestamp};
    /// use punctual_spec::Interval;
    /// let interval = Interval::every(SignedDuration::from_hours(1)).anchored_at(Timestamp::UNIX_EPOCH);
    /// assert!(interval.anchor.is_some());
    /// ```
    pub fn anchored_at(self, anchor: Timestamp) -> Interval {
        Interval { anchor: Some(anchor), ..self }
    }

    /// Reads the two protobuf durations of a wire message, each as `(seconds, nanos)`.
    ///
    /// ```
    /// use punctual_spec::Interval;
    /// assert!(Interval::from_wire((3600, 0), (0, 0)).is_ok());
    /// let error = Interval::from_wire((2, -1), (0, 0)).unwrap_err();
    /// assert_eq!(error.to_string(), "interval is not a valid duration");
    /// ```
    pub fn from_wire(every: (i64, i32), phase: (i64, i32)) -> Result<Interval, Error> {
        let read = |name: &str, (seconds, nanos): (i64, i32)| {
            let in_range = seconds.abs() <= WIRE_SECONDS_MAX && nanos.abs() <= 999_999_999;
            let same_sign = seconds == 0 || nanos == 0 || (seconds < 0) == (nanos < 0);
            (seconds != i64::MIN && nanos != i32::MIN && in_range && same_sign)
                .then(|| SignedDuration::new(seconds, nanos))
                .ok_or_else(|| Error::value(format!("{name} is not a valid duration")).in_field(name))
        };
        Ok(Interval::every(read("interval", every)?).phase(read("phase", phase)?))
    }

    /// The period and the phase in whole seconds, checked.
    pub(crate) fn seconds(&self) -> Result<(i64, i64), Error> {
        let Interval { every, phase, anchor } = *self;
        if every < SignedDuration::from_secs(1) {
            return Err(Error::value(format!(
                "interval is too small, at least 1s is needed, found {every:#}"
            ))
            .in_field("every"));
        }
        if every.as_secs() > WIRE_SECONDS_MAX {
            return Err(Error::value("interval is longer than 10000 years").in_field("every"));
        }
        if phase.is_negative() {
            return Err(Error::value("phase is negative").in_field("phase"));
        }
        if phase >= every {
            return Err(Error::value("phase cannot be greater than Interval").in_field("phase"));
        }
        let Some(anchor) = anchor else { return Ok((every.as_secs(), phase.as_secs())) };
        if !phase.is_zero() {
            return Err(Error::value("an interval has a phase or an anchor, not both").in_field("anchor"));
        }
        if anchor.subsec_nanosecond() != 0 {
            return Err(Error::value("anchor has a fraction of a second, rules know whole seconds only")
                .in_field("anchor"));
        }
        Ok((every.as_secs(), anchor.as_second().rem_euclid(every.as_secs())))
    }
}

/// An interval ready for arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticks {
    pub(crate) period: i64,
    pub(crate) phase: i64,
}

impl Ticks {
    /// The first tick after a second.
    #[inline]
    pub(crate) fn after(self, second: i64) -> i64 {
        ((second - self.phase).div_euclid(self.period) + 1) * self.period + self.phase
    }

    /// The last tick before a second.
    #[inline]
    pub(crate) fn before(self, second: i64) -> i64 {
        (second - 1 - self.phase).div_euclid(self.period) * self.period + self.phase
    }

    pub(crate) fn contains(self, second: i64) -> bool {
        (second - self.phase).rem_euclid(self.period) == 0
    }
}
