//! `punctual node`: the verbs about one node.

use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use punctual_api::v1;

use crate::answer::Answer;
use crate::command::nodes::state;
use crate::exit_code::ExitCode;
use crate::fault;
use crate::session::{ClientArgs, Session, ask};

/// Take shards from a node before it is stopped, or give it some again
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct NodeCommand {
    #[command(flatten)]
    client: ClientArgs,

    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  punctual node drain a
  punctual node resume a

A server that is stopped in order gives its shards away by itself. Draining is for taking a node out while it still
answers: it goes on serving requests, drives nothing, and says that it is not ready.";

#[derive(Debug, Subcommand)]
enum Verb {
    Drain(DrainArgs),
    Resume(ResumeArgs),
}

/// Have a node give its shards to others, and wait until it has none
#[derive(Debug, Args)]
struct DrainArgs {
    /// Its name; the part before `#` means all processes of that name
    node: String,

    /// Do not wait
    #[arg(long)]
    no_wait: bool,
}

/// Let a node take shards again
#[derive(Debug, Args)]
struct ResumeArgs {
    /// Its name; the part before `#` means all processes of that name
    node: String,
}

/// How often the shards are counted while they move.
const PAUSE: Duration = Duration::from_millis(100);

/// How long to wait for shards to move.
const WAIT_MAX: Duration = Duration::from_secs(30);

impl NodeCommand {
    pub async fn run(self, now: Timestamp) -> Result<Answer> {
        let session = &Session::open(&self.client, now).await?;
        match self.verb {
            Verb::Drain(args) => drain(session, &args).await,
            Verb::Resume(args) => {
                let asked = v1::DrainRequest { node_id: args.node, undo: true, ..Default::default() };
                let answer = ask!(session, server.drain(asked))?;
                session.show(&answer, || as_text(&answer))
            }
        }
    }
}

async fn drain(session: &Session, args: &DrainArgs) -> Result<Answer> {
    let asked = v1::DrainRequest { node_id: args.node.clone(), ..Default::default() };
    let mut answer = ask!(session, server.drain(asked))?;
    let begun = Instant::now();
    while !args.no_wait && answer.nodes.iter().any(|node| node.alive && node.shard_count > 0) {
        if begun.elapsed() > WAIT_MAX {
            return Err(fault::ending(
                ExitCode::Failed,
                format!("shards are still with {}", as_text(&answer).trim_end()),
                "is there another node that is alive and not draining? see punctual nodes",
            ));
        }
        tokio::time::sleep(PAUSE).await;
        let found = ask!(session, server.nodes(v1::NodesRequest {}))?;
        let asked = |node: &v1::Node| answer.nodes.iter().any(|other| other.node_id == node.node_id);
        answer = v1::DrainResponse { nodes: found.nodes.into_iter().filter(asked).collect() };
    }
    session.show(&answer, || as_text(&answer))
}

fn as_text(answer: &v1::DrainResponse) -> String {
    let line =
        |node: &v1::Node| format!("{}: {}, drives {} shards\n", node.node_id, state(node), node.shard_count);
    answer.nodes.iter().map(line).collect()
}
