//! Runs of nodes that are gone: somebody looks after them before the node is forgotten.

use std::time::Duration;

use punctual_store::{Keeper, Kept, Roster};

use super::Engine;
use super::member::Member;
use crate::cluster::Orphans;
use crate::error::EngineError;

/// How long to wait before runs are taken over again, when the database did not answer.
const ADOPT_AGAIN: Duration = Duration::from_secs(1);

impl Member {
    /// Somebody looks after the runs of nodes that are gone: the one that has been here for longest.
    pub(super) async fn adopt(&mut self, roster: &Roster) {
        if self.rosters == 1 {
            let kept = Kept::ByNoneOf(roster.nodes.iter().map(|seen| seen.keeper).collect());
            let engine = self.engine.clone();
            self.joining = Some(tokio::spawn(engine.adopt_left(kept)));
        }
        if let Some(adoption) = self.adoption.take_if(|adoption| adoption.is_finished()) {
            self.membership.adopted(adoption.await.unwrap_or_default());
        }
        if let Some(orphans) = self.membership.orphans(roster) {
            self.adoption = Some(tokio::spawn(self.engine.clone().adopt_from(orphans)));
        }
    }
}

impl Engine {
    /// Takes over the runs that none of these looks after, again and again until that is done.
    async fn adopt_left(self, kept: Kept) {
        while let Err(error) = self.inner.desk.adopt(kept.clone()).await {
            tracing::warn!(%error, "runs that nobody looks after could not be taken over; trying again");
            tokio::time::sleep(ADOPT_AGAIN).await;
            if self.is_stopping() {
                return;
            }
        }
    }

    /// Takes over the runs of nodes that are gone, then strikes them off the roster; says whose it could not.
    async fn adopt_from(self, orphans: Orphans) -> Vec<Keeper> {
        let (inner, mut failed) = (&self.inner, Vec::new());
        let Orphans { gone, left } = orphans;
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
