//! `punctual doctor`: what is broken or stuck in a server, and what to do about it.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use punctual_api::v1;
use punctual_api::v1::health::Word;

use crate::answer::Answer;
use crate::exit_code::ExitCode;
use crate::fault;
use crate::output::table;
use crate::output::times::dash;
use crate::session::{ClientArgs, Session, ask};

/// Look for what is broken or stuck; exits with 9 if somebody should look at something, with 10 if something is broken
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DoctorCommand {
    #[command(flatten)]
    client: ClientArgs,

    /// Mend what can be mended
    #[arg(long)]
    mend: bool,
}

const EXAMPLES: &str = "\
Examples:
  punctual doctor
  punctual doctor --mend
  punctual doctor --output json --timeout 1m | jq '.findings[] | select(.health != \"fine\")'

A large database takes a while to look at: --timeout waits longer.";

impl DoctorCommand {
    pub async fn run(self, now: Timestamp) -> Result<Answer> {
        let session = &Session::open(&self.client, now).await?;
        let found = ask!(session, server.examine(v1::ExamineRequest { mend: self.mend }))?;
        let answer = session.show(&found, || as_text(&found.findings))?;
        Ok(Answer { exit_code: worst(&found.findings), ..answer })
    }
}

/// The exit code of the worst finding. What is not known may be anything, so somebody should look.
fn worst(findings: &[v1::Finding]) -> ExitCode {
    let code = |finding: &v1::Finding| match finding.health() {
        Word::Fine => ExitCode::Answered,
        Word::Warning | Word::Unspecified => ExitCode::Warnings,
        Word::Broken => ExitCode::Broken,
    };
    findings.iter().map(code).max_by_key(|code| code.number()).unwrap_or(ExitCode::Answered)
}

fn as_text(findings: &[v1::Finding]) -> String {
    let rows = findings.iter().map(|finding| {
        let mended = if finding.mended_count == 0 { dash() } else { finding.mended_count.to_string() };
        vec![finding.check.clone(), health(finding).to_owned(), mended, finding.message.clone()]
    });
    let mut text = table::list(["check", "health", "mended", "found"], rows);
    let advised = findings.iter().filter(|finding| !finding.advice.is_empty());
    let advice: Vec<String> =
        advised.map(|finding| format!("{}: {}\n", finding.check, finding.advice)).collect();
    if !advice.is_empty() {
        text.push_str(&format!("\nwhat to do\n  {}", fault::printable(&advice.join("  "))));
    }
    text
}

fn health(finding: &v1::Finding) -> &'static str {
    match finding.health() {
        Word::Unspecified => "unknown",
        word => word.as_str_name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_finding_decides() {
        let found = |words: &[Word]| {
            let findings: Vec<v1::Finding> = words
                .iter()
                .map(|word| v1::Finding { health: (*word).into(), ..v1::Finding::default() })
                .collect();
            worst(&findings).number()
        };
        assert_eq!(found(&[]), 0);
        assert_eq!(found(&[Word::Fine, Word::Fine]), 0);
        assert_eq!(found(&[Word::Fine, Word::Warning, Word::Fine]), 9);
        assert_eq!(found(&[Word::Unspecified]), 9);
        assert_eq!(found(&[Word::Broken, Word::Warning]), 10);
    }

    #[test]
    fn advice_stands_below_the_table() {
        let finding = |check: &str, health: Word, advice: &str| v1::Finding {
            check: check.into(),
            health: health.into(),
            message: "seen".into(),
            advice: advice.into(),
            mended_count: 0,
        };
        let text =
            as_text(&[finding("timers", Word::Fine, ""), finding("clock", Word::Warning, "wind it up")]);
        assert_eq!(
            text,
            "check   health   mended  found\ntimers  fine     -       seen\nclock   warning  -       seen\n\n\
             what to do\n  clock: wind it up\n"
        );
    }
}
