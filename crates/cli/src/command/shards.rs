//! `punctual shards`: who drives which slice of the schedules.

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use punctual_api::v1;

use crate::answer::Answer;
use crate::output::table;
use crate::output::times::dash;
use crate::session::{ClientArgs, Session, ask};

/// List the shards, and the node that drives each
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ShardsCommand {
    #[command(flatten)]
    client: ClientArgs,
}

const EXAMPLES: &str = "\
Examples:
  punctual shards
  punctual shards --output json | jq '.shards[] | select(.node_id == \"\")'

The epoch counts the owners of a shard: a node that lost it and does not know can write nothing.";

impl ShardsCommand {
    pub async fn run(self, now: Timestamp) -> Result<Answer> {
        let session = &Session::open(&self.client, now).await?;
        let found = ask!(session, server.nodes(v1::NodesRequest {}))?;
        session.show(&found, || as_text(&found.shards))
    }
}

fn as_text(shards: &[v1::Shard]) -> String {
    let rows = shards.iter().map(|shard| {
        let node = if shard.node_id.is_empty() { dash() } else { shard.node_id.clone() };
        vec![shard.shard.to_string(), node, shard.epoch.to_string()]
    });
    table::list(["shard", "node", "epoch"], rows)
}
