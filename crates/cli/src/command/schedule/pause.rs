//! `punctual schedule pause` and `resume`.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use super::{StoredInstants, changed};
use crate::answer::Answer;
use crate::session::{RequestIdArgs, Session, ask};
use crate::wire::words::OnResumeName;

/// Pause a schedule: nothing starts but what is triggered
#[derive(Debug, Args)]
#[command(after_help = PAUSE_EXAMPLES)]
pub struct PauseArgs {
    /// Its name
    #[arg(value_name = "SCHEDULE_ID")]
    id: String,

    /// Why, for people
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Resume by itself at this instant
    #[arg(long, value_name = "INSTANT")]
    until: Option<String>,

    #[command(flatten)]
    request_id: RequestIdArgs,
}

const PAUSE_EXAMPLES: &str = after_help!(
    "\
Examples:
  punctual schedule pause report --note 'holidays'
  punctual schedule pause report --until 2027-01-04"
);

/// Resume a schedule
#[derive(Debug, Args)]
#[command(after_help = RESUME_EXAMPLES)]
pub struct ResumeArgs {
    /// Its name
    #[arg(value_name = "SCHEDULE_ID")]
    id: String,

    /// What becomes of the time spent paused [default: the schedule's policy]
    #[arg(long, value_name = "POLICY")]
    on_resume: Option<OnResumeName>,

    #[command(flatten)]
    request_id: RequestIdArgs,
}

const RESUME_EXAMPLES: &str = "\
Examples:
  punctual schedule resume report
  punctual schedule resume report --on-resume catch_up";

pub async fn pause(session: &Session, args: &PauseArgs) -> Result<Answer> {
    let mut instants = StoredInstants::new(session, &args.id);
    let until = instants.read_optional("--until", args.until.as_ref()).await?;
    let notes = instants.notes;
    let request = v1::PauseScheduleRequest {
        namespace: session.namespace.clone(),
        schedule_id: args.id.clone(),
        request_id: args.request_id.get(),
        note: args.note.clone().unwrap_or_default(),
        until,
    };
    let response = ask!(session, schedules.pause(request))?;
    changed(session, &response, format!("paused {}", args.id), notes)
}

pub async fn resume(session: &Session, args: &ResumeArgs) -> Result<Answer> {
    let request = v1::ResumeScheduleRequest {
        namespace: session.namespace.clone(),
        schedule_id: args.id.clone(),
        request_id: args.request_id.get(),
        on_resume: args.on_resume.map_or(0, i32::from),
    };
    let response = ask!(session, schedules.resume(request))?;
    changed(session, &response, format!("resumed {}", args.id), Vec::new())
}
