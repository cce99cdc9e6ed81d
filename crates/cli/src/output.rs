//! How answers look: the formats to choose from, and the spelling of times.

use clap::ValueEnum;
use jiff::civil::DateTime;
use jiff::tz::Offset;

pub mod table;
pub mod json;
pub mod relative;
pub mod times;
pub mod page;
pub mod progress;

/// The formats of a command that lists.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum TableOrJson {
    /// For people
    Table,
    /// For programs
    Json,
}

/// The formats of a command that tells.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum TextOrJson {
    /// For people
    Text,
    /// For programs
    Json,
}

/// `Mon 2026-03-30 09:00:00`.
pub fn local_text(wall: DateTime) -> String {
    wall.strftime("%a %Y-%m-%d %H:%M:%S").to_string()
}

/// `2026-03-30 09:00:35.276`: a due time has milliseconds.
pub fn due_text(wall: DateTime) -> String {
    wall.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string()
}

/// `+02:00`, or with seconds where a zone has them.
pub fn offset_text(offset: Offset) -> String {
    let seconds = offset.seconds();
    let (sign, size) = (if seconds < 0 { '-' } else { '+' }, seconds.unsigned_abs());
    let (hours, minutes, seconds) = (size / 3_600, size / 60 % 60, size % 60);
    match seconds {
        0 => format!("{sign}{hours:02}:{minutes:02}"),
        _ => format!("{sign}{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// What went wrong, down to its cause: `transport error: tcp connect error: Connection refused` is only the last of these.
pub fn causes(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    let text = last.to_string();
    // The number says nothing to people.
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
