//! `punctual top`: what a server does, as it does it.

use std::io::{self, IsTerminal};

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use punctual_api::v1;

use crate::answer::Answer;
use crate::output::TableOrJson;
use crate::session::{ClientArgs, Session, ask};

mod history;
mod rows;
mod once;
mod view;
mod screen;

/// Show what a server does, as it does it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TopCommand {
    #[command(flatten)]
    client: ClientArgs,

    /// Print one sample and end, as where stdout is no terminal
    #[arg(long)]
    once: bool,
}

const EXAMPLES: &str = "\
Examples:
  punctual top
  punctual top --once
  punctual top --output json | jq .running_count

Keys: q or Ctrl-C ends it, p holds the picture, Tab chooses a table, the arrows scroll it.

It asks once a second, and goes on asking while the server does not answer. \
Numbers are of the node that answers, queues of the whole database.";

impl TopCommand {
    pub async fn run(self, now: Timestamp) -> Result<Answer> {
        let lazy = Session::open_lazily(&self.client, now)?;
        let for_people = matches!(lazy.output, TableOrJson::Table);
        if for_people && !self.once && io::stdout().is_terminal() {
            return screen::live(lazy).await;
        }
        let session = &Session::open(&self.client, now).await?;
        let info = ask!(session, server.info(v1::InfoRequest {}))?;
        let stats = ask!(session, server.stats(v1::StatsRequest {}))?;
        session.show(&stats, || once::page(session, &info, stats.clone()))
    }
}
