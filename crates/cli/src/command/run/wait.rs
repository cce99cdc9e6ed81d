//! Waits for runs to end, and says how they did.

use std::time::Duration;

use anyhow::Result;
use punctual_api::v1;

use super::describe::failure_text;
use super::list::state;
use crate::answer::{self, Answer};
use crate::exit_code::ExitCode;
use crate::fault;
use crate::output::progress;
use crate::output::times::between;
use crate::session::{Session, ask};
use crate::signals;
use crate::wire::payload;

/// The first pause between two looks; each further one is twice as long.
const LOOK_FIRST: Duration = Duration::from_millis(20);

/// The longest pause between two looks.
const LOOK_MAX: Duration = Duration::from_millis(500);

/// Looks until all have ended, one after the other: those that end meanwhile are seen at once when it is their turn.
pub async fn wait(session: &Session, made: &[v1::EnqueuedRun], notes: Vec<String>) -> Result<Answer> {
    let stop = signals::first();
    tokio::pin!(stop);
    answer::complain(&notes);
    let bar = progress::bar(session.output, Some(made.len() as u64));
    let mut found = v1::ListRunsResponse::default();
    for run in made {
        let mut pause = LOOK_FIRST;
        loop {
            let request =
                v1::DescribeRunRequest { namespace: session.namespace.clone(), run_id: run.run_id.clone() };
            let about = ask!(session, runs.describe(request))?.run.unwrap_or_default();
            if about.state() == v1::run_state::Word::Closed {
                found.runs.push(about);
                break;
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(LOOK_MAX),
                () = &mut stop => {
                    bar.finish_and_clear();
                    let left = made.len() - found.runs.len();
                    let word = if left == 1 { "run goes" } else { "runs go" };
                    answer::complain(&[format!("{left} {word} on without you")]);
                    return Ok(Answer::silent(ExitCode::Failed));
                }
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let is_well = found.runs.iter().all(|run| run.outcome() == v1::outcome::Word::Succeeded);
    let exit_code = if is_well { ExitCode::Answered } else { ExitCode::Failed };
    Ok(Answer { exit_code, ..session.show(&found, || found.runs.iter().map(line).collect())? })
}

/// How one run ended, with what it returned or why it failed.
fn line(run: &v1::Run) -> String {
    let said = match (&run.result, &run.failure) {
        (Some(result), _) => format!(": {}", payload::text(result)),
        (None, Some(failure)) => format!(": {}", failure_text(failure)),
        (None, None) => String::new(),
    };
    let took = match run.started_at {
        Some(_) => format!(" after {}", between(run.created_at.as_ref(), run.closed_at.as_ref())),
        None => String::new(),
    };
    let line = format!("run {} {}{took}{said}", run.run_id, state(run));
    format!("{}\n", fault::printable(&line).replace('\n', " "))
}
