//! `punctual schedule list` and `count`.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;
use tokio::task::JoinSet;

use super::description;
use crate::action_args::ActionKind;
use crate::answer::Answer;
use crate::limits::{LIST_ROWS_DEFAULT, PAGE_ROWS_MAX, QUESTIONS_MAX};
use crate::output::table;
use crate::output::times::{Times, dash};
use crate::session::{Session, ask};
use crate::wire::action;
use crate::wire::words::{LifecycleName, shown};

/// List schedules by id
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub struct ListArgs {
    #[command(flatten)]
    filter: FilterArgs,

    /// List at most this many
    #[arg(long, value_name = "N", default_value_t = LIST_ROWS_DEFAULT, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// Leave out what needs a question of its own for each schedule: when and what in words, and the last outcome
    #[arg(long)]
    brief: bool,
}

const LIST_EXAMPLES: &str = "\
Examples:
  punctual schedule list
  punctual schedule list --prefix mail- --paused true
  punctual schedule list --state completed --limit 1000 --output json";

/// Count schedules
#[derive(Debug, Args)]
#[command(after_help = COUNT_EXAMPLES)]
pub struct CountArgs {
    #[command(flatten)]
    filter: FilterArgs,
}

const COUNT_EXAMPLES: &str = "\
Examples:
  punctual schedule count
  punctual schedule count --queue mail --paused true";

#[derive(Debug, Args)]
struct FilterArgs {
    /// Only those whose id begins like this
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,

    /// Only those that are paused, or that are not
    #[arg(long, value_name = "true|false")]
    paused: Option<bool>,

    /// Only those on this queue
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,

    /// Only those in this state [default: all but deleted ones]
    #[arg(long, value_name = "STATE")]
    state: Option<LifecycleName>,
}

pub async fn list(session: &Session, args: &ListArgs) -> Result<Answer> {
    let FilterArgs { prefix, paused, queue, state } = &args.filter;
    let mut found = v1::ListSchedulesResponse::default();
    loop {
        let missing = args.limit.saturating_sub(found.schedules.len() as u32);
        let request = v1::ListSchedulesRequest {
            namespace: session.namespace.clone(),
            page_size: missing.min(PAGE_ROWS_MAX),
            page_token: found.next_page_token.clone(),
            prefix: prefix.clone().unwrap_or_default(),
            paused: *paused,
            queue: queue.clone().unwrap_or_default(),
            state: state.map_or(0, i32::from),
        };
        let page = ask!(session, schedules.list(request))?;
        found.schedules.extend(page.schedules);
        found.next_page_token = page.next_page_token;
        if found.next_page_token.is_empty() || found.schedules.len() as u32 >= args.limit {
            break;
        }
    }
    let rows = match (session.output, args.brief) {
        (crate::output::TableOrJson::Table, false) => details(session, &found.schedules).await,
        _ => Vec::new(),
    };
    let mut answer = session.show(&found, || as_table(session, &found.schedules, &rows, args.brief))?;
    if !found.next_page_token.is_empty() {
        answer.notes.push(format!("note: there are more than {}, --limit lists more", args.limit));
    }
    Ok(answer)
}

/// What a list itself does not have.
#[derive(Clone, Debug)]
struct Detail {
    /// When, in words.
    when: String,
    /// How the last run ended.
    last: String,
    /// What it does, in words.
    does: String,
    /// Whether that is something else than a run on a queue.
    is_call: bool,
}

/// A list has no details, so each schedule is asked.
async fn details(session: &Session, schedules: &[v1::ScheduleSummary]) -> Vec<Detail> {
    let nothing = Detail { when: dash(), last: dash(), does: dash(), is_call: false };
    let mut rows = vec![nothing; schedules.len()];
    let mut questions = JoinSet::new();
    let mut waiting = schedules.iter().enumerate();
    loop {
        while questions.len() < QUESTIONS_MAX {
            let Some((index, summary)) = waiting.next() else { break };
            let (session, id) = (session.clone(), summary.schedule_id.clone());
            questions.spawn(async move { (index, description(&session, &id).await) });
        }
        match questions.join_next().await {
            Some(Ok((index, Ok(about)))) => {
                let wish = about.schedule.as_ref().and_then(|schedule| schedule.action.as_ref());
                rows[index] = Detail {
                    when: short(first_sentence(&about.explanation)),
                    last: about.recent.last().map_or_else(dash, |run| shown(run.outcome().as_str_name())),
                    does: short(&action::phrase(wish)),
                    is_call: action::kind(wish).is_some_and(|kind| kind != ActionKind::Queue),
                };
            }
            // A schedule that went away in between keeps its dashes.
            Some(_) => {}
            None => return rows,
        }
    }
}

fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.')
}

/// The beginning of what is long.
fn short(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

fn as_table(session: &Session, schedules: &[v1::ScheduleSummary], details: &[Detail], brief: bool) -> String {
    if schedules.is_empty() {
        return format!("no schedules in namespace {}\n", session.namespace);
    }
    let times = Times { zone: &session.zone, now: session.now };
    let next = format!("next ({})", session.zone.name());
    // Where all wait for workers, queue and handler say little; where some do something else, it matters.
    let is_mixed = details.iter().any(|detail| detail.is_call);
    let rows = schedules.iter().enumerate().map(|(index, schedule)| {
        let state = match schedule.quarantined {
            true => "quarantined".to_owned(),
            false => shown_lifecycle(schedule.lifecycle(), schedule.paused),
        };
        let detail = details.get(index);
        let mut row = vec![schedule.schedule_id.clone(), state];
        row.extend(detail.map(|detail| detail.when.clone()));
        row.push(times.both(schedule.next_time.as_ref()));
        row.push(schedule.running_count.to_string());
        row.extend(detail.map(|detail| detail.last.clone()));
        row.extend(detail.filter(|_| is_mixed).map(|detail| detail.does.clone()));
        row
    });
    let header: &[&str] = match (brief, is_mixed) {
        (true, _) => &["id", "state", &next, "running"],
        (false, false) => &["id", "state", "when", &next, "running", "last"],
        (false, true) => &["id", "state", "when", &next, "running", "last", "does"],
    };
    table::list(header.iter().copied(), rows)
}

/// A state in one word.
pub fn shown_lifecycle(lifecycle: v1::lifecycle::Word, paused: bool) -> String {
    match lifecycle {
        v1::lifecycle::Word::Open | v1::lifecycle::Word::Unspecified if paused => "paused".to_owned(),
        v1::lifecycle::Word::Unspecified => "open".to_owned(),
        lifecycle => lifecycle.as_str_name().to_owned(),
    }
}

pub async fn count(session: &Session, args: &CountArgs) -> Result<Answer> {
    let FilterArgs { prefix, paused, queue, state } = &args.filter;
    let request = v1::CountSchedulesRequest {
        namespace: session.namespace.clone(),
        prefix: prefix.clone().unwrap_or_default(),
        paused: *paused,
        queue: queue.clone().unwrap_or_default(),
        state: state.map_or(0, i32::from),
    };
    let response = ask!(session, schedules.count(request))?;
    session.show(&response, || format!("{}\n", response.count))
}
