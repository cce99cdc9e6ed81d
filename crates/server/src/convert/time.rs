//! Instants and lengths of time.

use jiff::{SignedDuration, Timestamp};

use crate::status::Fault;

/// 0001-01-01T00:00:00Z, the first instant that JSON can say.
const SECOND_MIN: i64 = -62_135_596_800;

/// The longest length of time that protobuf allows: about 10,000 years.
const SECONDS_MAX: i64 = 315_576_000_000;

/// An instant, if one was given.
pub(crate) fn instant(
    field: &str,
    given: Option<&prost_types::Timestamp>,
) -> Result<Option<Timestamp>, Fault> {
    let Some(given) = given else { return Ok(None) };
    let in_range = given.seconds >= SECOND_MIN && (0..1_000_000_000).contains(&given.nanos);
    let instant = Timestamp::new(given.seconds, given.nanos).ok().filter(|_| in_range);
    let fault = || {
        let found = format!("found {} seconds and {} nanoseconds", given.seconds, given.nanos);
        Fault::field(field, format!("is out of range, expected years 1 to 9999, {found}"))
    };
    instant.ok_or_else(fault).map(Some)
}

/// An instant that must be given.
pub(crate) fn needed(field: &str, given: Option<&prost_types::Timestamp>) -> Result<Timestamp, Fault> {
    instant(field, given)?.ok_or_else(|| Fault::field(field, "is missing, expected an instant"))
}

/// A length of time, if one was given; zero or more.
pub(crate) fn length(
    field: &str,
    given: Option<&prost_types::Duration>,
) -> Result<Option<SignedDuration>, Fault> {
    let Some(given) = given else { return Ok(None) };
    let (seconds, nanos) = (given.seconds, given.nanos);
    if seconds < 0 || nanos < 0 {
        return Err(Fault::field(field, format!("is negative, found {seconds}s and {nanos}ns")));
    }
    if seconds > SECONDS_MAX || nanos > 999_999_999 {
        let expected = "expected at most 10000 years and less than a second of nanoseconds";
        return Err(Fault::field(
            field,
            format!("is out of range, {expected}, found {seconds}s and {nanos}ns"),
        ));
    }
    Ok(Some(SignedDuration::new(seconds, nanos)))
}

/// An instant for the wire.
pub(crate) fn to_wire(instant: Timestamp) -> prost_types::Timestamp {
    let mut seconds = instant.as_second();
    let mut nanos = instant.subsec_nanosecond();
    // Fractions of protobuf count forward, also before 1970.
    if nanos < 0 {
        (seconds, nanos) = (seconds - 1, nanos + 1_000_000_000);
    }
    prost_types::Timestamp { seconds: seconds.max(SECOND_MIN), nanos }
}

/// A length of time for the wire.
pub(crate) fn length_to_wire(length: SignedDuration) -> prost_types::Duration {
    prost_types::Duration { seconds: length.as_secs(), nanos: length.subsec_nanos() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_go_there_and_back_on_both_sides_of_1970() {
        for nanos in [0, 1, -1, 999_999_999, -1_000_000_001, 1_700_000_000_123_456_789] {
            let before = Timestamp::from_nanosecond(nanos).unwrap();
            assert_eq!(instant("t", Some(&to_wire(before))).unwrap(), Some(before));
        }
    }

    #[test]
    fn what_means_nothing_is_refused_by_name() {
        let fault =
            instant("until", Some(&prost_types::Timestamp { seconds: i64::MAX, nanos: 0 })).unwrap_err();
        assert_eq!((fault.field.as_str(), fault.reason.word), ("until", "invalid_field"));
        assert!(instant("t", Some(&prost_types::Timestamp { seconds: 0, nanos: -1 })).is_err());
        assert!(length("t", Some(&prost_types::Duration { seconds: 0, nanos: -1 })).is_err());
        assert!(length("t", Some(&prost_types::Duration { seconds: i64::MAX, nanos: 0 })).is_err());
    }
}
