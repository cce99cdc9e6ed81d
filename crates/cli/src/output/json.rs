//! JSON for programs: one spelling of each thing for all commands.

use punctual_spec::{Lint, Occurrence};
use serde_json::{Value, json};

use super::offset_text;
use crate::local_zone::LocalZone;

/// The text of a value, on many lines.
pub fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// An occurrence, with its local time in a zone.
pub fn occurrence(zone: &LocalZone, occurrence: Occurrence) -> Value {
    let Occurrence { nominal_time, due_time, .. } = occurrence;
    json!({
        "nominal_time": nominal_time.to_string(),
        "due_time": due_time.to_string(),
        "local_time": zone.wall(nominal_time).to_string(),
        "offset": offset_text(zone.offset(nominal_time)),
    })
}

/// Findings, in order.
pub fn lints(lints: &[Lint]) -> Value {
    let lint = |lint: &Lint| {
        json!({
            "code": lint.code.name(),
            "message": lint.message,
            "help": lint.help,
            "field": lint.field,
            "dates": lint.dates.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    };
    lints.iter().map(lint).collect()
}
