//! `punctual schedule update`: changes what its options speak of, and nothing else.

use anyhow::{Result, ensure};
use clap::Args;
use prost_types::FieldMask;
use punctual_api::v1;

use super::{changed, description};
use crate::answer::Answer;
use crate::fault;
use crate::schedule_args::ScheduleArgs;
use crate::session::{RequestIdArgs, Session, ask};
use crate::spec_args::SpecArgs;
use crate::wire;

/// Change a schedule from now on; what no option speaks of stays as it is
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct UpdateArgs {
    /// Its name
    #[arg(value_name = "SCHEDULE_ID")]
    id: String,

    #[command(flatten)]
    spec: SpecArgs,

    #[command(flatten)]
    wish: ScheduleArgs,

    /// Refuse the change if the schedule is at another revision than this
    #[arg(long, value_name = "N")]
    expected_revision: Option<u64>,

    #[command(flatten)]
    request_id: RequestIdArgs,
}

const EXAMPLES: &str = after_help!(
    "\
Examples:
  punctual schedule update report '0 10 * * MON-FRI'
  punctual schedule update report --zone Asia/Tokyo --jitter 5m
  punctual schedule update report --overlap buffer_one --expected-revision 3
  punctual schedule update report --pause-after-failures none

Cron strings take the place of the old ones, --every of the old intervals, and so on. The word none takes a limit back."
);

pub async fn update(session: &Session, args: &UpdateArgs) -> Result<Answer> {
    let mut given = args.wish.given()?;
    let fields = args.spec.fields();
    let mut notes = Vec::new();
    let spec = if fields.is_empty() {
        None
    } else {
        // Local times are those of the schedule's zone, unless that changes too.
        let stored = description(session, &args.id).await?.schedule.and_then(|schedule| schedule.spec);
        let zone = stored.as_ref().map(|spec| spec.zone.clone()).unwrap_or_default();
        let mut request = args.spec.part(&zone, session.now)?;
        notes.append(&mut request.notes);
        given.mask.extend(fields.iter().map(|field| format!("spec.{field}")));
        Some(wire::spec::to_wire(&request.spec)?)
    };
    ensure!(
        !given.mask.is_empty(),
        fault::new("there is nothing to change", "name what to change, as in --overlap buffer_one")
    );
    let changed_fields = given.mask.join(", ");
    let schedule = v1::Schedule {
        spec,
        action: Some(given.action),
        policies: Some(given.policies),
        state: None,
        remaining_actions: given.remaining_actions,
    };
    let request = v1::UpdateScheduleRequest {
        namespace: session.namespace.clone(),
        schedule_id: args.id.clone(),
        request_id: args.request_id.get(),
        schedule: Some(schedule),
        update_mask: Some(FieldMask { paths: given.mask }),
        expected_revision: args.expected_revision,
    };
    let response = ask!(session, schedules.update(request))?;
    let line = format!("updated {} to revision {}: {changed_fields}", args.id, response.revision);
    changed(session, &response, line, notes)
}
