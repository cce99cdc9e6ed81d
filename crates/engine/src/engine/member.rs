//! Being one of many: tells that this node is alive, and drives the shards that the plan gives it.
//!
//! A round is a beat, a renewal of what is held, and a plan; rounds come every third of a lease, and at once when nodes come or
//! go. When the database does not answer, drivers go on: their commits are compared and fenced anyway.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use punctual_store::{Keeper, Lease, NodeId, NodeSeen, Roster, ShardId, StoreError};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::Engine;
use crate::cluster::plan;
use crate::driver::Message;
use crate::error::EngineError;

/// The shortest wait before a shard is tried again that was not free.
const TRY_AGAIN: Duration = Duration::from_millis(20);

/// What this node is among the others, for those who ask.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    /// The others count on it.
    pub(super) listed: bool,
    /// It is to give its shards away.
    pub(super) draining: bool,
}

/// This node's part in the whole.
pub(super) struct Member {
    pub(super) engine: Engine,
    held: BTreeMap<ShardId, Holding>,
    drivers: JoinSet<ShardId>,
    /// Whoever was on the roster when it was last read.
    pub(super) known: BTreeSet<Keeper>,
    /// Nodes that are gone, and whose runs this node has not looked for yet.
    pub(super) orphaned: BTreeSet<Keeper>,
    /// Shards whose owner is gone.
    abandoned: BTreeSet<ShardId>,
    pub(super) adoption: Option<tokio::task::JoinHandle<Vec<Keeper>>>,
    /// When a shard may become free that is to be taken.
    look_again: Option<Duration>,
    pub(super) rounds: u64,
}

/// A shard that this node has the lease of.
struct Holding {
    lease: Lease,
    sender: Sender<Message>,
    leaving: bool,
}

impl Member {
    pub(super) fn new(engine: Engine) -> Member {
        Member {
            engine,
            held: BTreeMap::new(),
            drivers: JoinSet::new(),
            known: BTreeSet::new(),
            orphaned: BTreeSet::new(),
            abandoned: BTreeSet::new(),
            adoption: None,
            look_again: None,
            rounds: 0,
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
        let pause = self.engine.inner.config.shard_lease.unsigned_abs() / 3;
        while !self.engine.is_stopping() {
            let wait = self.look_again.take().map_or(pause, |soon| soon.clamp(TRY_AGAIN, pause));
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
                Err(error) => self.engine.inner.outlet.stumbled(&error),
            }
        }
        self.leave().await;
    }

    /// The database answers; what it did not answer before is looked for now.
    fn recovered(&self) {
        let inner = &self.engine.inner;
        inner.outlet.recovered();
        if inner.node.shared && inner.desk.take_doubt() {
            tokio::spawn(inner.desk.clone().reconcile());
        }
    }

    async fn leave(&mut self) {
        let inner = &self.engine.inner;
        if inner.node.shared {
            // From now on nobody counts on it; who cannot be told finds out when its time is over.
            let _ = inner.store.drain(inner.node.id.clone(), true).await;
        }
        for shard in self.held.keys().copied().collect::<Vec<_>>() {
            self.give_up(shard);
        }
        while let Some(ended) = self.drivers.join_next().await {
            self.ended(ended.ok());
        }
    }

    fn ended(&mut self, shard: Option<ShardId>) {
        if let Some(shard) = shard {
            self.held.remove(&shard);
            self.engine.inner.metrics.shards.set(self.held.len() as u64);
        }
    }

    async fn round(&mut self) -> Result<Vec<oneshot::Receiver<Result<(), EngineError>>>, StoreError> {
        self.rounds += 1;
        let inner = self.engine.inner.clone();
        let (shards, me) = (inner.store.shards(), &inner.node.id);
        if !inner.node.shared {
            self.renew().await?;
            let all = vec![Some(me.clone()); shards as usize];
            return self.take(&all, &Roster::default()).await;
        }
        let asked_at = Instant::now();
        let roster = inner.store.beat(inner.node.beat(&inner.config)).await?;
        if let Some(clock) = &inner.database_clock {
            clock.heard(roster.now, asked_at, Instant::now());
        }
        let mine = roster.nodes.iter().find(|seen| seen.node == *me);
        let draining = mine.is_some_and(|seen| seen.draining);
        self.engine.stands(Standing { listed: true, draining });
        self.renew().await?;
        if roster.was_over && self.rounds > 1 {
            tracing::warn!("this node was counted as dead; others may have taken over what it did");
            tokio::spawn(inner.desk.clone().reconcile());
        }
        self.adopt(&roster).await;
        let planned = plan(&roster.nodes, &roster.leases, shards, roster.now);
        let surplus: Vec<ShardId> = self
            .held
            .iter()
            .filter(|(shard, held)| !held.leaving && planned[shard.0 as usize].as_ref() != Some(me))
            .map(|(shard, _)| *shard)
            .collect();
        for shard in surplus {
            inner.metrics.handovers.add(1);
            self.give_up(shard);
        }
        self.take(&planned, &roster).await
    }

    /// Makes what is held last longer; what was lost meanwhile is driven no more.
    async fn renew(&mut self) -> Result<(), StoreError> {
        let leases: Vec<Lease> = self.held.values().map(|held| held.lease.clone()).collect();
        if leases.is_empty() {
            return Ok(());
        }
        let shards: Vec<ShardId> = leases.iter().map(|lease| lease.shard).collect();
        let inner = &self.engine.inner;
        let renewed = inner.store.renew_all(leases, inner.config.shard_lease).await?;
        for (shard, renewed) in shards.into_iter().zip(renewed) {
            match renewed {
                Ok(lease) => {
                    if let Some(held) = self.held.get_mut(&shard) {
                        held.lease = lease;
                    }
                }
                Err(StoreError::Fenced { .. }) => self.give_up(shard),
                // The driver finds out by itself whether its writes still count.
                Err(error) => tracing::warn!(%shard, %error, "a lease could not be renewed"),
            }
        }
        Ok(())
    }

    /// The driver finishes what is on its way; who asks for something goes another way from now on.
    fn give_up(&mut self, shard: ShardId) {
        if let Some(held) = self.held.get_mut(&shard).filter(|held| !held.leaving) {
            held.leaving = true;
            self.engine.inner.router.set(shard, None);
            let _ = held.sender.send(Message::Stop);
        }
    }

    /// Takes what the plan gives to this node, as far as it is free; says when each is driven.
    async fn take(
        &mut self,
        planned: &[Option<NodeId>],
        roster: &Roster,
    ) -> Result<Vec<oneshot::Receiver<Result<(), EngineError>>>, StoreError> {
        let inner = self.engine.inner.clone();
        let (me, ttl) = (&inner.node.id, inner.config.shard_lease);
        let mut started = Vec::new();
        for lease in &roster.leases {
            match is_alive(&roster.nodes, &lease.node, roster.now) {
                true => self.abandoned.remove(&lease.shard),
                false => self.abandoned.insert(lease.shard),
            };
        }
        for shard in (0..planned.len() as u32).map(ShardId) {
            if planned[shard.0 as usize].as_ref() != Some(me) || self.held.contains_key(&shard) {
                continue;
            }
            let other = roster.leases.iter().find(|lease| lease.shard == shard && lease.node != *me);
            if let Some(other) = other.filter(|lease| lease.expires_at > roster.now) {
                if self.abandoned.contains(&shard) {
                    self.wait_for(other.expires_at.duration_since(roster.now));
                }
                continue;
            }
            let Some(lease) = inner.store.acquire(shard, me.clone(), ttl).await? else {
                self.wait_for(ttl);
                continue;
            };
            inner.metrics.shard_takeovers.add(u64::from(self.abandoned.remove(&shard)));
            started.push(self.start(lease));
        }
        inner.metrics.shards.set(self.held.len() as u64);
        Ok(started)
    }

    fn start(&mut self, lease: Lease) -> oneshot::Receiver<Result<(), EngineError>> {
        let ((sender, inbox), (driving, driven)) = (channel(), oneshot::channel());
        let shard = lease.shard;
        let drive = self.engine.clone().drive_to_the_end(lease.clone(), sender.clone(), inbox, driving);
        self.held.insert(shard, Holding { lease, sender, leaving: false });
        self.drivers.spawn(async move {
            drive.await;
            shard
        });
        driven
    }

    fn wait_for(&mut self, length: SignedDuration) {
        let length = length.max(SignedDuration::ZERO).unsigned_abs() + Duration::from_millis(1);
        self.look_again = Some(self.look_again.map_or(length, |sooner| sooner.min(length)));
    }
}

fn is_alive(nodes: &[NodeSeen], node: &NodeId, now: Timestamp) -> bool {
    nodes.iter().any(|seen| seen.node == *node && seen.expires_at > now)
}
