//! `punctual schedule preview`: the next times of a stored schedule, as the server sees them.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use super::{StoredInstants, zone_of};
use crate::answer::Answer;
use crate::output::times::{Times, dash};
use crate::output::{TableOrJson, table};
use crate::session::{Session, ask};

/// List the next times of a stored schedule
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct StoredPreviewArgs {
    /// Its name
    #[arg(value_name = "SCHEDULE_ID")]
    id: String,

    /// List this many, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    count: u32,

    /// List those in (from, to]: after this instant, by default now
    #[arg(long, value_name = "INSTANT")]
    from: Option<String>,

    /// List those in (from, to]: up to this instant, itself included
    #[arg(long, value_name = "INSTANT")]
    to: Option<String>,
}

const EXAMPLES: &str = after_help!(
    "\
Examples:
  punctual schedule preview report
  punctual schedule preview report --from 2026-12-20 --to 2027-01-10 --count 100"
);

pub async fn preview(session: &Session, args: &StoredPreviewArgs) -> Result<Answer> {
    let mut instants = StoredInstants::new(session, &args.id);
    let after = instants.read_optional("--from", args.from.as_ref()).await?;
    let through = instants.read_optional("--to", args.to.as_ref()).await?;
    let (zone, notes) = (instants.zone, instants.notes);
    let request = v1::PreviewScheduleRequest {
        namespace: session.namespace.clone(),
        schedule_id: args.id.clone(),
        spec: None,
        after,
        through,
        count_max: args.count,
    };
    let response = ask!(session, schedules.preview(request))?;
    let zone = match (zone, session.output) {
        (Some(zone), _) => zone,
        (None, TableOrJson::Table) => zone_of(session, &args.id).await?,
        (None, TableOrJson::Json) => session.zone.clone(),
    };
    let mut answer = session.show(&response, || {
        let times = Times { zone: &zone, now: session.now };
        as_table(&times, &response)
    })?;
    answer.notes.extend(notes);
    if let TableOrJson::Table = session.output {
        let warnings = response.lints.iter().map(|lint| format!("warning: {} ({})", lint.message, lint.code));
        answer.notes.extend(warnings);
    }
    Ok(answer)
}

fn as_table(times: &Times<'_>, response: &v1::PreviewScheduleResponse) -> String {
    let mut text = format!("{}\n\n", crate::fault::printable(&response.explanation));
    if response.occurrences.is_empty() {
        return text + "no occurrences\n";
    }
    let local = format!("local ({})", times.zone.name());
    let rows = response.occurrences.iter().enumerate().map(|(index, occurrence)| {
        let (nominal, due) = (occurrence.nominal_time.as_ref(), occurrence.due_time.as_ref());
        let utc = crate::wire::time::from_wire(nominal).map_or_else(dash, |instant| instant.to_string());
        let due = if nominal == due { dash() } else { times.local(due) };
        vec![(index + 1).to_string(), times.local(nominal), utc, times.relative(nominal), due]
    });
    text.push_str(&table::table(["#", &local, "UTC", "relative", "due"], rows));
    if !response.more {
        text.push_str("\nno more occurrences in this range\n");
    }
    text
}
