//! Runs of nodes that are gone: somebody looks after them before the node is forgotten.

use std::collections::BTreeSet;

use punctual_store::{Keeper, Kept, NodeSeen, Roster};

use super::Engine;
use super::member::Member;
use crate::error::EngineError;

/// Nodes that are gone and remembered; beyond it the first are left to the self-check.
const ORPHANED_MAX: usize = 1_000;

impl Member {
    /// Somebody looks after the runs of nodes that are gone: the one that has been here for longest.
    pub(super) async fn adopt(&mut self, roster: &Roster) {
        let inner = self.engine.inner.clone();
        let all: BTreeSet<Keeper> = roster.nodes.iter().map(|seen| seen.keeper).collect();
        if self.rounds == 1 {
            let kept = Kept::ByNoneOf(all.iter().copied().collect());
            let desk = inner.desk.clone();
            tokio::spawn(async move {
                if let Err(error) = desk.adopt(kept).await {
                    tracing::warn!(%error, "runs that nobody looks after could not be read; the next self-check will");
                }
            });
        }
        self.orphaned.extend(self.known.difference(&all));
        self.known = all;
        let first = roster.nodes.iter().find(|seen| seen.expires_at > roster.now);
        while self.orphaned.len() > ORPHANED_MAX {
            self.orphaned.pop_first();
        }
        if first.is_none_or(|seen| seen.keeper != inner.node.keeper) {
            // Whoever does it may leave too, before it is done: then it will be for this node.
            return;
        }
        if self.adoption.as_ref().is_some_and(|adoption| !adoption.is_finished()) {
            return;
        }
        if let Some(adoption) = self.adoption.take() {
            self.orphaned.extend(adoption.await.unwrap_or_default());
        }
        // One that was only silent for a while looks after its runs itself.
        let known = &self.known;
        self.orphaned.retain(|keeper| !known.contains(keeper));
        let gone: Vec<NodeSeen> =
            roster.nodes.iter().filter(|seen| seen.expires_at <= roster.now).cloned().collect();
        let left = std::mem::take(&mut self.orphaned);
        if !gone.is_empty() || !left.is_empty() {
            self.adoption = Some(tokio::spawn(self.engine.clone().adopt_from(gone, left)));
        }
    }
}

impl Engine {
    /// Takes over the runs of nodes that are gone, then strikes them off the roster; says whose it could not.
    async fn adopt_from(self, gone: Vec<NodeSeen>, left: BTreeSet<Keeper>) -> Vec<Keeper> {
        let (inner, mut failed) = (&self.inner, Vec::new());
        let gone = gone.into_iter().map(|seen| (seen.keeper, Some(seen.node)));
        for (keeper, node) in gone.chain(left.into_iter().map(|keeper| (keeper, None))) {
            let adopted = inner.desk.adopt(Kept::By(keeper)).await;
            let struck = match (adopted, node) {
                (Ok(runs), Some(node)) => {
                    tracing::warn!(%node, runs, "a node is gone; its runs are looked after here");
                    inner.store.strike(node, false).await.map_err(EngineError::from)
                }
                (adopted, _) => adopted.map(drop),
            };
            if let Err(error) = struck {
                tracing::warn!(%keeper, %error, "runs of a node that is gone could not be taken over yet");
                failed.push(keeper);
            }
        }
        failed
    }
}
