//! `punctual schedule trigger`: one start now.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use super::{StoredInstants, changed};
use crate::answer::Answer;
use crate::session::{RequestIdArgs, Session, ask};
use crate::wire::payload;
use crate::wire::words::OverlapName;

/// Start one now, whatever the spec, a pause or the limits say
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TriggerArgs {
    /// Its name
    #[arg(value_name = "SCHEDULE_ID")]
    id: String,

    /// What to do while a run is in progress [default: the schedule's policy]
    #[arg(long, value_name = "POLICY")]
    overlap: Option<OverlapName>,

    /// Input of its own: JSON, @file, or - for stdin [default: the schedule's]
    #[arg(long, value_name = "JSON")]
    input: Option<String>,

    /// The nominal time [default: now]
    #[arg(long, value_name = "INSTANT")]
    nominal_time: Option<String>,

    #[command(flatten)]
    request_id: RequestIdArgs,
}

const EXAMPLES: &str = after_help!(
    "\
Examples:
  punctual schedule trigger report
  punctual schedule trigger report --input '{\"dry_run\": true}' --overlap allow_all"
);

pub async fn trigger(session: &Session, args: &TriggerArgs) -> Result<Answer> {
    let mut instants = StoredInstants::new(session, &args.id);
    let nominal_time = instants.read_optional("--nominal-time", args.nominal_time.as_ref()).await?;
    let notes = instants.notes;
    let request = v1::TriggerScheduleRequest {
        namespace: session.namespace.clone(),
        schedule_id: args.id.clone(),
        request_id: args.request_id.get(),
        overlap: args.overlap.map_or(0, i32::from),
        input: args.input.as_ref().map(|text| payload::from_option("--input", text)).transpose()?,
        nominal_time,
    };
    let response = ask!(session, schedules.trigger(request))?;
    let key = response.request_keys.first().map_or("", String::as_str);
    changed(session, &response, format!("triggered {} ({key})", args.id), notes)
}
