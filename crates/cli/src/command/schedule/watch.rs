//! `punctual schedule watch`: what happens, as it happens.

use anyhow::Result;
use clap::Args;
use punctual_api::{json, v1};
use tonic::Code;

use super::description;
use crate::answer::{self, Answer};
use crate::exit_code::ExitCode;
use crate::output::{TableOrJson, local_text};
use crate::session::{Session, ask};
use crate::signals;
use crate::wire::time;
use crate::wire::words::shown;

/// Tell what happens as it happens, until Ctrl-C
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct WatchArgs {
    /// The schedule's name [default: all schedules of the namespace]
    #[arg(value_name = "SCHEDULE_ID")]
    id: Option<String>,

    /// Stop after this many events
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

const EXAMPLES: &str = "\
Examples:
  punctual schedule watch
  punctual schedule watch report --count 1
  punctual schedule watch --output json | jq .kind";

pub async fn watch(session: &Session, args: &WatchArgs) -> Result<Answer> {
    let stop = signals::first();
    let request = v1::WatchScheduleRequest {
        namespace: session.namespace.clone(),
        schedule_id: args.id.clone().unwrap_or_default(),
    };
    if let Some(id) = &args.id {
        // Nothing would ever happen to a schedule that is not there.
        description(session, id).await?;
    }
    let mut events = ask!(session, schedules.watch(request))?;
    if let TableOrJson::Table = session.output {
        let what = args.id.as_deref().unwrap_or("all schedules");
        answer::complain(&[format!("watching {what} at {}, Ctrl-C ends it", session.address)]);
    }
    let mut seen = 0;
    tokio::pin!(stop);
    while args.count.is_none_or(|count| seen < count) {
        let event = tokio::select! {
            event = events.message() => event,
            () = &mut stop => break,
        };
        match event {
            Ok(Some(event)) => {
                if !answer::say(&line(session, &event)?)? {
                    break;
                }
            }
            Ok(None) => return Err(session.ended("the server ended the watch")),
            Err(status) if status.code() == Code::Unavailable || status.code() == Code::Unknown => {
                return Err(session.ended(status.message()));
            }
            Err(status) => return Err(session.refusal(&status)),
        }
        seen += 1;
    }
    Ok(Answer::silent(ExitCode::Answered))
}

fn line(session: &Session, event: &v1::WatchEvent) -> Result<String> {
    match session.output {
        TableOrJson::Json => Ok(json::to_json(event)?),
        TableOrJson::Table => {
            let instant = time::from_wire(event.time.as_ref()).unwrap_or(session.now);
            let text = match event.text.is_empty() {
                true => shown(event.kind().as_str_name()),
                false => event.text.replace('\n', " "),
            };
            let id = event.schedule_id.replace('\n', " ");
            Ok(format!("{}  {id:<16}  {text}", local_text(session.zone.wall(instant))))
        }
    }
}
