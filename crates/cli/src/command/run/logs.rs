//! `punctual run logs`: the tail of what a run's handler wrote.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use crate::answer::Answer;
use crate::fault;
use crate::output::due_text;
use crate::session::{Session, ask};
use crate::wire::time;

/// Show the tail of what a run's handler wrote
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LogsArgs {
    /// Its number
    #[arg(value_name = "RUN_ID")]
    id: String,

    /// At most this many of the latest lines [default: all that are kept]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    lines: Option<u32>,

    /// The lines alone, without time and attempt
    #[arg(long)]
    plain: bool,
}

const EXAMPLES: &str = "\
Examples:
  punctual run logs 42
  punctual run logs 42 --lines 20 --plain";

pub async fn logs(session: &Session, args: &LogsArgs) -> Result<Answer> {
    let request = v1::RunLogsRequest {
        namespace: session.namespace.clone(),
        run_id: args.id.clone(),
        lines_max: args.lines.unwrap_or(0),
    };
    let response = ask!(session, runs.logs(request))?;
    let line = |line: &v1::LogLine| {
        let text = fault::printable(&line.text);
        match time::from_wire(line.logged_at.as_ref()) {
            Some(instant) if !args.plain => {
                format!("{}  #{}  {text}\n", due_text(session.zone.wall(instant)), line.attempt)
            }
            _ => format!("{text}\n"),
        }
    };
    let mut answer = session.show(&response, || response.lines.iter().map(line).collect())?;
    if response.truncated {
        answer.notes.push("note: earlier lines are not shown".to_owned());
    }
    Ok(answer)
}
