//! `punctual lint`: what is legal in a spec but probably not meant.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use punctual_spec::{Lint, Spec};
use serde_json::json;

use crate::answer::Answer;
use crate::exit_code::ExitCode;
use crate::fault;
use crate::instant::InstantReader;
use crate::output::{TextOrJson, json};
use crate::spec_args::SpecArgs;

/// Find what is legal but probably not meant; exits with 1 if there is something
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LintArgs {
    #[command(flatten)]
    spec: SpecArgs,

    /// Look two years ahead from this instant instead of now
    #[arg(long, value_name = "INSTANT")]
    now: Option<String>,

    /// How to print
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: TextOrJson,
}

const EXAMPLES: &str = after_help!(
    "\
Examples:
  punctual lint '30 2 * * *' --zone Europe/Berlin
  punctual lint '0 0 13 * 5'
  punctual lint '0 0 31 2 *' --output json
  punctual lint '0 9 * * *' --zone America/New_York --now 2027-01-01 && echo fine"
);

pub fn lint(args: &LintArgs, now: Timestamp) -> Result<Answer> {
    let mut request = args.spec.request(now)?;
    let mut instants = InstantReader::new(now, &request.zone);
    let looking_from = instants.read_optional("--now", args.now.as_ref())?.unwrap_or(now);
    request.notes.append(&mut instants.notes);

    let lints = request.lint(looking_from)?;
    let text = match args.output {
        TextOrJson::Json => json::pretty(&json!({ "lints": json::lints(&lints) })),
        TextOrJson::Text if lints.is_empty() => "no findings\n".to_owned(),
        TextOrJson::Text => lints.iter().map(|lint| paragraph(lint, &request.spec)).collect(),
    };
    let exit_code = if lints.is_empty() { ExitCode::Answered } else { ExitCode::Findings };
    Ok(Answer { text, notes: request.notes, exit_code })
}

fn paragraph(lint: &Lint, spec: &Spec) -> String {
    let place = place(lint, spec).map_or(String::new(), |place| format!("  in: {place}\n"));
    let text = format!("{}: {}\n{place}  help: {}\n", lint.code.name(), lint.message, lint.help);
    fault::printable(&text)
}

/// The cron string that a finding is about, or the option.
fn place(lint: &Lint, spec: &Spec) -> Option<String> {
    let (list, rest) = lint.field.split_once('[')?;
    let index = rest.split(']').next()?.parse::<usize>().ok()?;
    match list {
        "cron" => spec.crons.get(index).map(|cron| cron.text.clone()),
        _ => Some(fault::option(&lint.field).to_owned()),
    }
}
