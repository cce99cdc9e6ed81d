//! The contract, method by method: batches and claims go to the lanes, questions to the readers.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Entry, StartId};
use punctual_store::{
    Batch, Beat, Bytes, Claim, Document, Keeper, Kept, Lease, Listener, LiveRun, NewQueue, News, NodeId,
    Page, Queue, QueueDepth, QueueKey, QueueSettings, Reply, Retention, Roster, RunDetails, RunKey, RunQuery,
    ScheduleQuery, ShardId, Store, StoreError, StoredRun, StoredTree, Taken, TreeKey, TreeRef,
};
use tokio::sync::oneshot;

use crate::fault::Fault;
use crate::lane::retrying;
use crate::session::Session;
use crate::{Postgres, documents, queues, reader, retire, roster};

/// Asks something on a connection; once more if the connection turns out to be lost, since asking changes nothing.
macro_rules! ask {
    ($pool:expr, |$session:ident| $work:expr) => {
        Box::pin(async move {
            let mut again = true;
            loop {
                let answer = async {
                    let (held, _guard) = $pool.session().await?;
                    let $session: &Session = &held;
                    $session.within($work).await
                };
                match answer.await {
                    Err(fault) if again && Fault::is_connection_lost(&fault) => again = false,
                    answer => return answer.map_err(|fault: Fault| fault.answer()),
                }
            }
        })
    };
}

/// Does something on a connection that nobody else uses meanwhile, so that it cannot fall into the transaction of another.
macro_rules! alone {
    ($pool:expr, |$session:ident| $work:expr) => {
        Box::pin(async move {
            let done = async {
                let (held, _guard) = $pool.alone().await?;
                let $session: &Session = &held;
                $session.within($work).await
            };
            done.await.map_err(|fault: Fault| fault.answer())
        })
    };
}

/// Does something in a transaction of its own, again if it meets others.
macro_rules! transact {
    ($pool:expr, |$session:ident| $work:expr) => {
        Box::pin(async move {
            let done = retrying(|| async {
                let (held, _guard) = $pool.alone().await?;
                let $session: &Session = &held;
                $session.transact($work).await
            });
            done.await.map_err(|fault: Fault| fault.answer())
        })
    };
}

/// Waits for a lane.
fn wait<T: Send + 'static>(answer: oneshot::Receiver<Result<T, StoreError>>) -> Reply<'static, T> {
    Box::pin(
        async move { answer.await.unwrap_or_else(|_| Err(StoreError::unavailable("the store has ended"))) },
    )
}

impl Store for Postgres {
    fn now(&self) -> Reply<'_, Timestamp> {
        alone!(self.beats, |session| roster::now(session))
    }

    fn shards(&self) -> u32 {
        self.shards
    }

    fn acquire(&self, shard: ShardId, node: NodeId, ttl: SignedDuration) -> Reply<'_, Option<Lease>> {
        alone!(self.beats, |session| roster::acquire(session, shard, &node, ttl))
    }

    fn renew(&self, lease: Lease, ttl: SignedDuration) -> Reply<'_, Lease> {
        Box::pin(async move {
            let answers = self.renew_all(vec![lease.clone()], ttl).await?;
            answers.into_iter().next().unwrap_or(Err(StoreError::Fenced { epoch: lease.epoch }))
        })
    }

    fn release(&self, lease: Lease) -> Reply<'_, ()> {
        alone!(self.beats, |session| roster::release(session, &lease))
    }

    fn renew_all(
        &self,
        leases: Vec<Lease>,
        ttl: SignedDuration,
    ) -> Reply<'_, Vec<Result<Lease, StoreError>>> {
        alone!(self.beats, |session| roster::renew(session, &leases, ttl, &self.spots.leases))
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn beat(&self, beat: Beat) -> Reply<'_, Roster> {
        Box::pin(async move {
            let beaten: Reply<'_, Roster> = transact!(self.beats, |session| roster::beat(session, &beat));
            let roster = beaten.await?;
            let alive = roster.nodes.iter().filter(|node| node.expires_at > roster.now).count();
            self.lanes.pace.set_nodes(alive);
            Ok(roster)
        })
    }

    fn roster(&self) -> Reply<'_, Roster> {
        ask!(self.readers, |session| roster::roster(session))
    }

    fn reports(&self) -> Reply<'_, Vec<(Keeper, Bytes)>> {
        ask!(self.readers, |session| roster::reports(session))
    }

    fn strike(&self, node: NodeId, leaves: bool) -> Reply<'_, ()> {
        transact!(self.beats, |session| roster::strike(session, &node, leaves))
    }

    fn drain(&self, node: NodeId, draining: bool) -> Reply<'_, bool> {
        alone!(self.beats, |session| roster::drain(session, &node, draining))
    }

    fn keep(&self, runs: Vec<RunKey>, keeper: Keeper) -> Reply<'_, ()> {
        alone!(self.chores, |session| async {
            let runs: Vec<i64> = runs.iter().map(|run| run.0).collect();
            // In the one order in which everybody holds runs.
            let sql = "UPDATE punctual.run_live SET keeper = $2 WHERE run IN (
                SELECT run FROM punctual.run_live WHERE run = ANY($1) ORDER BY run FOR UPDATE)";
            session.execute(sql, &[&runs, &keeper.0]).await?;
            Ok(())
        })
    }

    fn listen(&self) -> Option<Listener> {
        Some(self.listeners.add())
    }

    fn tell(&self, news: News) {
        // If nobody tells any more, the store has ended.
        let _ = self.teller.send(news);
    }

    fn reserve(&self, count: u32) -> Reply<'_, i64> {
        Box::pin(self.keys.reserve(&self.beats, count))
    }

    fn commit(&self, batch: Batch) -> Reply<'_, Vec<Result<(), StoreError>>> {
        wait(self.lanes.commit(batch))
    }

    fn load(&self, trees: Vec<TreeRef>) -> Reply<'_, Vec<Option<StoredTree>>> {
        ask!(self.readers, |session| reader::load(session, &trees))
    }

    fn timers(
        &self,
        shard: ShardId,
        after: Option<TreeKey>,
        count: usize,
    ) -> Reply<'_, Vec<(TreeKey, Option<Timestamp>)>> {
        ask!(self.readers, |session| reader::timers(session, shard, after, count))
    }

    fn ledger(
        &self,
        tree: TreeKey,
        after: Timestamp,
        through: Timestamp,
        count: usize,
    ) -> Reply<'_, Vec<Entry>> {
        ask!(self.readers, |session| reader::ledger(session, tree, (after, through), count))
    }

    fn schedules(&self, query: ScheduleQuery) -> Reply<'_, Page<StoredTree>> {
        ask!(self.readers, |session| reader::schedules(session, &query))
    }

    fn count_schedules(&self, query: ScheduleQuery) -> Reply<'_, u64> {
        ask!(self.readers, |session| reader::count_schedules(session, &query))
    }

    fn create_queue(&self, queue: NewQueue) -> Reply<'_, Queue> {
        Box::pin(async move {
            let declare: Reply<'_, Queue> = alone!(self.chores, |session| queues::create(session, &queue));
            let declared = declare.await?;
            self.keys.forget();
            let learnt: Reply<'_, ()> = alone!(self.chores, |session| self.queues.refresh(session));
            learnt.await?;
            Ok(declared)
        })
    }

    fn update_queue(&self, queue: QueueKey, settings: QueueSettings) -> Reply<'_, Option<Queue>> {
        Box::pin(async move {
            let update: Reply<'_, Option<Queue>> =
                transact!(self.chores, |session| queues::update(session, &self.queues, queue, &settings));
            let updated = update.await?;
            let learnt: Reply<'_, ()> = alone!(self.chores, |session| self.queues.refresh(session));
            learnt.await?;
            Ok(updated)
        })
    }

    fn queues(&self, namespace: Option<Arc<str>>) -> Reply<'_, Vec<Queue>> {
        ask!(self.readers, |session| reader::all_queues(session, namespace.as_deref()))
    }

    fn queue_depth(&self, queue: QueueKey) -> Reply<'_, QueueDepth> {
        ask!(self.readers, |session| reader::depth(session, queue))
    }

    fn claim(&self, claim: Claim) -> Reply<'_, Taken> {
        wait(self.lanes.claim(claim))
    }

    fn live_runs(&self, kept: Kept, after: Option<RunKey>, count: usize) -> Reply<'_, Vec<LiveRun>> {
        ask!(self.readers, |session| reader::live_runs(session, &kept, after, count))
    }

    fn load_runs(&self, runs: Vec<RunKey>) -> Reply<'_, Vec<Option<StoredRun>>> {
        ask!(self.readers, |session| reader::load_runs(session, &runs))
    }

    fn closed_run(&self, tree: TreeKey, start: StartId) -> Reply<'_, Option<RunKey>> {
        ask!(self.readers, |session| reader::closed_run(session, tree, start))
    }

    fn runs(&self, query: RunQuery) -> Reply<'_, Page<StoredRun>> {
        ask!(self.readers, |session| reader::runs(session, &query))
    }

    fn run_details(&self, run: RunKey) -> Reply<'_, RunDetails> {
        ask!(self.readers, |session| reader::run_details(session, run))
    }

    fn secret(&self, fresh: [u8; 32]) -> Reply<'_, [u8; 32]> {
        alone!(self.chores, |session| async {
            let sql = "INSERT INTO punctual.meta (name, bytes) VALUES ('secret', $1)
                ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING bytes";
            let row = session.find(sql, &[&&fresh[..]]).await?;
            let kept: Option<[u8; 32]> = row.and_then(|row| row.get::<_, &[u8]>(0).try_into().ok());
            Ok(kept.ok_or_else(|| StoreError::corrupted("the table meta", "the secret has another length"))?)
        })
    }

    fn document(&self, name: Arc<str>) -> Reply<'_, Option<Document>> {
        ask!(self.readers, |session| documents::read(session, &name))
    }

    fn put_document(&self, name: Arc<str>, version: u64, bytes: Bytes) -> Reply<'_, bool> {
        alone!(self.chores, |session| documents::put(session, &name, version, &bytes))
    }

    fn retire(&self, retention: Retention) -> Reply<'_, u64> {
        Box::pin(async move {
            let removed = async {
                let (session, _guard) = self.chores.alone().await?;
                retire::retire(&session, &retention, self.options.removes_days).await
            };
            removed.await.map_err(|fault: Fault| fault.answer())
        })
    }
}
