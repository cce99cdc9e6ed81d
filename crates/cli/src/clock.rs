//! The one place that reads the wall clock.

use std::env::{self, VarError};

use anyhow::Result;
use jiff::Timestamp;

use crate::fault;

/// Stands in for the clock, so that tests have one answer.
const NOW_VARIABLE: &str = "PUNCTUAL_NOW";

/// The current instant, cut to its second: that is all a spec knows.
pub fn now() -> Result<Timestamp> {
    let now: Timestamp = match env::var(NOW_VARIABLE) {
        Ok(text) => text.parse().map_err(|_| refused(&text))?,
        Err(VarError::NotPresent) => Timestamp::now(),
        Err(VarError::NotUnicode(text)) => return Err(refused(&text.to_string_lossy())),
    };
    Ok(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

/// The current instant to the nanosecond, for things that happen while a command goes on.
pub fn moment() -> Timestamp {
    Timestamp::now()
}

fn refused(text: &str) -> anyhow::Error {
    fault::new(
        format!("{NOW_VARIABLE} is not an instant, found `{text}`"),
        "write it as `2026-03-29T01:00:00Z`",
    )
}
