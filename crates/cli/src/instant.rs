//! Instants as people write them: with an offset, as a local date or time, or `now`.

use anyhow::Result;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};

use crate::fault;
use crate::local_zone::{LocalZone, Reading};

/// Reads the instants of one command; local times are those of its zone.
pub struct InstantReader<'a> {
    now: Timestamp,
    zone: &'a LocalZone,
    /// Where a local time was not the plain one, for the user to see.
    pub notes: Vec<String>,
}

impl<'a> InstantReader<'a> {
    pub fn new(now: Timestamp, zone: &'a LocalZone) -> InstantReader<'a> {
        InstantReader { now, zone, notes: Vec::new() }
    }

    /// Reads the value of an option.
    pub fn read(&mut self, option: &str, text: &str) -> Result<Timestamp> {
        let trimmed = text.trim();
        if trimmed.eq_ignore_ascii_case("now") {
            return Ok(self.now);
        }
        // A text with an offset is no local time for the time library, so the order does not matter.
        if let Ok(instant) = trimmed.parse::<Timestamp>() {
            return Ok(instant);
        }
        let reading = trimmed.parse::<DateTime>().ok().and_then(|wall| self.zone.read(wall));
        let Some(reading) = reading else { return Err(refused(option, text)) };
        // A date alone means its first instant, whatever the clock shows then.
        if date(trimmed).is_none() {
            self.notes.extend(self.note(option, trimmed, reading));
        }
        Ok(reading.instant())
    }

    /// Reads the value of an option that may be missing.
    pub fn read_optional(&mut self, option: &str, text: Option<&String>) -> Result<Option<Timestamp>> {
        text.map(|text| self.read(option, text)).transpose()
    }

    fn note(&self, option: &str, text: &str, reading: Reading) -> Option<String> {
        let zone = self.zone.name();
        match reading {
            Reading::Plain(_) => None,
            Reading::AfterGap(instant) => {
                let wall = self.zone.wall(instant);
                Some(format!(
                    "note: {option} {text} does not exist in {zone}, it is read as {wall} ({instant})"
                ))
            }
            Reading::FirstOfTwo(instant) => Some(format!(
                "note: {option} {text} exists twice in {zone}, it is read as the first ({instant}); \
                 write an offset to choose"
            )),
        }
    }
}

/// Reads a date such as `2026-12-25`, and nothing more lenient: dates are compared by eye.
pub fn date(text: &str) -> Option<Date> {
    let shaped = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if shaped { text.parse().ok() } else { None }
}

fn refused(option: &str, text: &str) -> anyhow::Error {
    fault::new(
        format!("{option} is not an instant, found `{text}`"),
        "write `2026-03-29T01:00:00Z`, a local `2026-03-29T02:30` or `2026-03-29`, or `now`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text in a zone and gives the instant and how many notes there were.
    fn read(zone: &str, text: &str) -> Option<(String, usize)> {
        let zone = LocalZone::named(zone).unwrap();
        let mut reader = InstantReader::new("2026-01-01T00:00:00Z".parse().unwrap(), &zone);
        let instant = reader.read("--from", text).ok()?;
        Some((instant.to_string(), reader.notes.len()))
    }

    #[test]
    fn every_form_is_read_in_the_zone() {
        for (text, expected) in [
            ("now", "2026-01-01T00:00:00Z"),
            ("2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z"),
            ("2026-03-29T01:00:00-05:00", "2026-03-29T06:00:00Z"),
            ("2026-03-28", "2026-03-27T23:00:00Z"),
            ("2026-03-28T12:30", "2026-03-28T11:30:00Z"),
            ("2026-03-28 12:30:15", "2026-03-28T11:30:15Z"),
        ] {
            assert_eq!(read("Europe/Berlin", text), Some((expected.to_owned(), 0)), "{text}");
        }
    }

    #[test]
    fn times_in_a_gap_or_a_fold_are_read_with_a_note() {
        let read_in_berlin = |text| read("Europe/Berlin", text).unwrap();
        assert_eq!(read_in_berlin("2026-03-29T02:30"), ("2026-03-29T01:00:00Z".into(), 1));
        assert_eq!(read_in_berlin("2026-10-25T02:30"), ("2026-10-25T00:30:00Z".into(), 1));
    }

    #[test]
    fn a_date_without_a_midnight_means_its_first_instant() {
        assert_eq!(read("Africa/Cairo", "2026-04-24"), Some(("2026-04-23T22:00:00Z".into(), 0)));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "tomorrow", "2026-13-01", "2026-02-30", "12:30", "2026-03-29T25:00", "١٢"] {
            assert_eq!(read("UTC", text), None, "{text}");
        }
    }
}
