//! `punctual run describe`: a page about one run.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use super::list::state;
use crate::answer::Answer;
use crate::output::page::Page;
use crate::output::times::{Times, between};
use crate::session::{Session, ask};
use crate::wire::payload;
use crate::wire::words::shown;

/// Say everything about a run
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DescribeArgs {
    /// Its number
    #[arg(value_name = "RUN_ID")]
    id: String,
}

const EXAMPLES: &str = "\
Examples:
  punctual run describe 42
  punctual run describe 42 --output json";

pub async fn describe(session: &Session, args: &DescribeArgs) -> Result<Answer> {
    let request = v1::DescribeRunRequest { namespace: session.namespace.clone(), run_id: args.id.clone() };
    let run = ask!(session, runs.describe(request))?.run.unwrap_or_default();
    session.show(&run, || page(session, &run))
}

fn page(session: &Session, run: &v1::Run) -> String {
    let times = Times { zone: &session.zone, now: session.now };
    let given = |payload: Option<&v1::Payload>| payload.map(payload::text).unwrap_or_default();
    let failed = |failure: Option<&v1::Failure>| failure.map(failure_text).unwrap_or_default();
    let mut page = Page::default();
    page.fact("run", &run.run_id)
        .fact("name", &run.name)
        .fact("schedule", &run.schedule_id)
        .fact("state", shown_state(run))
        .alarm("dead letter", dead_letter(run))
        .fact("handler", format!("{} on queue {}", run.handler, run.queue))
        .fact("origin", shown(run.origin().as_str_name()))
        .fact("request", &run.request_key)
        .fact("priority", if run.priority == 0 { String::new() } else { run.priority.to_string() })
        .fact("key", &run.key)
        .fact("dedup", &run.deduplication_id)
        .fact("attempt", if run.attempt == 0 { String::new() } else { run.attempt.to_string() })
        .fact("worker", &run.worker_id);
    for (name, instant) in [
        ("nominal", run.nominal_time.as_ref()),
        ("due", run.due_time.as_ref().filter(|due| Some(*due) != run.nominal_time.as_ref())),
        ("created", run.created_at.as_ref()),
        ("started", run.started_at.as_ref()),
        ("closed", run.closed_at.as_ref()),
        ("next attempt", run.next_attempt_time.as_ref()),
        ("lease until", run.lease_expires_time.as_ref()),
    ] {
        page.fact(name, instant.map_or_else(String::new, |_| times.both(instant)));
    }
    if run.started_at.is_some() && run.closed_at.is_some() {
        page.fact("took", between(run.started_at.as_ref(), run.closed_at.as_ref()));
    }
    page.fact("input", given(run.input.as_ref()))
        .fact("result", given(run.result.as_ref()))
        .alarm("failure", failed(run.failure.as_ref()))
        .fact("progress", given(run.progress.as_ref()))
        .fact("last result", given(run.last_result.as_ref()))
        .fact("last failure", failed(run.last_failure.as_ref()));
    page.text()
}

/// The state without what a line of its own says.
fn shown_state(run: &v1::Run) -> String {
    state(&v1::Run { dead_letter: false, ..run.clone() })
}

fn dead_letter(run: &v1::Run) -> String {
    match run.dead_letter {
        true => format!("nobody has dealt with it; try it again with: punctual run retry {}", run.run_id),
        false => String::new(),
    }
}

/// A failure, its kind first.
pub fn failure_text(failure: &v1::Failure) -> String {
    match (failure.kind.is_empty(), failure.message.is_empty()) {
        (false, true) => failure.kind.clone(),
        (true, _) => failure.message.clone(),
        (false, false) => format!("{}: {}", failure.kind, failure.message),
    }
}
