//! `punctual schedule backfill` and `cancel-backfill`: the occurrences of a past range.

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use indicatif::ProgressBar;
use punctual_api::v1;

use super::{StoredInstants, changed, description};
use crate::answer::{self, Answer};
use crate::exit_code::ExitCode;
use crate::fault;
use crate::limits::PAGE_ROWS_MAX;
use crate::output::{TableOrJson, progress};
use crate::session::{RequestIdArgs, Session, ask};
use crate::signals;
use crate::wire::time;
use crate::wire::words::OverlapName;

/// Start the occurrences of a past range
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct BackfillArgs {
    /// The schedule's name
    #[arg(value_name = "SCHEDULE_ID")]
    id: String,

    /// The first nominal time, included
    #[arg(long, value_name = "INSTANT")]
    from: String,

    /// The last nominal time, included
    #[arg(long, value_name = "INSTANT", alias = "to")]
    through: String,

    /// What to do while a run is in progress [default: the schedule's policy]
    #[arg(long, value_name = "POLICY")]
    overlap: Option<OverlapName>,

    /// The least time between two of its starts [default: none]
    #[arg(long, value_name = "DURATION")]
    pace: Option<String>,

    /// Why, for people
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Wait until every occurrence of the range was taken and its runs have ended, and show how far it is
    #[arg(long)]
    wait: bool,

    #[command(flatten)]
    request_id: RequestIdArgs,
}

const EXAMPLES: &str = after_help!(
    "\
Examples:
  punctual schedule backfill report --from 2026-03-01 --through 2026-03-07 --wait
  punctual schedule backfill report --from 2026-03-01 --through 2026-04-01 --overlap buffer_all --pace 10s"
);

/// Stop a backfill: what it has not taken is never taken; runs go on
#[derive(Debug, Args)]
#[command(after_help = CANCEL_EXAMPLES)]
pub struct CancelBackfillArgs {
    /// The schedule's name
    #[arg(value_name = "SCHEDULE_ID")]
    id: String,

    /// Which one: the 16 digits that its answer named, as describe shows them
    #[arg(value_name = "BACKFILL_ID")]
    backfill_id: String,

    #[command(flatten)]
    request_id: RequestIdArgs,
}

const CANCEL_EXAMPLES: &str = "\
Examples:
  punctual schedule cancel-backfill report 3b1f0c2a99d04e17";

/// How often a backfill is asked how far it is.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

pub async fn backfill(session: &Session, args: &BackfillArgs) -> Result<Answer> {
    let mut instants = StoredInstants::new(session, &args.id);
    let from = instants.read("--from", &args.from).await?;
    let through = instants.read("--through", &args.through).await?;
    let notes = instants.notes;
    ensure!(
        (from.seconds, from.nanos) <= (through.seconds, through.nanos),
        fault::new(
            format!("--through is {}, before --from, {}", args.through, args.from),
            "both are nominal times of the range, themselves included"
        )
    );
    let pace = args.pace.as_ref().map(|text| time::duration("--pace", text)).transpose()?;
    let request = v1::BackfillScheduleRequest {
        namespace: session.namespace.clone(),
        schedule_id: args.id.clone(),
        request_id: args.request_id.get(),
        backfill: Some(v1::Backfill {
            from: Some(from),
            through: Some(through),
            overlap: args.overlap.map_or(0, i32::from),
            pace: pace.map(time::duration_to_wire),
            note: args.note.clone().unwrap_or_default(),
        }),
    };
    let response = ask!(session, schedules.backfill(request))?;
    let key = response.request_keys.first().cloned().unwrap_or_default();
    if !args.wait {
        return changed(session, &response, format!("backfill {key} of {} began", args.id), notes);
    }
    answer::complain(&notes);
    let became = wait(session, &args.id, &key, (from.seconds, through.seconds)).await?;
    match became {
        Some(became) => {
            let line = format!("backfill {key} of {} is done: {became}", args.id);
            changed(session, &response, line, Vec::new())
        }
        None => {
            answer::complain(&[format!("backfill {key} of {} goes on without you", args.id)]);
            Ok(Answer::silent(ExitCode::Failed))
        }
    }
}

/// Looks until the backfill and the runs that it started are gone from the schedule. Nothing if the user left before.
async fn wait(session: &Session, id: &str, key: &str, range: (i64, i64)) -> Result<Option<String>> {
    let stop = signals::first();
    tokio::pin!(stop);
    let show = Progress::new(session, range);
    loop {
        let about = description(session, id).await?;
        let backfill = about.backfills.iter().find(|backfill| backfill.backfill_id == key);
        let starts = about.in_progress.iter().chain(&about.buffered);
        let waiting = starts.filter(|start| start.request_key == key).count();
        if let Some(backfill) = backfill {
            show.step(backfill, waiting);
        } else {
            show.rest(waiting);
        }
        if backfill.is_none() && waiting == 0 {
            show.bar.finish_and_clear();
            return Ok(Some(became(session, id, key, range).await?));
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_INTERVAL) => {}
            () = &mut stop => return Ok(None),
        }
    }
}

/// What became of a backfill's occurrences, in numbers.
async fn became(session: &Session, id: &str, key: &str, range: (i64, i64)) -> Result<String> {
    let (mut started, mut page_token) = (0, String::new());
    loop {
        let request = v1::ListRunsRequest {
            namespace: session.namespace.clone(),
            schedule_id: id.to_owned(),
            page_size: PAGE_ROWS_MAX,
            page_token,
            ..v1::ListRunsRequest::default()
        };
        let page = ask!(session, runs.list(request))?;
        started += page.runs.iter().filter(|run| run.request_key == key).count();
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    let instant = |seconds| prost_types::Timestamp { seconds, nanos: 0 };
    let mut not_started = 0;
    loop {
        let request = v1::ScheduleLedgerRequest {
            namespace: session.namespace.clone(),
            schedule_id: id.to_owned(),
            after: Some(instant(range.0 - 1)),
            through: Some(instant(range.1)),
            page_size: PAGE_ROWS_MAX,
            page_token,
            ..v1::ScheduleLedgerRequest::default()
        };
        let page = ask!(session, schedules.ledger(request))?;
        let own = page.entries.iter().filter(|entry| entry.request_key == key);
        let own = own.filter(|entry| entry.verdict() != v1::verdict::Word::Started);
        not_started += own.map(|entry| entry.count).sum::<u64>();
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    let others = if not_started == 0 { String::new() } else { format!(", {not_started} not started") };
    Ok(format!("{started} started{others}"))
}

/// A bar on a terminal, lines elsewhere, nothing for programs.
struct Progress {
    bar: ProgressBar,
    range: (i64, i64),
    lines: bool,
}

impl Progress {
    fn new(session: &Session, range: (i64, i64)) -> Progress {
        let for_people = matches!(session.output, TableOrJson::Table);
        let on_terminal = std::io::stderr().is_terminal();
        let length = range.1.saturating_sub(range.0).max(1).unsigned_abs();
        let bar = progress::with_message(session.output, length);
        Progress { bar, range, lines: for_people && !on_terminal }
    }

    fn step(&self, backfill: &v1::BackfillProgress, waiting: usize) {
        let reached = backfill.watermark.as_ref().map_or(self.range.0, |watermark| watermark.seconds);
        self.bar.set_position(reached.saturating_sub(self.range.0).max(0).unsigned_abs());
        self.say(format!("{} taken, {waiting} in progress", backfill.taken_count));
    }

    fn rest(&self, waiting: usize) {
        self.bar.set_position(self.bar.length().unwrap_or_default());
        self.say(format!("all taken, {waiting} in progress"));
    }

    fn say(&self, message: String) {
        if self.lines && self.bar.message() != message {
            answer::complain(std::slice::from_ref(&message));
        }
        self.bar.set_message(message);
    }
}

pub async fn cancel(session: &Session, args: &CancelBackfillArgs) -> Result<Answer> {
    let request = v1::CancelBackfillRequest {
        namespace: session.namespace.clone(),
        schedule_id: args.id.clone(),
        backfill_id: args.backfill_id.clone(),
        request_id: args.request_id.get(),
    };
    let response = ask!(session, schedules.cancel_backfill(request))?;
    changed(session, &response, format!("cancelled backfill {}", args.backfill_id), Vec::new())
}
