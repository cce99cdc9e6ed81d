//! `punctual queue`: the verbs of queues, where runs wait for workers.

use anyhow::Result;
use clap::{Args, Subcommand};
use jiff::Timestamp;

use crate::answer::Answer;
use crate::session::{ClientArgs, Session};

mod settings;
mod create;
mod update;
mod pause;
mod list;
mod describe;
mod purge;
mod retry;

pub use list::{limits, state};

/// Declare queues, limit them, pause them and look at them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct QueueCommand {
    #[command(flatten)]
    client: ClientArgs,

    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  punctual queue create mail --concurrency 20 --rate 100/1s
  punctual queue update mail --no-rate
  punctual queue describe mail
  punctual queue pause mail
  punctual queue retry mail";

#[derive(Debug, Subcommand)]
enum Verb {
    Create(create::CreateArgs),
    Update(update::UpdateArgs),
    Pause(pause::PauseArgs),
    Resume(pause::ResumeArgs),
    List(list::ListArgs),
    Describe(describe::DescribeArgs),
    Purge(purge::PurgeArgs),
    Retry(retry::RetryArgs),
}

impl QueueCommand {
    pub async fn run(self, now: Timestamp) -> Result<Answer> {
        let session = &Session::open(&self.client, now).await?;
        match self.verb {
            Verb::Create(args) => create::create(session, &args).await,
            Verb::Update(args) => update::update(session, &args).await,
            Verb::Pause(args) => pause::pause(session, &args).await,
            Verb::Resume(args) => pause::resume(session, &args).await,
            Verb::List(args) => list::list(session, &args).await,
            Verb::Describe(args) => describe::describe(session, &args).await,
            Verb::Purge(args) => purge::purge(session, &args).await,
            Verb::Retry(args) => retry::retry(session, &args).await,
        }
    }
}
