//! `punctual diff`: which occurrences come, go and move when one cron string takes the place of another.

use anyhow::Result;
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use punctual_spec::{Change, Occurrence};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::limits::{COMPARED_MAX, ROWS_MAX};
use crate::local_zone::LocalZone;
use crate::output::{self, TableOrJson, json, table};
use crate::request::Request;
use crate::spec_args::SpecOptions;

/// Compare the occurrences of two cron strings
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DiffArgs {
    /// The cron string as it is, in quotes
    #[arg(value_name = "OLD")]
    old: String,

    /// The cron string as it will be, in quotes; local times are shown and read in its zone
    #[arg(value_name = "NEW")]
    new: String,

    #[command(flatten)]
    options: SpecOptions,

    /// Compare in (from, to]: after this instant, by default now
    #[arg(long, value_name = "INSTANT")]
    from: Option<String>,

    /// Compare in (from, to]: up to this instant, by default 30 days after --from
    #[arg(long, value_name = "INSTANT")]
    to: Option<String>,

    /// List the occurrences that both have, too
    #[arg(long)]
    all: bool,

    /// How to print
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: TableOrJson,
}

const EXAMPLES: &str = after_help!(
    "\
In the table + is added, - is removed, ~ is moved to another due time, = is kept.

Examples:
  punctual diff '0 9 * * *' '0 9 * * MON-FRI' --zone Europe/Berlin
  punctual diff '0 9 * * *' '0 9,17 * * *' --from 2026-03-01 --to 2026-03-08 --all
  punctual diff 'CRON_TZ=UTC 0 9 * * *' 'CRON_TZ=Europe/Berlin 0 9 * * *'
  punctual diff '@hourly' '*/30 * * * *' --jitter 10m --output json"
);

const RANGE_DEFAULT: SignedDuration = SignedDuration::from_hours(30 * 24);

/// How many occurrences fared how.
#[derive(Default)]
struct Summary {
    added: usize,
    removed: usize,
    moved: usize,
    kept: usize,
}

struct Comparison {
    after: Timestamp,
    through: Timestamp,
    /// What to list, at most [`ROWS_MAX`].
    changes: Vec<Change>,
    summary: Summary,
    /// What a bound left out.
    notes: Vec<String>,
}

pub fn diff(args: &DiffArgs, now: Timestamp) -> Result<Answer> {
    let old = args.options.request(std::slice::from_ref(&args.old), now)?;
    let mut new = args.options.request(std::slice::from_ref(&args.new), now)?;
    let window = new.window(now, args.from.as_ref(), args.to.as_ref())?;
    let default = window.after.checked_add(RANGE_DEFAULT).unwrap_or(Timestamp::MAX);
    let through = window.through.unwrap_or(default);
    let comparison = compare(&old, &new, window.after, through, args.all);

    let mut notes = old.notes.clone();
    notes.extend(new.notes.iter().filter(|note| !old.notes.contains(note)).cloned());
    notes.extend(comparison.notes.iter().cloned());
    let text = match args.output {
        TableOrJson::Table => as_table(&old, &new, &comparison)?,
        TableOrJson::Json => as_json(&old, &new, &comparison)?,
    };
    Ok(Answer::new(text, notes))
}

fn compare(old: &Request, new: &Request, after: Timestamp, through: Timestamp, all: bool) -> Comparison {
    let mut changes = punctual_spec::diff(&old.compiled, &new.compiled, after, through);
    let (mut listed, mut cut) = (Vec::new(), false);
    let mut summary = Summary::default();
    for change in changes.by_ref().take(COMPARED_MAX) {
        match change {
            Change::Added(_) => summary.added += 1,
            Change::Removed(_) => summary.removed += 1,
            Change::Moved { .. } => summary.moved += 1,
            Change::Kept(_) => summary.kept += 1,
        }
        if !all && matches!(change, Change::Kept(_)) {
            continue;
        }
        if listed.len() < ROWS_MAX {
            listed.push(change);
        } else {
            cut = true;
        }
    }
    let mut notes = Vec::new();
    if cut {
        notes.push(format!("note: only the first {ROWS_MAX} are listed"));
    }
    if let Some(next) = changes.next() {
        let at = occurrence(next).nominal_time;
        notes.push(format!("note: compared {COMPARED_MAX} occurrences and stopped before {at}"));
    }
    Comparison { after, through, changes: listed, summary, notes }
}

/// The occurrence as it will be, or as it was if it will not be.
fn occurrence(change: Change) -> Occurrence {
    match change {
        Change::Added(occurrence) | Change::Removed(occurrence) | Change::Kept(occurrence) => occurrence,
        Change::Moved { to, .. } => to,
    }
}

fn as_table(old: &Request, new: &Request, comparison: &Comparison) -> Result<String> {
    let Comparison { after, through, changes, summary, .. } = comparison;
    let mut text = format!("old: {}\nnew: {}\nin ({after}, {through}]\n\n", old.explain()?, new.explain()?);
    if !changes.is_empty() {
        let zone = &new.zone;
        let local = format!("local ({})", zone.name());
        let due = new.has_jitter().then_some("due");
        let header = ["", &local, "UTC", "offset"].into_iter().chain(due);
        let body = changes.iter().map(|change| {
            let nominal_time = occurrence(*change).nominal_time;
            let due = new.has_jitter().then(|| due_text(zone, *change));
            let first = [
                sign(*change).to_owned(),
                output::local_text(zone.wall(nominal_time)),
                nominal_time.to_string(),
                output::offset_text(zone.offset(nominal_time)),
            ];
            first.into_iter().chain(due).collect()
        });
        text.push_str(&table::table(header, body));
        text.push('\n');
    }
    let Summary { added, removed, moved, kept } = summary;
    text.push_str(&format!("{added} added, {removed} removed, {moved} moved, {kept} kept\n"));
    Ok(text)
}

fn sign(change: Change) -> &'static str {
    match change {
        Change::Added(_) => "+",
        Change::Removed(_) => "-",
        Change::Moved { .. } => "~",
        Change::Kept(_) => "=",
    }
}

fn due_text(zone: &LocalZone, change: Change) -> String {
    let text = |occurrence: Occurrence| output::due_text(zone.wall(occurrence.due_time));
    match change {
        Change::Moved { from, to } => format!("{} -> {}", text(from), text(to)),
        Change::Added(occurrence) | Change::Removed(occurrence) | Change::Kept(occurrence) => {
            text(occurrence)
        }
    }
}

fn as_json(old: &Request, new: &Request, comparison: &Comparison) -> Result<String> {
    let changes: Vec<Value> =
        comparison.changes.iter().map(|change| change_json(&new.zone, *change)).collect();
    let Summary { added, removed, moved, kept } = comparison.summary;
    Ok(json::pretty(&json!({
        "old": old.explain()?,
        "new": new.explain()?,
        "zone": new.zone.name(),
        "tzdata": new.tzdata,
        "from": comparison.after.to_string(),
        "to": comparison.through.to_string(),
        "changes": changes,
        "complete": comparison.notes.is_empty(),
        "summary": { "added": added, "removed": removed, "moved": moved, "kept": kept },
    })))
}

fn change_json(zone: &LocalZone, change: Change) -> Value {
    let mut value = json::occurrence(zone, occurrence(change));
    value["change"] = json!(match change {
        Change::Added(_) => "added",
        Change::Removed(_) => "removed",
        Change::Moved { .. } => "moved",
        Change::Kept(_) => "kept",
    });
    if let Change::Moved { from, .. } = change {
        value["due_time_before"] = json!(from.due_time.to_string());
    }
    value
}
