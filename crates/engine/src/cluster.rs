//! Nodes that share a database: who one is among them, what time it is for all, and who drives what.

mod clock;
mod membership;
mod plan;

pub(crate) use clock::DatabaseClock;
pub use membership::{Membership, Orphans, Turn};

use jiff::Timestamp;
use punctual_store::{Beat, Bytes, Keeper, NodeId, Store, StoreError};

use crate::config::EngineConfig;

/// This process among those that share a database.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Its name, unlike that of any other process that ever was.
    pub(crate) id: NodeId,
    /// The number under which it looks after runs.
    pub(crate) keeper: Keeper,
    /// Whether there may be others.
    pub(crate) shared: bool,
    started_at: Timestamp,
}

impl Node {
    /// Draws a number that nobody else has; where nobody shares, none is needed.
    pub(crate) async fn new(
        store: &dyn Store,
        config: &EngineConfig,
        started_at: Timestamp,
    ) -> Result<Node, StoreError> {
        let shared = store.is_shared();
        if !shared {
            let id = NodeId(config.node.as_str().into());
            return Ok(Node { id, keeper: Keeper::default(), shared, started_at });
        }
        let keeper = Keeper(store.reserve(1).await?);
        let id = NodeId(format!("{}#{keeper}", config.node).into());
        Ok(Node { id, keeper, shared, started_at })
    }

    /// What it says to tell that it is alive.
    pub(crate) fn beat(&self, config: &EngineConfig, report: Option<Bytes>) -> Beat {
        Beat {
            node: self.id.clone(),
            keeper: self.keeper,
            started_at: self.started_at,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ttl: config.shard_lease,
            report,
        }
    }
}

/// Whether a person means this node: by its full name, or by the one in its configuration.
pub(crate) fn is_called(node: &NodeId, name: &str) -> bool {
    &*node.0 == name || node.0.rsplit_once('#').is_some_and(|(called, _)| called == name)
}
