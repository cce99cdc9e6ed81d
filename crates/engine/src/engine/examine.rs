//! Looks for what is stuck: timers that nobody holds, work that nobody takes, a clock that is off.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_store::{Kept, QueueDepth, RunKey, ShardId};

use super::Engine;
use crate::error::EngineError;

/// Timers that one page brings.
const TIMERS_PAGE: usize = 20_000;

/// How often the timers are compared with what is stored.
const PAUSE: Duration = Duration::from_secs(600);

/// What the self-check of timers found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimerCheck {
    /// Schedules that are to be woken.
    pub stored: u64,
    /// Of those, how many nobody would have woken; they are mended.
    pub missing: u64,
    /// How late the latest of them is, by what is stored.
    pub late_max: SignedDuration,
}

/// A queue in which work waits and nobody takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrandedQueue {
    /// Its namespace.
    pub namespace: std::sync::Arc<str>,
    /// Its name.
    pub name: std::sync::Arc<str>,
    /// How much is in it.
    pub depth: QueueDepth,
    /// It is paused: that is why.
    pub paused: bool,
}

impl Engine {
    /// Compares every stored timer of the shards driven here with those in memory, and mends what is missing.
    pub async fn check_timers(&self) -> Result<TimerCheck, EngineError> {
        let mut found = TimerCheck::default();
        let driven = |shard: &ShardId| !self.inner.node.shared || self.drives(*shard);
        for shard in (0..self.inner.store.shards()).map(ShardId).filter(driven) {
            let mut after = None;
            loop {
                let page = self.inner.store.timers(shard, after, TIMERS_PAGE).await?;
                let Some((last, _)) = page.last() else { break };
                after = Some(*last);
                let now = self.now();
                let late =
                    page.iter().filter_map(|(_, time)| *time).map(|time| now.duration_since(time)).max();
                found.late_max = found.late_max.max(late.unwrap_or(SignedDuration::ZERO));
                found.stored += page.iter().filter(|(_, time)| time.is_some()).count() as u64;
                found.missing += self.inner.router.recheck(shard, page).await.unwrap_or(0);
            }
        }
        self.inner.metrics.timers_mended.add(found.missing);
        Ok(found)
    }

    /// Checks the timers now and then, for as long as the process lives.
    pub(super) async fn keep_checking(self) {
        loop {
            tokio::time::sleep(PAUSE).await;
            match self.check_timers().await {
                Ok(TimerCheck { missing: 0, .. }) => {}
                Ok(found) => {
                    tracing::error!(missing = found.missing, "timers were missing; they are set again");
                }
                Err(error) => tracing::warn!(%error, "the timers could not be checked"),
            }
            if self.inner.node.shared
                && let Err(error) = self.check_runs().await
            {
                tracing::warn!(%error, "the runs could not be checked");
            }
        }
    }

    /// Compares the runs that this node looks after with those that are stored, and takes care of those that nobody does.
    async fn check_runs(&self) -> Result<(), EngineError> {
        let inner = &self.inner;
        inner.desk.clone().reconcile().await;
        let roster = inner.store.roster().await?;
        let first = roster.nodes.iter().find(|seen| seen.expires_at > roster.now);
        if first.is_some_and(|seen| seen.keeper == inner.node.keeper) {
            let keepers = roster.nodes.iter().map(|seen| seen.keeper).collect();
            inner.desk.adopt(Kept::ByNoneOf(keepers)).await?;
        }
        Ok(())
    }

    /// Queues in which runs have waited for longer than this, and no worker asked for them lately.
    pub async fn stranded_queues(&self, patience: SignedDuration) -> Result<Vec<StrandedQueue>, EngineError> {
        let (now, mut stranded) = (self.now(), Vec::new());
        for (queue, depth) in self.queue_depths().await? {
            let waits = depth.first_made_at.is_some_and(|since| now.duration_since(since) > patience);
            let paused = queue.made.settings.paused;
            if waits && (paused || self.workers_of(queue.queue).await?.is_empty()) {
                let (namespace, name) = (queue.made.namespace, queue.made.name);
                stranded.push(StrandedQueue { namespace, name, depth, paused });
            }
        }
        Ok(stranded)
    }

    /// How far this node's clock is from the database's.
    pub async fn clock_offset(&self) -> Result<SignedDuration, EngineError> {
        let before = self.now();
        let theirs = self.inner.store.now().await?;
        let after = self.now();
        let middle = before.checked_add(after.duration_since(before) / 2).unwrap_or(Timestamp::MAX);
        Ok(theirs.duration_since(middle))
    }

    /// The runs that have been in progress for longest, since when, the longest first.
    pub fn longest_runs(&self, count: usize) -> Vec<RunKey> {
        self.inner.desk.longest_runs(count)
    }
}
