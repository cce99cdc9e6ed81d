//! Instants and lengths of time as people read them, in one zone and seen from one moment.

use jiff::{SignedDuration, Timestamp};

use super::{local_text, relative};
use crate::local_zone::LocalZone;
use crate::wire::time;

/// The zone and the moment of one page.
#[derive(Debug)]
pub struct Times<'a> {
    pub zone: &'a LocalZone,
    pub now: Timestamp,
}

impl Times<'_> {
    /// `Mon 2026-03-30 09:00:00`, or a dash.
    pub fn local(&self, wire: Option<&prost_types::Timestamp>) -> String {
        time::from_wire(wire).map_or_else(dash, |instant| local_text(self.zone.wall(instant)))
    }

    /// `in 2 days 19 h`, or nothing.
    pub fn relative(&self, wire: Option<&prost_types::Timestamp>) -> String {
        time::from_wire(wire).map_or_else(String::new, |instant| relative::text(self.now, instant))
    }

    /// `Mon 2026-03-30 09:00:00 (in 2 days 19 h)`, or a dash.
    pub fn both(&self, wire: Option<&prost_types::Timestamp>) -> String {
        match wire {
            Some(_) => format!("{} ({})", self.local(wire), self.relative(wire)),
            None => dash(),
        }
    }
}

/// What stands where there is nothing.
pub fn dash() -> String {
    "-".to_owned()
}

/// A number that counts from one, or a dash where nothing was counted yet.
pub fn or_dash(count: u32) -> String {
    if count == 0 { dash() } else { count.to_string() }
}

/// The time between two instants of the wire.
pub fn between(from: Option<&prost_types::Timestamp>, to: Option<&prost_types::Timestamp>) -> String {
    match (time::from_wire(from), time::from_wire(to)) {
        (Some(from), Some(to)) => length(to.duration_since(from)),
        _ => dash(),
    }
}

/// A length of time in at most two units: `340 ms`, `1.2 s`, `2 min 5 s`.
pub fn length(duration: SignedDuration) -> String {
    let millis = duration.as_millis().max(0);
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..10_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        _ => relative::distance(duration.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_at_most_two_units() {
        for (millis, expected) in
            [(0, "0 ms"), (999, "999 ms"), (1_250, "1.2 s"), (59_999, "59 s"), (125_000, "2 min 5 s")]
        {
            assert_eq!(length(SignedDuration::from_millis(millis)), expected);
        }
    }
}
