//! `punctual run`: the verbs of runs.

use anyhow::Result;
use clap::{Args, Subcommand};
use jiff::Timestamp;

use crate::answer::Answer;
use crate::session::{ClientArgs, Session};

mod enqueue;
mod list;
mod describe;
mod stop;
mod retry;
mod logs;
mod wait;

/// Enqueue runs, look at them, stop them, try them again, read their logs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RunCommand {
    #[command(flatten)]
    client: ClientArgs,

    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  punctual run enqueue --queue mail --handler send --input '{\"customer\": 7}' --wait
  punctual run list --schedule report
  punctual run describe 42
  punctual run logs 42
  punctual run cancel 42
  punctual run retry 42";

#[derive(Debug, Subcommand)]
enum Verb {
    Enqueue(Box<enqueue::EnqueueArgs>),
    List(list::ListArgs),
    Describe(describe::DescribeArgs),
    Cancel(stop::CancelArgs),
    Terminate(stop::TerminateArgs),
    Retry(retry::RetryArgs),
    Logs(logs::LogsArgs),
}

impl RunCommand {
    pub async fn run(self, now: Timestamp) -> Result<Answer> {
        let session = &Session::open(&self.client, now).await?;
        match self.verb {
            Verb::Enqueue(args) => enqueue::enqueue(session, &args).await,
            Verb::List(args) => list::list(session, &args).await,
            Verb::Describe(args) => describe::describe(session, &args).await,
            Verb::Cancel(args) => stop::cancel(session, &args).await,
            Verb::Terminate(args) => stop::terminate(session, &args).await,
            Verb::Retry(args) => retry::retry(session, &args).await,
            Verb::Logs(args) => logs::logs(session, &args).await,
        }
    }
}
