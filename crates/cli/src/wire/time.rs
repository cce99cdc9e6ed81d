//! Instants and durations of the wire, and of options.

use anyhow::{Context, Result, ensure};
use jiff::{SignedDuration, Timestamp};
use punctual_spec::parse_duration;

use crate::fault;

/// An instant for the wire.
pub fn to_wire(instant: Timestamp) -> prost_types::Timestamp {
    // The wire counts nanoseconds forward from the second, also before 1970.
    let nanos = instant.as_nanosecond();
    let (seconds, nanos) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    prost_types::Timestamp { seconds: seconds as i64, nanos: nanos as i32 }
}

/// An instant from the wire; nothing if it is none.
pub fn from_wire(wire: Option<&prost_types::Timestamp>) -> Option<Timestamp> {
    wire.and_then(|wire| Timestamp::new(wire.seconds, wire.nanos).ok())
}

/// A duration for the wire.
pub fn duration_to_wire(duration: SignedDuration) -> prost_types::Duration {
    prost_types::Duration { seconds: duration.as_secs(), nanos: duration.subsec_nanos() }
}

/// A duration from the wire.
pub fn duration_from_wire(wire: Option<&prost_types::Duration>) -> Option<SignedDuration> {
    wire.map(|wire| SignedDuration::new(wire.seconds, wire.nanos.clamp(-999_999_999, 999_999_999)))
}

/// Reads the value of an option that is a length of time.
pub fn duration(option: &'static str, text: &str) -> Result<SignedDuration> {
    let duration = parse_duration(text.trim()).context(option)?;
    ensure!(
        !duration.is_negative(),
        fault::new(format!("{option} is negative, found `{text}`"), "write it as `90s` or `1h30m`")
    );
    Ok(duration)
}

/// The same for a clock of this process, at least a millisecond.
pub fn waiting_time(option: &'static str, text: &str) -> Result<std::time::Duration> {
    let duration = duration(option, text)?;
    ensure!(
        duration >= SignedDuration::from_millis(1),
        fault::new(format!("{option} is too short, found `{text}`"), "write it as `90s` or `1h30m`")
    );
    Ok(duration.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_survive_the_wire() {
        for text in ["2026-03-29T01:00:00.5Z", "1969-12-31T23:59:59.25Z", "1970-01-01T00:00:00Z"] {
            let instant: Timestamp = text.parse().unwrap();
            assert_eq!(from_wire(Some(&to_wire(instant))), Some(instant));
        }
    }

    #[test]
    fn a_duration_is_never_negative() {
        assert_eq!(duration("--lease", "1m30s").unwrap(), SignedDuration::from_secs(90));
        assert!(duration("--lease", "-5s").is_err());
        assert!(waiting_time("--lease", "0s").is_err());
    }
}
