//! `punctual schedule why` and `ledger`: what became of occurrences, and for which reason.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use super::{StoredInstants, zone_of};
use crate::answer::Answer;
use crate::limits::{LIST_ROWS_DEFAULT, PAGE_ROWS_MAX};
use crate::output::page::Page;
use crate::output::times::{Times, dash};
use crate::output::{TableOrJson, table};
use crate::session::{Session, ask};
use crate::wire::words::{VerdictName, shown};

/// Say why it did or did not start at an instant, or whether it will
#[derive(Debug, Args)]
#[command(after_help = WHY_EXAMPLES)]
pub struct WhyArgs {
    /// The schedule's name
    #[arg(value_name = "SCHEDULE_ID")]
    id: String,

    /// The nominal time in question
    #[arg(value_name = "INSTANT")]
    time: String,
}

const WHY_EXAMPLES: &str = after_help!(
    "\
Examples:
  punctual schedule why report 2026-03-30T09:00
  punctual schedule why report 2026-03-30T07:00:00Z --output json"
);

/// List occurrences that did not start, by time, and why; started ones are in `run list`
#[derive(Debug, Args)]
#[command(after_help = LEDGER_EXAMPLES)]
pub struct LedgerArgs {
    /// The schedule's name
    #[arg(value_name = "SCHEDULE_ID")]
    id: String,

    /// Those in (from, to]: after this nominal time
    #[arg(long, value_name = "INSTANT")]
    from: Option<String>,

    /// Those in (from, to]: up to this nominal time, itself included
    #[arg(long, value_name = "INSTANT")]
    to: Option<String>,

    /// Only those with this verdict
    #[arg(long, value_name = "WORD")]
    verdict: Option<VerdictName>,

    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = LIST_ROWS_DEFAULT, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

const LEDGER_EXAMPLES: &str = after_help!(
    "\
Examples:
  punctual schedule ledger report
  punctual schedule ledger report --verdict missed --from 2026-03-01"
);

pub async fn why(session: &Session, args: &WhyArgs) -> Result<Answer> {
    let mut instants = StoredInstants::new(session, &args.id);
    let time = instants.read("INSTANT", &args.time).await?;
    let (zone, notes) = (instants.zone, instants.notes);
    let request = v1::WhyScheduleRequest {
        namespace: session.namespace.clone(),
        schedule_id: args.id.clone(),
        time: Some(time),
    };
    let response = ask!(session, schedules.why(request))?;
    let zone = match (zone, session.output) {
        (Some(zone), _) => zone,
        (None, TableOrJson::Table) => zone_of(session, &args.id).await?,
        (None, TableOrJson::Json) => session.zone.clone(),
    };
    let mut answer = session.show(&response, || {
        let times = Times { zone: &zone, now: session.now };
        let mut page = Page::default();
        page.fact("time", times.both(Some(&time)))
            .fact("verdict", shown(response.verdict().as_str_name()))
            .fact("reason", shown(response.reason().as_str_name()))
            .fact("phase", shown(response.phase().as_str_name()))
            .fact("run", &response.run_id);
        for (name, instant) in [
            ("decided", response.decided_at.as_ref()),
            ("due", response.due_time.as_ref()),
            ("previous", response.previous.as_ref().and_then(|previous| previous.nominal_time.as_ref())),
            ("next", response.next.as_ref().and_then(|next| next.nominal_time.as_ref())),
        ] {
            page.fact(name, instant.map_or_else(String::new, |_| times.both(instant)));
        }
        format!("{}\n\n{}", crate::fault::printable(&response.explanation), page.text())
    })?;
    answer.notes.extend(notes);
    Ok(answer)
}

pub async fn ledger(session: &Session, args: &LedgerArgs) -> Result<Answer> {
    let mut instants = StoredInstants::new(session, &args.id);
    let after = instants.read_optional("--from", args.from.as_ref()).await?;
    let through = instants.read_optional("--to", args.to.as_ref()).await?;
    let (zone, notes) = (instants.zone, instants.notes);
    let mut found = v1::ScheduleLedgerResponse::default();
    loop {
        let missing = args.limit.saturating_sub(found.entries.len() as u32);
        let request = v1::ScheduleLedgerRequest {
            namespace: session.namespace.clone(),
            schedule_id: args.id.clone(),
            after,
            through,
            verdict: args.verdict.map_or(0, i32::from),
            page_size: missing.min(PAGE_ROWS_MAX),
            page_token: found.next_page_token.clone(),
        };
        let page = ask!(session, schedules.ledger(request))?;
        found.entries.extend(page.entries);
        found.next_page_token = page.next_page_token;
        if found.next_page_token.is_empty() || found.entries.len() as u32 >= args.limit {
            break;
        }
    }
    let zone = match (zone, session.output) {
        (Some(zone), _) => zone,
        (None, TableOrJson::Table) => zone_of(session, &args.id).await?,
        (None, TableOrJson::Json) => session.zone.clone(),
    };
    let mut answer = session.show(&found, || {
        let times = Times { zone: &zone, now: session.now };
        ledger_table(&times, &found.entries)
    })?;
    answer.notes.extend(notes);
    if !found.next_page_token.is_empty() {
        answer.notes.push(format!("note: there are more than {}, --limit lists more", args.limit));
    }
    Ok(answer)
}

fn ledger_table(times: &Times<'_>, entries: &[v1::LedgerEntry]) -> String {
    if entries.is_empty() {
        return "no such entries: occurrences that started are in `punctual run list`\n".to_owned();
    }
    let rows = entries.iter().map(|entry| {
        let reason = shown(entry.reason().as_str_name());
        let count = if entry.at_least { format!("{}+", entry.count) } else { entry.count.to_string() };
        vec![
            times.local(entry.from.as_ref()),
            if entry.from == entry.through { dash() } else { times.local(entry.through.as_ref()) },
            count,
            shown(entry.verdict().as_str_name()),
            if reason.is_empty() { dash() } else { reason },
            shown(entry.origin().as_str_name()),
            if entry.run_id.is_empty() { dash() } else { entry.run_id.clone() },
            times.relative(entry.decided_at.as_ref()),
        ]
    });
    let local = format!("nominal ({})", times.zone.name());
    table::list([&local, "through", "count", "verdict", "reason", "origin", "run", "decided"], rows)
}
