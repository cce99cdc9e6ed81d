//! `punctual schedule`: the verbs of schedules.

use anyhow::Result;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use punctual_api::v1;

use crate::answer::Answer;
use crate::instant::InstantReader;
use crate::local_zone::LocalZone;
use crate::session::{ClientArgs, Session, ask};
use crate::wire::{spec, time};

mod create;
mod update;
mod describe;
mod list;
mod pause;
mod trigger;
mod backfill;
mod skip;
mod delete;
mod preview;
mod why;
mod watch;

/// Create, look at and change schedules
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ScheduleCommand {
    #[command(flatten)]
    client: ClientArgs,

    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  punctual schedule create report '0 9 * * MON-FRI' --zone Europe/Berlin
  punctual schedule list
  punctual schedule describe report
  punctual schedule why report 2026-03-30T09:00
  punctual schedule watch";

#[derive(Debug, Subcommand)]
enum Verb {
    Create(Box<create::CreateArgs>),
    Describe(describe::DescribeArgs),
    List(list::ListArgs),
    Count(list::CountArgs),
    Update(Box<update::UpdateArgs>),
    Pause(pause::PauseArgs),
    Resume(pause::ResumeArgs),
    Trigger(trigger::TriggerArgs),
    Backfill(backfill::BackfillArgs),
    CancelBackfill(backfill::CancelBackfillArgs),
    Skip(skip::SkipArgs),
    Unskip(skip::UnskipArgs),
    Delete(delete::DeleteArgs),
    Preview(preview::StoredPreviewArgs),
    Why(why::WhyArgs),
    Ledger(why::LedgerArgs),
    Watch(watch::WatchArgs),
}

impl ScheduleCommand {
    pub async fn run(self, now: Timestamp) -> Result<Answer> {
        let session = &Session::open(&self.client, now).await?;
        match self.verb {
            Verb::Create(args) => create::create(session, &args).await,
            Verb::Describe(args) => describe::describe(session, &args).await,
            Verb::List(args) => list::list(session, &args).await,
            Verb::Count(args) => list::count(session, &args).await,
            Verb::Update(args) => update::update(session, &args).await,
            Verb::Pause(args) => pause::pause(session, &args).await,
            Verb::Resume(args) => pause::resume(session, &args).await,
            Verb::Trigger(args) => trigger::trigger(session, &args).await,
            Verb::Backfill(args) => backfill::backfill(session, &args).await,
            Verb::CancelBackfill(args) => backfill::cancel(session, &args).await,
            Verb::Skip(args) => skip::skip(session, &args).await,
            Verb::Unskip(args) => skip::unskip(session, &args).await,
            Verb::Delete(args) => delete::delete(session, &args).await,
            Verb::Preview(args) => preview::preview(session, &args).await,
            Verb::Why(args) => why::why(session, &args).await,
            Verb::Ledger(args) => why::ledger(session, &args).await,
            Verb::Watch(args) => watch::watch(session, &args).await,
        }
    }
}

/// Everything that the server knows about a schedule.
async fn description(session: &Session, id: &str) -> Result<v1::ScheduleDescription> {
    let (namespace, schedule_id) = (session.namespace.clone(), id.to_owned());
    let request = v1::DescribeScheduleRequest { namespace, schedule_id };
    Ok(ask!(session, schedules.describe(request))?.description.unwrap_or_default())
}

/// The zone of a stored schedule: instants are read and shown in it.
async fn zone_of(session: &Session, id: &str) -> Result<LocalZone> {
    let description = description(session, id).await?;
    Ok(spec::zone(description.schedule.as_ref().and_then(|schedule| schedule.spec.as_ref())))
}

/// Reads instants in the zone of a schedule. It is asked for only where a text is local.
struct StoredInstants<'a> {
    session: &'a Session,
    id: &'a str,
    zone: Option<LocalZone>,
    notes: Vec<String>,
}

impl<'a> StoredInstants<'a> {
    fn new(session: &'a Session, id: &'a str) -> StoredInstants<'a> {
        StoredInstants { session, id, zone: None, notes: Vec::new() }
    }

    async fn read(&mut self, option: &str, text: &str) -> Result<prost_types::Timestamp> {
        if let Ok(instant) = text.trim().parse::<Timestamp>() {
            return Ok(time::to_wire(instant));
        }
        let zone = match self.zone.take() {
            Some(zone) => zone,
            None => zone_of(self.session, self.id).await?,
        };
        let mut reader = InstantReader::new(self.session.now, &zone);
        let instant = reader.read(option, text)?;
        self.notes.append(&mut reader.notes);
        self.zone = Some(zone);
        Ok(time::to_wire(instant))
    }

    async fn read_optional(
        &mut self,
        option: &str,
        text: Option<&String>,
    ) -> Result<Option<prost_types::Timestamp>> {
        match text {
            Some(text) => self.read(option, text).await.map(Some),
            None => Ok(None),
        }
    }
}

/// What a change did, in one line, or as JSON.
fn changed(
    session: &Session,
    response: &v1::ChangeResponse,
    line: String,
    notes: Vec<String>,
) -> Result<Answer> {
    let mut answer = session.show(response, || format!("{}\n", crate::fault::printable(&line)))?;
    answer.notes = notes;
    Ok(answer)
}
