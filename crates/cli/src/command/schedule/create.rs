//! `punctual schedule create`.

use anyhow::{Result, ensure};
use clap::Args;
use jiff::Timestamp;
use punctual_api::v1;

use super::changed;
use crate::action_args::ActionKind;
use crate::answer::Answer;
use crate::fault;
use crate::output::{local_text, relative};
use crate::request::Request;
use crate::schedule_args::ScheduleArgs;
use crate::session::{RequestIdArgs, Session, ask};
use crate::spec_args::SpecArgs;
use crate::wire;

/// Create a schedule
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CreateArgs {
    /// Its name, unique in the namespace
    #[arg(value_name = "SCHEDULE_ID")]
    id: String,

    #[command(flatten)]
    spec: SpecArgs,

    /// It has no times of its own: it starts when it is triggered
    #[arg(long)]
    manual: bool,

    #[command(flatten)]
    wish: ScheduleArgs,

    /// Create it paused, maybe with a note: --paused='until Monday'
    #[arg(long, value_name = "NOTE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    paused: Option<String>,

    /// Start one at once
    #[arg(long)]
    trigger_now: bool,

    #[command(flatten)]
    request_id: RequestIdArgs,
}

const EXAMPLES: &str = after_help!(
    "\
Examples:
  punctual schedule create report '0 9 * * MON-FRI' --zone Europe/Berlin
  punctual schedule create poll --every 30s --overlap buffer_one --input '{\"feed\": 7}'
  punctual schedule create cleanup '@daily' --jitter 30m --retry-attempts 5 --start-to-close 1h
  punctual schedule create deploy --manual --trigger-now
  punctual schedule create ping @hourly --http https://example.com/hook --header 'Authorization: Bearer x'
  punctual schedule create bill @monthly --nexus https://example.com/nexus --service billing --operation charge
  punctual schedule create tidy @daily --exec 'find exports -mtime +7 -delete' --cwd /srv

Without --http, --nexus or --exec its runs wait on a queue for a worker. \
A command runs on the server's machine, as the server's user, and only if the server was started with --allow-commands; --exec 'sh -c \"a | b\"' has a shell."
);

pub async fn create(session: &Session, args: &CreateArgs) -> Result<Answer> {
    let has_source = args.spec.has_source();
    ensure!(
        has_source || args.manual,
        fault::new(
            "there is nothing that could fire",
            "give a cron string in quotes, as in '0 9 * * MON-FRI', or --every, --at or --calendar; \
             or --manual to start it by hand only",
        )
    );
    ensure!(
        !(has_source && args.manual),
        fault::new("--manual means that it has no times of its own", "leave out --manual or the times")
    );
    let mut request = args.spec.part("", session.now)?;
    refuse_the_past(&mut request, session.now)?;
    let given = args.wish.given()?;
    let kind = args.wish.action.kind()?.unwrap_or(ActionKind::Queue);
    let action = v1::Action {
        kind: Some(args.wish.action.whole(kind, &args.id)?),
        run_id_base: args.wish.action.run_id_base.clone().unwrap_or_default(),
    };
    let state = args.paused.as_ref().map(|note| v1::ScheduleState {
        paused: true,
        note: note.clone(),
        ..v1::ScheduleState::default()
    });
    let patch = args
        .trigger_now
        .then(|| v1::InitialPatch { trigger: Some(v1::Trigger::default()), backfills: Vec::new() });
    let schedule = v1::Schedule {
        spec: Some(wire::spec::to_wire(&request.spec)?),
        action: Some(action),
        policies: Some(given.policies),
        state,
        remaining_actions: given.remaining_actions,
    };
    let wish = v1::CreateScheduleRequest {
        namespace: session.namespace.clone(),
        schedule_id: args.id.clone(),
        request_id: args.request_id.get(),
        schedule: Some(schedule),
        initial_patch: patch,
    };
    let response = ask!(session, schedules.create(wish))?;
    let line = format!("created {}: {}", args.id, summary(session, &request, args.paused.is_some())?);
    changed(session, &response, line, request.notes)
}

/// Times that are over never start. A spec that has no others is refused; else it is said.
pub fn refuse_the_past(request: &mut Request, now: Timestamp) -> Result<()> {
    let spec = &request.spec;
    let past: Vec<Timestamp> = spec.times.iter().copied().filter(|time| *time <= now).collect();
    let Some(first) = past.first() else { return Ok(()) };
    let others = !spec.crons.is_empty() || !spec.intervals.is_empty() || !spec.calendar_texts.is_empty();
    ensure!(
        others || past.len() < spec.times.len(),
        fault::new(
            format!("--at {first} is over, it is {now}"),
            "nothing starts for times before it was created; `schedule trigger` starts one now"
        )
    );
    request.notes.extend(past.iter().map(|time| format!("note: --at {time} is over and never starts")));
    Ok(())
}

fn summary(session: &Session, request: &Request, paused: bool) -> Result<String> {
    let words = request.explain()?;
    let next = match request.compiled.next(session.now) {
        _ if paused => "it is paused".to_owned(),
        Some(next) => {
            let instant = next.nominal_time;
            let local = local_text(request.zone.wall(instant));
            format!("next {local} ({})", relative::text(session.now, instant))
        }
        None => "it starts when it is triggered".to_owned(),
    };
    Ok(format!("{words}\n{next}"))
}
