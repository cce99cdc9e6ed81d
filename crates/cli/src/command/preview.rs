//! `punctual preview`: the next occurrences of a spec, as a table or as JSON.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use punctual_spec::{Lint, Occurrence};
use serde_json::json;

use crate::answer::Answer;
use crate::clock_change::ClockChanges;
use crate::limits::ROWS_MAX;
use crate::output::{self, TableOrJson, json, relative, table};
use crate::request::{Request, Window};
use crate::spec_args::SpecArgs;

/// List the next occurrences
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PreviewArgs {
    #[command(flatten)]
    spec: SpecArgs,

    /// List this many, 1 to 10000 [default: 10, or all when --to is given]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=ROWS_MAX as u64))]
    count: Option<u64>,

    /// List those in (from, to]: after this instant, by default now
    #[arg(long, value_name = "INSTANT")]
    from: Option<String>,

    /// List those in (from, to]: up to this instant, itself included
    #[arg(long, value_name = "INSTANT")]
    to: Option<String>,

    /// How to print
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: TableOrJson,
}

const EXAMPLES: &str = after_help!(
    "\
Examples:
  punctual preview '0 9 * * MON-FRI' --zone Europe/Berlin
  punctual preview '30 2 * * *' --zone Europe/Berlin --from 2026-03-27 --to 2026-04-01 --output json
  punctual preview --every 90m --anchor 2026-01-01T06:00 --zone Asia/Tokyo
  punctual preview '0 0 9 LB * ?' --dialect quartz --business-closed holidays.txt"
);

const COUNT_DEFAULT: usize = 10;

/// An occurrence and what a change of the clock did to it.
struct Row {
    occurrence: Occurrence,
    mark: String,
}

pub fn preview(args: &PreviewArgs, now: Timestamp) -> Result<Answer> {
    let mut request = args.spec.request(now)?;
    let window = request.window(now, args.from.as_ref(), args.to.as_ref())?;
    let count = match (args.count, window.through) {
        (Some(count), _) => count as usize,
        (None, Some(_)) => ROWS_MAX,
        (None, None) => COUNT_DEFAULT,
    };
    let rows = rows(&request, window, count)?;
    let reached = rows.last().map_or(window.after, |row| row.occurrence.nominal_time);
    let following = request.compiled.next(reached);
    let lints = request.lint(window.after)?;

    let mut notes = request.notes.clone();
    let more =
        following.is_some_and(|next| window.through.is_some_and(|through| next.nominal_time <= through));
    if more && args.count.is_none() {
        notes.push(format!(
            "note: there are more than {ROWS_MAX} up to --to, only the first {ROWS_MAX} are listed"
        ));
    }
    let text = match args.output {
        TableOrJson::Json => as_json(&request, &rows, following.is_none(), &lints)?,
        TableOrJson::Table => {
            notes
                .extend(lints.iter().map(|lint| format!("warning: {} ({})", lint.message, lint.code.name())));
            as_table(&request, &rows, window, following)?
        }
    };
    Ok(Answer::new(text, notes))
}

fn rows(request: &Request, window: Window, count: usize) -> Result<Vec<Row>> {
    let mut changes = ClockChanges::new(request)?;
    let occurrences = request.compiled.iterate(window.after, window.through.unwrap_or(Timestamp::MAX));
    Ok(occurrences
        .take(count)
        .map(|occurrence| Row { occurrence, mark: changes.mark(occurrence.nominal_time) })
        .collect())
}

fn as_table(
    request: &Request,
    rows: &[Row],
    window: Window,
    following: Option<Occurrence>,
) -> Result<String> {
    let mut text = format!("{}\n", request.explain()?);
    if !rows.is_empty() {
        let zone = &request.zone;
        let local = format!("local ({})", zone.name());
        let due = request.has_jitter().then_some("due");
        let header =
            ["#", &local, "UTC", "offset", "relative"].into_iter().chain(due).chain(["clock change"]);
        let body = rows.iter().enumerate().map(|(index, row)| {
            let Occurrence { nominal_time, due_time, .. } = row.occurrence;
            let due = request.has_jitter().then(|| output::due_text(zone.wall(due_time)));
            let first = [
                (index + 1).to_string(),
                output::local_text(zone.wall(nominal_time)),
                nominal_time.to_string(),
                output::offset_text(zone.offset(nominal_time)),
                relative::text(window.after, nominal_time),
            ];
            first.into_iter().chain(due).chain([row.mark.clone()]).collect()
        });
        text.push('\n');
        text.push_str(&table::table(header, body));
    }
    if let Some(end) = ending(request, rows, window, following) {
        text.push_str(&format!("\n{end}\n"));
    }
    Ok(text)
}

/// Why the list is as short as it is, if that is not the user's doing.
fn ending(request: &Request, rows: &[Row], window: Window, following: Option<Occurrence>) -> Option<String> {
    let shown = |instant| format!("{} ({instant})", output::local_text(request.zone.wall(instant)));
    match (following, request.compiled.last()) {
        (None, Some(last)) => Some(format!("no more occurrences: the last is {}", shown(last))),
        (None, None) => Some("no occurrences: it never fires".to_owned()),
        (Some(next), _) if rows.is_empty() => {
            let through = window.through.unwrap_or(Timestamp::MAX);
            let range = format!("({}, {through}]", window.after);
            Some(format!("no occurrences in {range}: the next is {}", shown(next.nominal_time)))
        }
        (Some(_), _) => None,
    }
}

fn as_json(request: &Request, rows: &[Row], ended: bool, lints: &[Lint]) -> Result<String> {
    let occurrences: Vec<_> = rows
        .iter()
        .map(|row| {
            let mut value = json::occurrence(&request.zone, row.occurrence);
            value["note"] = if row.mark.is_empty() { json!(null) } else { json!(row.mark) };
            value
        })
        .collect();
    Ok(json::pretty(&json!({
        "explain": request.explain()?,
        "zone": request.zone.name(),
        "tzdata": request.tzdata,
        "occurrences": occurrences,
        "ended": ended,
        "lints": json::lints(lints),
    })))
}
