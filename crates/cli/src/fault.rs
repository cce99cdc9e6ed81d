//! Errors as a person reads them: where, what, and what to write instead.

use std::fmt;

use crate::answer;
use crate::exit_code::ExitCode;

/// Input that was refused, or a wish that could not be met.
#[derive(Debug)]
struct Fault {
    message: String,
    /// The way out; maybe empty.
    help: String,
    exit_code: ExitCode,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

/// A fault in the user's input, and the way out of it.
pub fn new(message: impl Into<String>, help: impl Into<String>) -> anyhow::Error {
    ending(ExitCode::Fault, message, help)
}

/// A fault of another kind; the help may be empty.
pub fn ending(exit_code: ExitCode, message: impl Into<String>, help: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Fault { message: message.into(), help: help.into(), exit_code })
}

/// Reports an error on stderr.
pub fn deliver(error: &anyhow::Error) -> ExitCode {
    answer::complain(&[report(error)]);
    exit_code(error)
}

/// What an error means to the shell.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    error.root_cause().downcast_ref::<Fault>().map_or(ExitCode::Fault, |fault| fault.exit_code)
}

const PREFIX: &str = "error: ";

fn report(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = error.chain().map(ToString::to_string).collect();
    let root = error.root_cause();
    if let Some(fault) = root.downcast_ref::<Fault>() {
        let help = if fault.help.is_empty() { String::new() } else { format!("\nhelp: {}", fault.help) };
        return indented(&format!("{}{help}", parts.join(": ")));
    }
    let Some(spec_error) = root.downcast_ref::<punctual_spec::Error>() else {
        return indented(&parts.join(": "));
    };
    parts.pop();
    parts.extend(place(spec_error));
    // A caret needs the text to begin its line.
    let separator = if spec_error.span().is_some() { ":\n" } else { ": " };
    let place = if parts.is_empty() { String::new() } else { parts.join(": ") + separator };
    let report = spec_error.report();
    let report = if spec_error.span().is_some() { excerpt(&report) } else { report };
    indented(&format!("{place}{report}"))
}

/// Characters of a text at fault that are shown; a longer line would wrap, and leave its caret behind.
const EXCERPT_CHARS_MAX: usize = 90;
/// Of these, the characters before the caret.
const LEAD_CHARS: usize = 40;

/// A report whose first two lines, the text and the caret, are cut to what is around the caret.
fn excerpt(report: &str) -> String {
    let Some((text, rest)) = report.split_once('\n') else { return report.to_owned() };
    let text: Vec<char> = text.chars().collect();
    if text.len() <= EXCERPT_CHARS_MAX {
        return report.to_owned();
    }
    let caret = rest.chars().take_while(|c| *c == ' ').count();
    let start = caret.saturating_sub(LEAD_CHARS);
    let end = (start + EXCERPT_CHARS_MAX).min(text.len());
    let mark = |cut: bool| if cut { "…" } else { "" };
    let shown: String = text[start..end].iter().collect();
    let (first_mark, last_mark) = (mark(start > 0), mark(end < text.len()));
    // The caret line moves with the text, and makes room for the mark.
    let caret_line = format!("{}{}", " ".repeat(first_mark.chars().count()), &rest[start..]);
    format!("{first_mark}{shown}{last_mark}\n{caret_line}")
}

/// Later lines begin below the first one, so that a caret stays under its character.
fn indented(text: &str) -> String {
    format!("{PREFIX}{}", text.replace('\n', &format!("\n{}", " ".repeat(PREFIX.len()))))
}

/// The option at fault, unless the text under the caret or the message tells it.
fn place(error: &punctual_spec::Error) -> Option<String> {
    let field = error.field();
    let (list, rest) = field.split_once(['[', '.']).unwrap_or((field, ""));
    match list {
        // The message names the zone, or the file.
        "" | "zone" | "calendar_rule" => None,
        // Of a calendar only the text of one field is shown.
        _ if error.span().is_some() && list != "calendar_text" => None,
        "cron" => {
            let index = rest.split(']').next().and_then(|index| index.parse::<usize>().ok());
            Some(index.map_or("EXPR".to_owned(), |index| format!("EXPR {}", index + 1)))
        }
        _ => Some(option(field).to_owned()),
    }
}

/// The option that a field of the spec comes from, or the field itself.
pub fn option(field: &str) -> &str {
    match field.split(['[', '.']).next().unwrap_or(field) {
        "cron" => "EXPR",
        "calendar_text" => "--calendar",
        "interval" => "--every",
        "at" => "--at",
        "exclude" | "exclude_cron" => "--exclude",
        "exclude_date" => "--exclude-date",
        "business_calendar" => "--business-closed",
        "zone" => "--zone",
        "zone_data" => "--tzif",
        "jitter" => "--jitter",
        _ => field,
    }
}

/// The text without characters that would steer the terminal: input is quoted in messages as it was given.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
