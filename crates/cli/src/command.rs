//! The commands, listed.

use std::sync::LazyLock;

use anyhow::Result;
use clap::{Parser, Subcommand};
use jiff::Timestamp;
use punctual_spec::Zones;

use crate::answer::Answer;

/// The end of a command's help: its examples, then what all commands share.
macro_rules! after_help {
    ($text:literal) => {
        concat!(
            $text,
            "\n\nAn INSTANT is 2026-03-29T01:00:00Z, now, or local to the zone: 2026-03-29T02:30 or 2026-03-29."
        )
    };
}

mod preview;
mod explain;
mod lint;
mod diff;
mod completions;

/// Shows when a schedule fires, in every time zone, before it does
#[derive(Debug, Parser)]
#[command(name = "punctual", version = version(), after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  punctual preview '0 9 * * MON-FRI' --zone Europe/Berlin --count 10
  punctual explain '0 30 9 ? * FRIL' --dialect quartz
  punctual lint '30 2 * * *' --zone America/New_York
  punctual diff '0 9 * * *' '0 9 * * MON-FRI'

Exit codes: 0 answered, 1 lint has findings, 2 the input was refused.";

#[derive(Debug, Subcommand)]
pub enum Command {
    Preview(preview::PreviewArgs),
    Explain(explain::ExplainArgs),
    Lint(lint::LintArgs),
    Diff(diff::DiffArgs),
    Completions(completions::CompletionsArgs),
}

impl Command {
    /// Answers the command, as of `now`.
    pub fn run(self, now: Timestamp) -> Result<Answer> {
        match self {
            Command::Preview(args) => preview::preview(&args, now),
            Command::Explain(args) => explain::explain(&args, now),
            Command::Lint(args) => lint::lint(&args, now),
            Command::Diff(args) => diff::diff(&args, now),
            Command::Completions(args) => completions::completions(&args),
        }
    }
}

/// The version, and that of the zone data: a wrong offset is as likely to be the latter's.
fn version() -> &'static str {
    static VERSION: LazyLock<String> =
        LazyLock::new(|| format!("{} (tz data {})", env!("CARGO_PKG_VERSION"), Zones::bundled().version()));
    &VERSION
}
