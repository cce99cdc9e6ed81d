//! `punctual run list`.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use crate::answer::Answer;
use crate::limits::{LIST_ROWS_DEFAULT, PAGE_ROWS_MAX};
use crate::output::table;
use crate::output::times::{Times, between, dash, or_dash};
use crate::session::{Session, ask};
use crate::wire::words::{OutcomeName, RunStateName, shown};

/// List runs, the latest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ListArgs {
    /// Only runs of this schedule
    #[arg(long, value_name = "SCHEDULE_ID")]
    schedule: Option<String>,

    /// Only runs on this queue
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,

    /// Only runs that are this far
    #[arg(long, value_name = "STATE")]
    state: Option<RunStateName>,

    /// Only runs that ended this way
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<OutcomeName>,

    /// Only runs that failed for good or timed out, and nobody has dealt with
    #[arg(long, conflicts_with_all = ["state", "outcome"])]
    dead_letters: bool,

    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = LIST_ROWS_DEFAULT, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

const EXAMPLES: &str = "\
Examples:
  punctual run list
  punctual run list --schedule report --outcome failed
  punctual run list --queue mail --dead-letters
  punctual run list --queue mail --state running --output json";

pub async fn list(session: &Session, args: &ListArgs) -> Result<Answer> {
    let mut found = v1::ListRunsResponse::default();
    loop {
        let missing = args.limit.saturating_sub(found.runs.len() as u32);
        let request = v1::ListRunsRequest {
            namespace: session.namespace.clone(),
            schedule_id: args.schedule.clone().unwrap_or_default(),
            queue: args.queue.clone().unwrap_or_default(),
            state: args.state.map_or(0, i32::from),
            outcome: args.outcome.map_or(0, i32::from),
            page_size: missing.min(PAGE_ROWS_MAX),
            page_token: found.next_page_token.clone(),
            dead_letters: args.dead_letters,
        };
        let page = ask!(session, runs.list(request))?;
        found.runs.extend(page.runs);
        found.next_page_token = page.next_page_token;
        if found.next_page_token.is_empty() || found.runs.len() as u32 >= args.limit {
            break;
        }
    }
    let mut answer = session.show(&found, || as_table(session, &found.runs))?;
    if !found.next_page_token.is_empty() {
        answer.notes.push(format!("note: there are more than {}, --limit lists more", args.limit));
    }
    Ok(answer)
}

fn as_table(session: &Session, runs: &[v1::Run]) -> String {
    if runs.is_empty() {
        return "no runs\n".to_owned();
    }
    let times = Times { zone: &session.zone, now: session.now };
    let rows = runs.iter().map(|run| {
        vec![
            run.run_id.clone(),
            if run.schedule_id.is_empty() { dash() } else { run.schedule_id.clone() },
            times.local(run.nominal_time.as_ref()),
            state(run),
            or_dash(run.attempt),
            times.relative(run.started_at.as_ref()),
            between(run.started_at.as_ref(), run.closed_at.as_ref()),
            if run.worker_id.is_empty() { dash() } else { run.worker_id.clone() },
        ]
    });
    let local = format!("nominal ({})", session.zone.name());
    table::list(["run", "schedule", &local, "state", "attempt", "started", "took", "worker"], rows)
}

/// How far a run is, or how it ended.
pub fn state(run: &v1::Run) -> String {
    match run.state() {
        v1::run_state::Word::Closed if run.dead_letter => {
            format!("{} (dead letter)", shown(run.outcome().as_str_name()))
        }
        v1::run_state::Word::Closed => shown(run.outcome().as_str_name()),
        state if run.cancel_requested => format!("{} (cancel asked)", shown(state.as_str_name())),
        state => shown(state.as_str_name()),
    }
}
