//! `punctual queue create`.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use super::settings::SettingArgs;
use crate::answer::Answer;
use crate::fault;
use crate::session::{RequestIdArgs, Session, ask};

/// Declare a queue; schedules may only name declared ones
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CreateArgs {
    /// Its name, unique in the namespace
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    settings: SettingArgs,

    /// Hand nothing out for now
    #[arg(long)]
    paused: bool,

    #[command(flatten)]
    request_id: RequestIdArgs,
}

const EXAMPLES: &str = "\
Examples:
  punctual queue create mail
  punctual queue create mail --concurrency 20 --rate 100/1s --description 'what we send'
  punctual queue create customers --key-concurrency 1 --key-rate 5/1m";

pub async fn create(session: &Session, args: &CreateArgs) -> Result<Answer> {
    let (queue, _) = args.settings.given(&args.name)?;
    let request = v1::CreateQueueRequest {
        namespace: session.namespace.clone(),
        queue: Some(v1::Queue { paused: args.paused, ..queue }),
        request_id: args.request_id.get(),
    };
    let response = ask!(session, queues.create(request))?;
    session.show(&response, || format!("declared queue {}\n", fault::printable(&args.name)))
}
