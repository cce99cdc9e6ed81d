//! Drivers of shards: started with the timers of their shard, and given up in good order. And the guest, which has none.

use std::time::Duration;

use punctual_store::{Lease, News, ShardId};
use tokio::sync::oneshot;

use super::Engine;
use crate::driver::{Ended, declared};
use crate::error::EngineError;
use crate::inbox::{Address, Inbox};
use crate::shard::{Event, Shard};

/// Timers that one page brings.
const TIMERS_PAGE: usize = 20_000;

/// How long to wait before a shard is taken again that could not be driven.
const TRY_AGAIN: Duration = Duration::from_millis(500);

impl Engine {
    /// Drives a shard from now on, until its driver ends. Who asks for something meanwhile waits in the inbox, and so do
    /// news: what is written after the timers were read must not fall between.
    pub(super) async fn drive(
        &self,
        lease: &Lease,
        (address, inbox): (Address, Inbox),
    ) -> Result<oneshot::Receiver<Ended>, EngineError> {
        let (inner, shard) = (&self.inner, lease.shard);
        inner.router.set(shard, Some(address.clone()));
        let mut driven =
            Shard::new(shard, lease.epoch, inner.config.limits.clone(), inner.config.shard.clone());
        let mut effects = Vec::new();
        for queue in self.all_queues() {
            driven.handle(self.now(), declared(&queue), &mut effects);
        }
        let mut after = None;
        loop {
            let page = inner.store.timers(shard, after, TIMERS_PAGE).await?;
            let Some((last, _)) = page.last() else { break };
            after = Some(*last);
            driven.handle(self.now(), Event::Timers(page), &mut effects);
        }
        let end = inner.threads.drive(driven, (address, inbox));
        tracing::info!(%shard, epoch = %lease.epoch, "driving a shard");
        Ok(end)
    }

    /// Drives a shard until its driver ends, and gives it up then.
    pub(super) async fn drive_to_the_end(
        self,
        lease: Lease,
        inbox: (Address, Inbox),
        driving: oneshot::Sender<Result<(), EngineError>>,
    ) {
        let shard = lease.shard;
        let (ended, pause) = match self.drive(&lease, inbox).await {
            Ok(end) => {
                let _ = driving.send(Ok(()));
                // A driver that says nothing has panicked, and may do so again.
                end.await.map_or((Ended::Stopped, TRY_AGAIN), |ended| (ended, Duration::ZERO))
            }
            Err(error) => {
                tracing::warn!(%shard, %error, "a shard could not be driven; it is given up");
                let _ = driving.send(Err(error));
                (Ended::Stopped, TRY_AGAIN)
            }
        };
        self.inner.router.set(shard, None);
        match ended {
            Ended::Died => {}
            Ended::Fenced => tracing::warn!(%shard, "the shard belongs to another node now"),
            Ended::Stopped => {
                if let Err(error) = self.inner.store.release(lease).await {
                    tracing::warn!(%shard, %error, "a lease could not be given up; it will run out");
                }
                // Whoever gets it next need not wait.
                self.tell(News::Roster);
            }
        }
        tokio::time::sleep(pause).await;
    }

    /// Sees to it that there is a guest, until it is told to stop.
    pub(super) async fn keep_guest(self, mut end: oneshot::Receiver<Ended>) {
        // One that says nothing has panicked. It holds nothing, so another may begin at once.
        while end.await.is_err() && !self.is_stopping() {
            tracing::error!("whoever serves schedules of other nodes has failed; another one begins");
            end = self.start_guest();
        }
    }

    /// Serves schedules of other nodes from now on.
    pub(super) fn start_guest(&self) -> oneshot::Receiver<Ended> {
        let inner = &self.inner;
        let (limits, settings) = (inner.config.limits.clone(), inner.config.shard.clone());
        let mut guest = Shard::guest(inner.store.shards(), limits, settings);
        let (address, inbox) = inner.threads.inbox();
        inner.router.set_guest(Some(address.clone()));
        for queue in self.all_queues() {
            guest.handle(self.now(), declared(&queue), &mut Vec::new());
        }
        inner.threads.drive(guest, (address, inbox))
    }

    /// Whether this node drives a shard.
    pub(super) fn drives(&self, shard: ShardId) -> bool {
        self.inner.router.has(shard)
    }
}
