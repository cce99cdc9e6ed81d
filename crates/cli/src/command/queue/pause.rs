//! `punctual queue pause` and `resume`.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use crate::answer::Answer;
use crate::fault;
use crate::session::{RequestIdArgs, Session, ask};

/// Stop handing out runs of a queue; runs in progress go on
#[derive(Debug, Args)]
#[command(after_help = PAUSE_EXAMPLES)]
pub struct PauseArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    request_id: RequestIdArgs,
}

const PAUSE_EXAMPLES: &str = "\
Examples:
  punctual queue pause mail";

/// Hand out runs of a queue again
#[derive(Debug, Args)]
#[command(after_help = RESUME_EXAMPLES)]
pub struct ResumeArgs {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    request_id: RequestIdArgs,
}

const RESUME_EXAMPLES: &str = "\
Examples:
  punctual queue resume mail";

pub async fn pause(session: &Session, args: &PauseArgs) -> Result<Answer> {
    let request = v1::PauseQueueRequest {
        namespace: session.namespace.clone(),
        queue: args.name.clone(),
        request_id: args.request_id.get(),
    };
    let response = ask!(session, queues.pause(request))?;
    session.show(&response, || format!("paused queue {}\n", fault::printable(&args.name)))
}

pub async fn resume(session: &Session, args: &ResumeArgs) -> Result<Answer> {
    let request = v1::ResumeQueueRequest {
        namespace: session.namespace.clone(),
        queue: args.name.clone(),
        request_id: args.request_id.get(),
    };
    let response = ask!(session, queues.resume(request))?;
    session.show(&response, || format!("resumed queue {}\n", fault::printable(&args.name)))
}
