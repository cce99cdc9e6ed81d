//! Owning shards: acquire, load timers, drive, renew; and again if a shard was lost.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use punctual_store::{Lease, NodeId, ShardId, StoreError};
use tokio::sync::oneshot;

use super::{Engine, keep};
use crate::driver::{Driver, Ended, Message};
use crate::error::EngineError;
use crate::shard::{Event, Shard};

/// Timers that one page brings.
const TIMERS_PAGE: usize = 20_000;

impl Engine {
    /// Takes every shard, once synchronously so that the engine is ready when it has started, and keeps them.
    pub(super) async fn own_all(&self) -> Result<(), EngineError> {
        for shard in (0..self.inner.store.shards()).map(ShardId) {
            let first = self.take(shard).await?;
            let owner = tokio::spawn(self.clone().own(shard, first));
            keep(&self.inner.owners, [owner]);
        }
        Ok(())
    }

    /// Tells every driver to finish.
    pub(super) fn stop_drivers(&self) {
        self.inner.router.stop_all();
    }

    async fn own(self, shard: ShardId, first: Option<Owned>) {
        let mut owned = first;
        while !self.is_stopping() {
            if let Some(owned) = owned.take() {
                self.hold(owned).await;
            }
            if self.is_stopping() {
                return;
            }
            match self.take(shard).await {
                Ok(taken) => owned = taken,
                Err(error) => tracing::warn!(%shard, %error, "a shard could not be taken; trying again"),
            }
            if owned.is_none() {
                tokio::time::sleep(self.renew_pause()).await;
            }
        }
    }

    fn renew_pause(&self) -> Duration {
        self.inner.config.shard_lease.unsigned_abs() / 3
    }

    /// Acquires a shard and starts its driver; nothing if another node has it.
    async fn take(&self, shard: ShardId) -> Result<Option<Owned>, EngineError> {
        let inner = &self.inner;
        let node = NodeId(inner.config.node.as_str().into());
        let Some(lease) = inner.store.acquire(shard, node, inner.config.shard_lease).await? else {
            return Ok(None);
        };
        let mut driven =
            Shard::new(shard, lease.epoch, inner.config.limits.clone(), inner.config.shard.clone());
        let mut effects = Vec::new();
        for queue in self.all_queues() {
            driven.handle(self.now(), queue, &mut effects);
        }
        let mut after = None;
        loop {
            let page = inner.store.timers(shard, after, TIMERS_PAGE).await?;
            let Some((last, _)) = page.last() else { break };
            after = Some(*last);
            driven.handle(self.now(), Event::Timers(page), &mut effects);
        }
        let (sender, inbox) = channel();
        let driver = Driver {
            shard: driven,
            store: inner.store.clone(),
            clock: inner.clock.clone(),
            runtime: tokio::runtime::Handle::current(),
            inbox,
            sender: sender.clone(),
            outlet: inner.outlet.clone(),
        };
        let (ended, end) = oneshot::channel();
        let thread = std::thread::Builder::new().name(format!("shard-{shard}")).spawn(move || {
            let _ = ended.send(driver.run());
        });
        thread.map_err(|error| EngineError::Unavailable(format!("no thread for a shard: {error}")))?;
        inner.router.set(shard, Some(sender.clone()));
        tracing::info!(%shard, epoch = %lease.epoch, "driving a shard");
        Ok(Some(Owned { lease, sender, end }))
    }

    /// Renews the lease until the driver ends or the lease is lost.
    async fn hold(&self, owned: Owned) {
        let Owned { mut lease, sender, mut end } = owned;
        let shard = lease.shard;
        let ended = loop {
            tokio::select! {
                ended = &mut end => break ended.unwrap_or(Ended::Stopped),
                () = tokio::time::sleep(self.renew_pause()) => {
                    match self.inner.store.renew(lease.clone(), self.inner.config.shard_lease).await {
                        Ok(renewed) => {
                            lease = renewed;
                            self.inner.outlet.recovered();
                        }
                        Err(StoreError::Fenced { .. }) => {
                            let _ = sender.send(Message::Stop);
                        }
                        // The driver finds out by itself whether its writes still count.
                        Err(error) => tracing::warn!(%shard, %error, "a lease could not be renewed"),
                    }
                }
            }
        };
        self.inner.router.set(shard, None);
        match ended {
            Ended::Fenced => tracing::warn!(%shard, "the shard belongs to another node now"),
            Ended::Stopped => {
                if let Err(error) = self.inner.store.release(lease).await {
                    tracing::warn!(%shard, %error, "a lease could not be given up; it will run out");
                }
            }
        }
    }
}

/// A shard that this node drives.
pub(super) struct Owned {
    lease: Lease,
    sender: Sender<Message>,
    end: oneshot::Receiver<Ended>,
}
