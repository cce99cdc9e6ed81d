//! The verbs about nodes: who shares the database, who drives what, and who should not any more.

use punctual_api::v1;
use punctual_store::{NodeSeen, Roster};

use crate::app::App;
use crate::convert::time::to_wire;
use crate::status::{Fault, NOT_FOUND};

pub(crate) async fn list(app: &App, _asked: v1::NodesRequest) -> Result<v1::NodesResponse, Fault> {
    let roster = app.engine.roster().await?;
    let shards = (0..app.engine.shards()).map(|shard| {
        let lease = roster.leases.iter().find(|lease| lease.shard.0 == shard);
        v1::Shard {
            shard,
            node_id: lease.map(|lease| lease.node.to_string()).unwrap_or_default(),
            epoch: lease.map_or(0, |lease| lease.epoch.0),
            lease_until: lease.map(|lease| to_wire(lease.expires_at)),
        }
    });
    let shards = shards.collect();
    let nodes = roster.nodes.iter().map(|seen| node(app, &roster, seen)).collect();
    Ok(v1::NodesResponse { nodes, shards, now: Some(to_wire(roster.now)) })
}

fn node(app: &App, roster: &Roster, seen: &NodeSeen) -> v1::Node {
    let shard_count = roster.leases.iter().filter(|lease| lease.node == seen.node).count();
    v1::Node {
        node_id: seen.node.to_string(),
        version: seen.version.clone(),
        started_at: Some(to_wire(seen.started_at)),
        alive_until: Some(to_wire(seen.expires_at)),
        alive: seen.expires_at > roster.now,
        draining: seen.draining,
        shard_count: u32::try_from(shard_count).unwrap_or(u32::MAX),
        answers: seen.node == *app.engine.node_id(),
    }
}

pub(crate) async fn drain(app: &App, asked: v1::DrainRequest) -> Result<v1::DrainResponse, Fault> {
    if !app.engine.is_shared() {
        let message = "one node has this database for itself: there is nobody to take its shards";
        return Err(Fault::new(&NOT_FOUND, message));
    }
    app.engine.drain_node(&asked.node_id, !asked.undo).await?;
    let roster = app.engine.roster().await?;
    let named = |seen: &&NodeSeen| {
        let full = &*seen.node.0;
        full == asked.node_id || full.split_once('#').is_some_and(|(name, _)| name == asked.node_id)
    };
    let nodes = roster.nodes.iter().filter(named).map(|seen| node(app, &roster, seen)).collect();
    Ok(v1::DrainResponse { nodes })
}
