//! `punctual explain`: a spec in one plain sentence.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use crate::answer::Answer;
use crate::output::{TextOrJson, json};
use crate::spec_args::SpecArgs;

/// Say in plain English when it fires
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ExplainArgs {
    #[command(flatten)]
    spec: SpecArgs,

    /// How to print
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: TextOrJson,
}

const EXAMPLES: &str = after_help!(
    "\
Examples:
  punctual explain '*/15 9-17 * * MON-FRI' --zone Asia/Tokyo
  punctual explain '0 30 9 ? * FRIL' --dialect quartz
  punctual explain '0 0 13 * FRI' --dialect unix
  punctual explain --calendar 'hour=9 minute=30 day_of_week=mon-fri' --jitter 5m"
);

pub fn explain(args: &ExplainArgs, now: Timestamp) -> Result<Answer> {
    let request = args.spec.request(now)?;
    let sentence = request.explain()?;
    let text = match args.output {
        TextOrJson::Text => format!("{sentence}\n"),
        TextOrJson::Json => json::pretty(&json!({
            "explain": sentence,
            "zone": request.zone.name(),
            "tzdata": request.tzdata,
        })),
    };
    Ok(Answer::new(text, request.notes))
}
