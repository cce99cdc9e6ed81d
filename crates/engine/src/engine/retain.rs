//! Retention in the background: what is old enough goes, a little at a time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_store::{Retention, ShardId};

use super::Engine;

/// Rows that go in one write, so that nobody waits long for it.
const ROWS_MAX: usize = 500;

impl Engine {
    /// Removes what is old, for as long as the process lives.
    pub(super) async fn retain(self) {
        loop {
            tokio::time::sleep(self.inner.clock.real(self.inner.config.retention_pause)).await;
            while let Some(removed) = self.retain_some().await {
                self.inner.metrics.retired.add(removed);
                // Others go first.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// Removes some; nothing if there was nothing to remove, or the database has other troubles. One node does it for all.
    async fn retain_some(&self) -> Option<u64> {
        if self.inner.node.shared && !self.drives(ShardId(0)) {
            return None;
        }
        let (now, config) = (self.now(), &self.inner.config);
        let before = |length: SignedDuration| now.checked_sub(length).unwrap_or(Timestamp::MIN);
        let retention = Retention {
            runs_before: before(config.run_retention),
            ledger_before: before(config.ledger_retention),
            runs_max: config.runs_kept_max,
            ledger_max: config.ledger_kept_max,
            rows_max: ROWS_MAX,
        };
        match self.inner.store.retire(retention).await {
            Ok(removed) => Some(removed).filter(|removed| *removed > 0),
            Err(error) => {
                tracing::warn!(%error, "retention has to wait");
                None
            }
        }
    }
}
