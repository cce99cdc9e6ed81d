//! `punctual schedule skip` and `unskip`: one coming occurrence that should not happen.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use super::{StoredInstants, changed};
use crate::answer::Answer;
use crate::session::{RequestIdArgs, Session, ask};

/// Mark one coming occurrence as not to happen
#[derive(Debug, Args)]
#[command(after_help = SKIP_EXAMPLES)]
pub struct SkipArgs {
    #[command(flatten)]
    occurrence: OccurrenceArgs,
}

const SKIP_EXAMPLES: &str = after_help!(
    "\
Examples:
  punctual schedule skip report 2026-12-24T09:00"
);

/// Take such a mark back
#[derive(Debug, Args)]
#[command(after_help = UNSKIP_EXAMPLES)]
pub struct UnskipArgs {
    #[command(flatten)]
    occurrence: OccurrenceArgs,
}

const UNSKIP_EXAMPLES: &str = after_help!(
    "\
Examples:
  punctual schedule unskip report 2026-12-24T09:00"
);

#[derive(Debug, Args)]
struct OccurrenceArgs {
    /// The schedule's name
    #[arg(value_name = "SCHEDULE_ID")]
    id: String,

    /// Its nominal time
    #[arg(value_name = "INSTANT")]
    time: String,

    #[command(flatten)]
    request_id: RequestIdArgs,
}

pub async fn skip(session: &Session, args: &SkipArgs) -> Result<Answer> {
    let OccurrenceArgs { id, time, request_id } = &args.occurrence;
    let mut instants = StoredInstants::new(session, id);
    let request = v1::SkipOccurrenceRequest {
        namespace: session.namespace.clone(),
        schedule_id: id.clone(),
        request_id: request_id.get(),
        nominal_time: Some(instants.read("INSTANT", time).await?),
    };
    let response = ask!(session, schedules.skip(request))?;
    changed(session, &response, format!("{id} will not start at {time}"), instants.notes)
}

pub async fn unskip(session: &Session, args: &UnskipArgs) -> Result<Answer> {
    let OccurrenceArgs { id, time, request_id } = &args.occurrence;
    let mut instants = StoredInstants::new(session, id);
    let request = v1::UnskipOccurrenceRequest {
        namespace: session.namespace.clone(),
        schedule_id: id.clone(),
        request_id: request_id.get(),
        nominal_time: Some(instants.read("INSTANT", time).await?),
    };
    let response = ask!(session, schedules.unskip(request))?;
    changed(session, &response, format!("{id} will start at {time} after all"), instants.notes)
}
