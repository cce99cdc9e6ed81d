//! The verbs about nodes: who is there, and who is to give its shards away.

use std::sync::PoisonError;

use punctual_store::{NodeId, Roster};

use super::Engine;
use super::member::Standing;
use crate::cluster::is_called;
use crate::error::EngineError;

impl Engine {
    /// Everybody who is there, and who drives what.
    pub async fn roster(&self) -> Result<Roster, EngineError> {
        Ok(self.inner.store.roster().await?)
    }

    /// This process among those that share the database.
    pub fn node_id(&self) -> &NodeId {
        &self.inner.node.id
    }

    /// Whether other processes may use the database at the same time.
    pub fn is_shared(&self) -> bool {
        self.inner.node.shared
    }

    /// How many shards schedules are spread over.
    pub fn shards(&self) -> u32 {
        self.inner.store.shards()
    }

    /// Asks a node to give its shards to others and to take none, or to take some again. A name that several processes have
    /// means all of them.
    pub async fn drain_node(&self, name: &str, draining: bool) -> Result<(), EngineError> {
        let roster = self.roster().await?;
        let mut found = false;
        for seen in roster.nodes.into_iter().filter(|seen| is_called(&seen.node, name)) {
            found |= self.inner.store.drain(seen.node, draining).await?;
        }
        if found { Ok(()) } else { Err(EngineError::NotFound(format!("node {name:?}"))) }
    }

    /// Whether somebody asked this node to give its shards away.
    pub fn is_draining(&self) -> bool {
        let standing = self.inner.standing.lock().unwrap_or_else(PoisonError::into_inner);
        self.inner.node.shared && standing.draining
    }

    pub(super) fn stands(&self, standing: Standing) {
        *self.inner.standing.lock().unwrap_or_else(PoisonError::into_inner) = standing;
    }

    /// What keeps this node from being counted on, if anything does.
    pub(super) fn aloof(&self) -> Option<&'static str> {
        if !self.inner.node.shared {
            return (!self.inner.router.is_complete()).then_some("not every shard has an owner here");
        }
        match *self.inner.standing.lock().unwrap_or_else(PoisonError::into_inner) {
            Standing { listed: false, .. } => Some("not yet known to the other nodes"),
            Standing { draining: true, .. } => Some("draining"),
            Standing { .. } => None,
        }
    }

    /// As if the process had died: nothing is finished, nothing given up. For tests.
    #[doc(hidden)]
    pub fn crash(&self) {
        self.fall_silent();
        self.inner.router.die();
    }

    /// As if nothing of this process reached the others any more, while its drivers go on. For tests.
    #[doc(hidden)]
    pub fn fall_silent(&self) {
        for tasks in [&self.inner.owners, &self.inner.helpers] {
            let tasks = std::mem::take(&mut *tasks.lock().unwrap_or_else(PoisonError::into_inner));
            tasks.iter().for_each(|task| task.abort());
        }
    }
}
