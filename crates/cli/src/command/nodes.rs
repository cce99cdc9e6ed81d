//! `punctual nodes`: who shares the database.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use punctual_api::v1;

use crate::answer::Answer;
use crate::output::table;
use crate::output::times;
use crate::session::{ClientArgs, Session, ask};

/// List the nodes that share the database, and how many shards each drives
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct NodesCommand {
    #[command(flatten)]
    client: ClientArgs,
}

const EXAMPLES: &str = "\
Examples:
  punctual nodes
  punctual nodes --output json | jq -r '.nodes[] | select(.alive | not) | .node_id'

A node that is not heard of in time is gone: others take its shards and its runs, and strike it off.";

impl NodesCommand {
    pub async fn run(self, now: Timestamp) -> Result<Answer> {
        let session = &Session::open(&self.client, now).await?;
        let found = ask!(session, server.nodes(v1::NodesRequest {}))?;
        session.show(&found, || as_text(&found))
    }
}

fn as_text(found: &v1::NodesResponse) -> String {
    if found.nodes.is_empty() {
        return "one node has this database for itself\n".to_owned();
    }
    let rows = found.nodes.iter().map(|node| {
        let name = if node.answers { format!("{} *", node.node_id) } else { node.node_id.clone() };
        let started = times::between(node.started_at.as_ref(), found.now.as_ref());
        vec![name, state(node).to_owned(), node.shard_count.to_string(), node.version.clone(), started]
    });
    let free = found.shards.iter().filter(|shard| shard.node_id.is_empty()).count();
    let mut text = table::list(["node", "state", "shards", "version", "up"], rows);
    text.push_str("\n* answers\n");
    if free > 0 {
        text.push_str(&format!("{free} of {} shards are driven by nobody\n", found.shards.len()));
    }
    text
}

/// What a node is doing, in a word.
pub fn state(node: &v1::Node) -> &'static str {
    match node {
        node if !node.alive => "gone",
        node if node.draining && node.shard_count > 0 => "draining",
        node if node.draining => "drained",
        _ => "alive",
    }
}
