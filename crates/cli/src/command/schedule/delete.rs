//! `punctual schedule delete`.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use super::changed;
use crate::answer::Answer;
use crate::session::{RequestIdArgs, Session, ask};

/// Delete a schedule; runs in progress go on by themselves
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DeleteArgs {
    /// Its name
    #[arg(value_name = "SCHEDULE_ID")]
    id: String,

    #[command(flatten)]
    request_id: RequestIdArgs,
}

const EXAMPLES: &str = "\
Examples:
  punctual schedule delete report";

pub async fn delete(session: &Session, args: &DeleteArgs) -> Result<Answer> {
    let request = v1::DeleteScheduleRequest {
        namespace: session.namespace.clone(),
        schedule_id: args.id.clone(),
        request_id: args.request_id.get(),
    };
    let response = ask!(session, schedules.delete(request))?;
    changed(session, &response, format!("deleted {}", args.id), Vec::new())
}
