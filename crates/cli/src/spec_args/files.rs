//! Files that options name: dates, one a line, and time zone data.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use jiff::civil::Date;
use punctual_spec::NamedCalendar;
use punctual_spec::limits::ZONE_BYTES_MAX;

use crate::fault;
use crate::instant;
use crate::limits::DATES_FILE_BYTES_MAX;

/// Reads a file of dates as a calendar.
pub fn dates(option: &str, path: &Path) -> Result<NamedCalendar> {
    Ok(NamedCalendar::new(listed_dates(option, path)?))
}

/// Reads a file of dates. Blank lines do not count, nor does anything after a `#`.
pub fn listed_dates(option: &str, path: &Path) -> Result<Vec<Date>> {
    let place = || format!("{option} {}", path.display());
    let bytes = read(path, DATES_FILE_BYTES_MAX).with_context(place)?;
    let text = String::from_utf8(bytes).ok().with_context(|| format!("{} is not UTF-8 text", place()))?;
    let mut dates: Vec<Date> = Vec::new();
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.split('#').next().unwrap_or(line).trim();
        if line.is_empty() {
            continue;
        }
        let date = instant::date(line).ok_or_else(|| {
            let message = format!("{option} {}:{} is not a date, found `{line}`", path.display(), index + 1);
            fault::new(message, "write one date a line, as in `2026-12-25`, and remarks after a `#`")
        })?;
        dates.push(date);
    }
    Ok(dates)
}

/// Reads time zone data, and no more than a zone can have.
pub fn tzif(path: &Path) -> Result<Vec<u8>> {
    read(path, ZONE_BYTES_MAX).with_context(|| format!("--tzif {}", path.display()))
}

fn read(path: &Path, bytes_max: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() <= bytes_max, "file has more than {bytes_max} bytes");
    Ok(bytes)
}
