//! `punctual schedule update`: changes what its options speak of, and nothing else.

use anyhow::{Result, ensure};
use clap::Args;
use prost_types::FieldMask;
use punctual_api::v1;
use punctual_api::v1::action::Kind;

use super::create::refuse_the_past;
use super::{changed, description};
use crate::action_args::ActionKind;
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
  punctual schedule update report --http https://example.com/report --method PUT

Cron strings take the place of the old ones, --every of the old intervals, --header of all old headers, and so on. \
The word none takes a limit back. An action of another kind keeps input and attempts, and has the timeouts of its kind."
);

pub async fn update(session: &Session, args: &UpdateArgs) -> Result<Answer> {
    let mut given = args.wish.given()?;
    args.wish.action.kind()?;
    let fields = args.spec.fields();
    let mut notes = Vec::new();
    // What is stored says the zone of local times, and which kind of action options without a kind of their own mean.
    let stored = match fields.is_empty() && !args.wish.action.is_given() {
        true => v1::Schedule::default(),
        false => description(session, &args.id).await?.schedule.unwrap_or_default(),
    };
    let spec = if fields.is_empty() {
        None
    } else {
        let zone = stored.spec.as_ref().map(|spec| spec.zone.clone()).unwrap_or_default();
        let mut request = args.spec.part(&zone, session.now)?;
        refuse_the_past(&mut request, session.now)?;
        notes.append(&mut request.notes);
        given.mask.extend(fields.iter().map(|field| format!("spec.{field}")));
        Some(wire::spec::to_wire(&request.spec)?)
    };
    let (action, paths) = action(args, stored.action.as_ref())?;
    given.mask.splice(0..0, paths);
    ensure!(
        !given.mask.is_empty(),
        fault::new("there is nothing to change", "name what to change, as in --overlap buffer_one")
    );
    let changed_fields = given.mask.join(", ");
    let schedule = v1::Schedule {
        spec,
        action: Some(action),
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

/// What options say about the action, and the paths of that. Another kind takes the place of the stored one as a whole.
fn action(args: &UpdateArgs, stored: Option<&v1::Action>) -> Result<(v1::Action, Vec<String>)> {
    let wish = &args.wish.action;
    let (mut action, mut paths) = (v1::Action::default(), Vec::new());
    if wish.is_given() {
        let stored_kind = wire::action::kind(stored);
        let kind = wish.kind()?.or(stored_kind).unwrap_or(ActionKind::Queue);
        if stored_kind == Some(kind) {
            let given = wish.given(kind)?;
            (action.kind, paths) = (Some(given.kind), given.paths);
        } else {
            let mut whole = wish.whole(kind, &args.id)?;
            keep(&mut whole, stored);
            (action.kind, paths) = (Some(whole), vec![format!("action.{}", kind.path())]);
        }
    }
    if let Some(base) = &wish.run_id_base {
        action.run_id_base = base.clone();
        paths.push("action.run_id_base".to_owned());
    }
    Ok((action, paths))
}

/// Input and attempts stay when the kind changes, unless options speak of them.
fn keep(whole: &mut Kind, stored: Option<&v1::Action>) {
    let Some(mut stored) = stored.and_then(|action| action.kind.clone()) else { return };
    let (input, retry) = shared(&mut stored);
    let (input, retry) = (input.take(), retry.take());
    let (new_input, new_retry) = shared(whole);
    *new_input = new_input.take().or(input);
    *new_retry = new_retry.take().or(retry);
}

fn shared(kind: &mut Kind) -> (&mut Option<v1::Payload>, &mut Option<v1::RetryPolicy>) {
    match kind {
        Kind::Queue(queue) => (&mut queue.input, &mut queue.retry),
        Kind::Http(http) => (&mut http.input, &mut http.retry),
        Kind::Nexus(nexus) => (&mut nexus.input, &mut nexus.retry),
        Kind::Command(command) => (&mut command.input, &mut command.retry),
    }
}
