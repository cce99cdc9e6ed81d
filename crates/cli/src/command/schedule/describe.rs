//! `punctual schedule describe`: a page about one schedule.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use super::description;
use super::list::shown_lifecycle;
use crate::answer::Answer;
use crate::limits::PAGE_ROWS_MAX;
use crate::output::TableOrJson;
use crate::output::page::Page;
use crate::output::times::{Times, between, dash, length, or_dash};
use crate::session::{Session, ask};
use crate::wire::words::shown;
use crate::wire::{action, payload, spec, time};

/// Say everything about a schedule
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DescribeArgs {
    /// Its name
    #[arg(value_name = "SCHEDULE_ID")]
    id: String,
}

const EXAMPLES: &str = "\
Examples:
  punctual schedule describe report
  punctual schedule describe report --output json";

pub async fn describe(session: &Session, args: &DescribeArgs) -> Result<Answer> {
    let description = description(session, &args.id).await?;
    let runs = match session.output {
        TableOrJson::Table if !description.in_progress.is_empty() => runs(session, &args.id).await?,
        TableOrJson::Table | TableOrJson::Json => Vec::new(),
    };
    session.show(&description, || page(session, &description, &runs))
}

/// The latest runs: a schedule does not know how far those are that it has put on a queue.
async fn runs(session: &Session, id: &str) -> Result<Vec<v1::Run>> {
    let request = v1::ListRunsRequest {
        namespace: session.namespace.clone(),
        schedule_id: id.to_owned(),
        page_size: PAGE_ROWS_MAX,
        ..v1::ListRunsRequest::default()
    };
    Ok(ask!(session, runs.list(request))?.runs)
}

fn page(session: &Session, about: &v1::ScheduleDescription, runs: &[v1::Run]) -> String {
    let schedule = about.schedule.clone().unwrap_or_default();
    let zone = spec::zone(schedule.spec.as_ref());
    let times = Times { zone: &zone, now: session.now };
    let mut page = Page::default();
    page.fact("schedule", &about.schedule_id)
        .fact("namespace", &about.namespace)
        .alarm("quarantined", &about.quarantined_reason)
        .fact("state", state(&times, about, &schedule))
        .fact("when", &about.explanation)
        .fact("action", action::sentence(schedule.action.as_ref()))
        .fact("policies", policies(schedule.policies.as_ref()))
        .fact("remaining", schedule.remaining_actions.map(|count| count.to_string()).unwrap_or_default())
        .fact("revision", about.revision.to_string())
        .fact("created", times.both(about.created_at.as_ref()))
        .fact("counted", counters(about.counters.as_ref()))
        .fact("last result", about.last_result.as_ref().map(payload::text).unwrap_or_default())
        .alarm("last failure", about.last_failure.as_ref().map(failure).unwrap_or_default());
    let local = format!("next ({})", zone.name());
    page.section(&local, ["nominal", "due", "relative"], upcoming(&times, about));
    page.section(
        "in progress",
        ["run", "name", "state", "since", "attempt"],
        in_progress(&times, about, runs),
    );
    page.section("waiting", ["nominal", "phase", "overlap", "origin"], waiting(&times, about));
    page.section("backfills", ["id", "from", "through", "taken", "up to", "note"], backfills(&times, about));
    page.section("recent", ["run", "nominal", "outcome", "started", "took"], recent(&times, about));
    page.section("skips", ["nominal", "relative"], skips(&times, about));
    page.text()
}

fn state(times: &Times<'_>, about: &v1::ScheduleDescription, schedule: &v1::Schedule) -> String {
    let state = schedule.state.clone().unwrap_or_default();
    let mut text = shown_lifecycle(about.lifecycle(), state.paused);
    if about.closed_at.is_some() {
        text.push_str(&format!(" since {}", times.both(about.closed_at.as_ref())));
    } else if state.paused {
        if state.paused_at.is_some() {
            text.push_str(&format!(" since {}", times.both(state.paused_at.as_ref())));
        }
        if state.until.is_some() {
            text.push_str(&format!(", until {}", times.both(state.until.as_ref())));
        }
    }
    if state.paused && !state.note.is_empty() {
        text.push_str(&format!(": {}", state.note));
    }
    text
}

fn policies(policies: Option<&v1::Policies>) -> String {
    let policies = policies.copied().unwrap_or_default();
    let overlap = shown(policies.overlap().as_str_name());
    let mut words = vec![format!("overlap {}", if overlap.is_empty() { "skip" } else { &overlap })];
    if let Some(count) = policies.concurrency.filter(|count| *count != 1) {
        words.push(format!("concurrency {count}"));
    }
    if let Some(window) = time::duration_from_wire(policies.catchup_window.as_ref()) {
        words.push(format!("catchup window {}", length(window)));
    }
    if let Some(count) = policies.catchup_count {
        words.push(format!("catches up the latest {count}"));
    }
    if let Some(pace) = time::duration_from_wire(policies.catchup_pace.as_ref()) {
        words.push(format!("catchup pace {}", length(pace)));
    }
    if let Some(count) = policies.pause_after_failures {
        words.push(format!("pauses after {count} {}", plural(count.into(), "failure")));
    }
    if policies.on_resume() == v1::on_resume::Policy::CatchUp {
        words.push("catches up on resume".to_owned());
    }
    words.join(", ")
}

fn plural(count: u64, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

fn counters(counters: Option<&v1::Counters>) -> String {
    let v1::Counters { started, skipped, missed, dropped, paused, exhausted, superseded } =
        counters.copied().unwrap_or_default();
    let others = [
        (skipped, "skipped"),
        (missed, "missed"),
        (dropped, "dropped"),
        (paused, "paused"),
        (exhausted, "exhausted"),
        (superseded, "superseded"),
    ];
    let others =
        others.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!(", {count} {word}"));
    format!("{started} started{}", others.collect::<String>())
}

/// A failure on one line or more.
pub fn failure(failure: &v1::Failure) -> String {
    let kind = if failure.kind.is_empty() { String::new() } else { format!("{}: ", failure.kind) };
    format!("{kind}{}", failure.message)
}

fn upcoming(times: &Times<'_>, about: &v1::ScheduleDescription) -> Vec<Vec<String>> {
    let rows = about.upcoming.iter().map(|occurrence| {
        let (nominal, due) = (occurrence.nominal_time.as_ref(), occurrence.due_time.as_ref());
        let due_text = if nominal == due { dash() } else { times.local(due) };
        vec![times.local(nominal), due_text, times.relative(nominal)]
    });
    rows.collect()
}

fn in_progress(times: &Times<'_>, about: &v1::ScheduleDescription, runs: &[v1::Run]) -> Vec<Vec<String>> {
    let rows = about.in_progress.iter().map(|start| {
        let known = runs.iter().find(|run| !start.run_id.is_empty() && run.run_id == start.run_id);
        let word = known.map_or_else(|| shown(start.phase().as_str_name()), run_state);
        let state = match start.stop() {
            v1::stop::Kind::Unspecified => word,
            stop => format!("{word} ({} asked)", stop.as_str_name()),
        };
        let run = if start.run_id.is_empty() { dash() } else { start.run_id.clone() };
        let since = times.both(start.started_at.as_ref());
        let attempt = known.map_or(start.attempt, |run| run.attempt);
        vec![run, start.name.clone(), state, since, or_dash(attempt)]
    });
    rows.collect()
}

/// How far a run is; whether it was asked to stop, its schedule knows as well.
fn run_state(run: &v1::Run) -> String {
    shown(run.state().as_str_name())
}

fn waiting(times: &Times<'_>, about: &v1::ScheduleDescription) -> Vec<Vec<String>> {
    let rows = about.buffered.iter().map(|start| {
        vec![
            times.local(start.nominal_time.as_ref()),
            shown(start.phase().as_str_name()),
            shown(start.overlap().as_str_name()),
            shown(start.origin().as_str_name()),
        ]
    });
    rows.collect()
}

fn backfills(times: &Times<'_>, about: &v1::ScheduleDescription) -> Vec<Vec<String>> {
    let rows = about.backfills.iter().map(|progress| {
        let asked = progress.backfill.clone().unwrap_or_default();
        vec![
            progress.backfill_id.clone(),
            times.local(asked.from.as_ref()),
            times.local(asked.through.as_ref()),
            progress.taken_count.to_string(),
            times.local(progress.watermark.as_ref()),
            asked.note,
        ]
    });
    rows.collect()
}

fn recent(times: &Times<'_>, about: &v1::ScheduleDescription) -> Vec<Vec<String>> {
    let rows = about.recent.iter().rev().map(|run| {
        vec![
            if run.run_id.is_empty() { run.name.clone() } else { run.run_id.clone() },
            times.local(run.nominal_time.as_ref()),
            shown(run.outcome().as_str_name()),
            times.relative(run.started_at.as_ref()),
            between(run.started_at.as_ref(), run.completed_at.as_ref()),
        ]
    });
    rows.collect()
}

fn skips(times: &Times<'_>, about: &v1::ScheduleDescription) -> Vec<Vec<String>> {
    about.skips.iter().map(|skip| vec![times.local(Some(skip)), times.relative(Some(skip))]).collect()
}
