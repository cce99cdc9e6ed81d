//! Being one of many: tells that this node is alive, and drives the shards that the plan gives it.
//!
//! A round is a beat, a renewal of what is held, and a plan; rounds come every third of a lease, and at once when nodes come or
//! go. When the database does not answer, drivers go on: their commits are compared and fenced anyway.

use std::collections::BTreeMap;
use std::time::Instant;

use punctual_store::record::encode_report;
use punctual_store::{Bytes, Keeper, Lease, Roster, ShardId, StoreError};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use super::Engine;
use crate::cluster::Membership;
use crate::driver::Message;
use crate::error::EngineError;
use crate::inbox::Address;

/// What this node is among the others, for those who ask.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    /// The others count on it.
    pub(super) listed: bool,
    /// It is to give its shards away.
    pub(super) draining: bool,
}

/// This node's part in the whole: does what its membership decides.
pub(super) struct Member {
    pub(super) engine: Engine,
    pub(super) membership: Membership,
    /// The way to the driver of each shard that is held.
    inboxes: BTreeMap<ShardId, Address>,
    drivers: JoinSet<ShardId>,
    pub(super) adoption: Option<JoinHandle<Vec<Keeper>>>,
    /// The same for what was left before this node came.
    pub(super) joining: Option<JoinHandle<()>>,
    /// How often the roster was heard.
    pub(super) rosters: u64,
    /// What this node said last about itself, if the others still have it.
    said: Option<Bytes>,
}

/// Says when a shard is driven, or why it is not.
type Driven = oneshot::Receiver<Result<(), EngineError>>;

impl Member {
    pub(super) fn new(engine: Engine) -> Member {
        let (inner, node) = (&engine.inner, &engine.inner.node);
        let (shards, lease_length) = (inner.store.shards(), inner.config.shard_lease);
        let membership = Membership::new(node.id.clone(), node.keeper, shards, lease_length);
        Member {
            engine,
            membership,
            inboxes: BTreeMap::new(),
            drivers: JoinSet::new(),
            adoption: None,
            joining: None,
            rosters: 0,
            said: None,
        }
    }

    /// The first round: when it is over, everything is driven that should be.
    pub(super) async fn join(&mut self) -> Result<(), EngineError> {
        for driving in self.round().await? {
            // A driver that ended before it said anything was stopped; it is taken again if it should be.
            driving.await.unwrap_or(Ok(()))?;
        }
        Ok(())
    }

    /// Rounds, for as long as the engine runs; then gives everything up.
    pub(super) async fn run(mut self) {
        while !self.engine.is_stopping() {
            let wait = self.membership.wait().unsigned_abs();
            tokio::select! {
                Some(ended) = self.drivers.join_next() => self.ended(ended.ok()),
                () = self.engine.inner.roster_bell.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
            if self.engine.is_stopping() {
                break;
            }
            match self.round().await {
                Ok(_) => self.recovered(),
                Err(error) => {
                    self.engine.inner.outlet.stumbled(&error);
                    // It may have been counted as dead, and the word of that was lost.
                    self.engine.inner.desk.doubt();
                }
            }
        }
        self.leave().await;
    }

    /// The database answers; what it did not answer before is looked for now.
    fn recovered(&self) {
        let inner = &self.engine.inner;
        inner.outlet.recovered();
        if inner.desk.take_doubt() {
            tokio::spawn(inner.desk.clone().reconcile());
        }
    }

    async fn leave(&mut self) {
        let inner = &self.engine.inner;
        if inner.node.shared {
            // From now on nobody counts on it; who cannot be told finds out when its time is over.
            let _ = inner.store.drain(inner.node.id.clone(), true).await;
        }
        for shard in self.membership.leave() {
            self.stop_driving(shard);
        }
        while let Some(ended) = self.drivers.join_next().await {
            self.ended(ended.ok());
        }
        // Runs that it takes over after it has said that it leaves, nobody would look after.
        if let Some(adoption) = self.adoption.take() {
            let _ = adoption.await;
        }
        if let Some(joining) = self.joining.take() {
            let _ = joining.await;
        }
    }

    fn ended(&mut self, shard: Option<ShardId>) {
        if let Some(shard) = shard {
            self.membership.ended(shard);
            self.inboxes.remove(&shard);
            self.engine.inner.metrics.shards.set(self.membership.size() as u64);
        }
    }

    async fn round(&mut self) -> Result<Vec<Driven>, StoreError> {
        let inner = self.engine.inner.clone();
        if !inner.node.shared {
            self.renew().await?;
            let all = self.membership.plan_alone();
            return self.take(all).await;
        }
        let roster = self.beat().await?;
        self.renew().await?;
        if roster.was_over && self.rosters > 1 {
            tracing::warn!("this node was counted as dead; others may have taken over what it did");
            tokio::spawn(inner.desk.clone().reconcile());
        }
        self.adopt(&roster).await;
        let turn = self.membership.plan(&roster);
        inner.metrics.handovers.add(turn.give_up.len() as u64);
        for shard in turn.give_up {
            self.stop_driving(shard);
        }
        self.take(turn.take).await
    }

    async fn beat(&mut self) -> Result<Roster, StoreError> {
        let inner = &self.engine.inner;
        let (asked_at, said) = (Instant::now(), self.said.take());
        let report = encode_report(&self.engine.own_report());
        let news = Some(report.clone()).filter(|report| said.as_ref() != Some(report));
        let roster = inner.store.beat(inner.node.beat(&inner.config, news)).await?;
        // Who was struck off has lost what it said before; it says it again.
        self.said = Some(report).filter(|_| !roster.was_over || said.is_none());
        if let Some(clock) = &inner.database_clock {
            clock.heard(roster.now, asked_at, Instant::now());
        }
        let mine = roster.nodes.iter().find(|seen| seen.node == inner.node.id);
        let draining = mine.is_some_and(|seen| seen.draining);
        self.engine.stands(Standing { listed: true, draining });
        self.rosters += 1;
        Ok(roster)
    }

    /// Makes what is held last longer; what was lost meanwhile is driven no more.
    async fn renew(&mut self) -> Result<(), StoreError> {
        let leases = self.membership.leases();
        if leases.is_empty() {
            return Ok(());
        }
        let shards: Vec<ShardId> = leases.iter().map(|lease| lease.shard).collect();
        let inner = &self.engine.inner;
        let renewed = inner.store.renew_all(leases, inner.config.shard_lease).await?;
        for (shard, renewed) in shards.into_iter().zip(renewed) {
            if self.membership.renewed(shard, &renewed) {
                tracing::warn!(%shard, "the shard was taken by another node");
                self.stop_driving(shard);
            }
            match renewed {
                // Given up a moment ago, or lost: either was told.
                Ok(_) | Err(StoreError::Fenced { .. }) => {}
                Err(error) => tracing::warn!(%shard, %error, "a lease could not be renewed"),
            }
        }
        Ok(())
    }

    /// The driver finishes what is on its way; who asks for something goes another way from now on.
    fn stop_driving(&self, shard: ShardId) {
        self.engine.inner.router.set(shard, None);
        if let Some(inbox) = self.inboxes.get(&shard) {
            inbox.send(Message::Stop);
        }
    }

    /// Takes shards, as far as they are free; says when each is driven.
    async fn take(&mut self, shards: Vec<ShardId>) -> Result<Vec<Driven>, StoreError> {
        let inner = self.engine.inner.clone();
        let mut started = Vec::new();
        for shard in shards {
            let lease = inner.store.acquire(shard, inner.node.id.clone(), inner.config.shard_lease).await?;
            let abandoned = self.membership.acquired(shard, lease.clone());
            inner.metrics.shard_takeovers.add(u64::from(abandoned));
            started.extend(lease.map(|lease| self.start(lease)));
        }
        inner.metrics.shards.set(self.membership.size() as u64);
        Ok(started)
    }

    fn start(&mut self, lease: Lease) -> Driven {
        let (shard, (driving, driven)) = (lease.shard, oneshot::channel());
        let (address, inbox) = self.engine.inner.threads.inbox();
        let drive = self.engine.clone().drive_to_the_end(lease, (address.clone(), inbox), driving);
        self.inboxes.insert(shard, address);
        self.drivers.spawn(async move {
            drive.await;
            shard
        });
        driven
    }
}
