//! The contract, method by method: writes go to the writer, questions to the readers, and callers only wait for answers.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Entry, StartId};
use punctual_store::{
    Batch, Beat, Bytes, Claim, Document, Keeper, Kept, Lease, Listener, LiveRun, NewQueue, News, NodeId,
    Page, Queue, QueueDepth, QueueKey, QueueSettings, Reply, Retention, Roster, RunDetails, RunKey, RunQuery,
    ScheduleQuery, ShardId, Store, StoreError, StoredRun, StoredTree, Taken, TreeKey, TreeRef,
};
use rusqlite::Connection;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::oneshot;

use crate::fault::Fault;
use crate::writer::{self, Answer, Weight, Writer};
use crate::{Sqlite, reader};

const ONE_ROW: Weight = Weight { rows: 1, bytes: 0 };

impl Sqlite {
    fn write<T: Send + 'static>(
        &self,
        weight: Weight,
        work: impl FnMut(&mut Writer<'_>) -> Result<Answer<T>, Fault> + Send + 'static,
    ) -> Reply<'_, T> {
        let (errand, answer) = writer::errand(weight, work);
        wait(self.errands.as_ref(), errand, answer)
    }

    /// Steps that the database's machine took for writes since this was asked last: what they cost, on whatever machine,
    /// however busy it is.
    pub fn steps(&self) -> Reply<'_, u64> {
        self.write(ONE_ROW, |writer| Ok(Ok(writer.steps())))
    }

    fn read<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Reply<'_, T> {
        let (question, answer) = reader::question(ask);
        wait(self.questions.as_ref(), question, answer)
    }
}

/// Hands a request over at once if there is room, so that requests are served in the order they were made.
fn wait<'a, R: Send + 'static, T: Send + 'static>(
    to: Option<&'a Sender<R>>,
    request: R,
    answer: oneshot::Receiver<Result<T, StoreError>>,
) -> Reply<'a, T> {
    let late = match to.map(|to| (to, to.try_send(request))) {
        Some((_, Ok(()))) | None => None,
        Some((to, Err(TrySendError::Full(request)))) => Some((to, request)),
        Some((_, Err(TrySendError::Closed(_)))) => None,
    };
    Box::pin(async move {
        if let Some((to, request)) = late {
            // If the thread is gone, the answer says so.
            let _ = to.send(request).await;
        }
        answer.await.unwrap_or_else(|_| Err(StoreError::unavailable("the store's thread has ended")))
    })
}

impl Store for Sqlite {
    fn now(&self) -> Reply<'_, Timestamp> {
        Box::pin(std::future::ready(Ok(Timestamp::now())))
    }

    fn shards(&self) -> u32 {
        self.shards
    }

    fn acquire(&self, shard: ShardId, node: NodeId, ttl: SignedDuration) -> Reply<'_, Option<Lease>> {
        self.write(ONE_ROW, move |writer| Ok(Ok(writer.acquire(shard, &node, ttl)?)))
    }

    fn renew(&self, lease: Lease, ttl: SignedDuration) -> Reply<'_, Lease> {
        self.write(ONE_ROW, move |writer| writer.renew(&lease, ttl))
    }

    fn release(&self, lease: Lease) -> Reply<'_, ()> {
        self.write(ONE_ROW, move |writer| Ok(Ok(writer.release(&lease)?)))
    }

    fn is_shared(&self) -> bool {
        false
    }

    /// Nobody else is there: the file has one process.
    fn beat(&self, _beat: Beat) -> Reply<'_, Roster> {
        self.roster()
    }

    fn roster(&self) -> Reply<'_, Roster> {
        self.write(ONE_ROW, move |writer| Ok(Ok(writer.roster())))
    }

    fn reports(&self) -> Reply<'_, Vec<(Keeper, Bytes)>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    fn strike(&self, _node: NodeId, _leaves: bool) -> Reply<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn drain(&self, _node: NodeId, _draining: bool) -> Reply<'_, bool> {
        Box::pin(std::future::ready(Ok(false)))
    }

    fn keep(&self, _runs: Vec<RunKey>, _keeper: Keeper) -> Reply<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn listen(&self) -> Option<Listener> {
        None
    }

    fn tell(&self, _news: News) {}

    fn reserve(&self, count: u32) -> Reply<'_, i64> {
        self.write(ONE_ROW, move |writer| Ok(Ok(writer.reserve(count)?)))
    }

    fn commit(&self, batch: Batch) -> Reply<'_, Vec<Result<(), StoreError>>> {
        let weight = writer::weight(&batch);
        self.write(weight, move |writer| Ok(Ok(writer.commit(&batch)?)))
    }

    fn load(&self, trees: Vec<TreeRef>) -> Reply<'_, Vec<Option<StoredTree>>> {
        self.read(move |connection| reader::load(connection, &trees))
    }

    fn timers(
        &self,
        shard: ShardId,
        after: Option<TreeKey>,
        count: usize,
    ) -> Reply<'_, Vec<(TreeKey, Option<Timestamp>)>> {
        self.read(move |connection| reader::timers(connection, shard, after, count))
    }

    fn ledger(
        &self,
        tree: TreeKey,
        after: Timestamp,
        through: Timestamp,
        count: usize,
    ) -> Reply<'_, Vec<Entry>> {
        self.read(move |connection| reader::ledger(connection, tree, (after, through), count))
    }

    fn schedules(&self, query: ScheduleQuery) -> Reply<'_, Page<StoredTree>> {
        self.read(move |connection| reader::schedules(connection, &query))
    }

    fn count_schedules(&self, query: ScheduleQuery) -> Reply<'_, u64> {
        self.read(move |connection| reader::count_schedules(connection, &query))
    }

    fn create_queue(&self, queue: NewQueue) -> Reply<'_, Queue> {
        self.write(ONE_ROW, move |writer| Ok(Ok(writer.create_queue(&queue)?)))
    }

    fn update_queue(&self, queue: QueueKey, settings: QueueSettings) -> Reply<'_, Option<Queue>> {
        // It may have to look at all runs of the queue, so it has a transaction of its own.
        let weight = Weight { rows: writer::GROUP_ROWS_MAX, bytes: 0 };
        self.write(weight, move |writer| Ok(Ok(writer.update_queue(queue, &settings)?)))
    }

    fn queues(&self, namespace: Option<Arc<str>>) -> Reply<'_, Vec<Queue>> {
        self.read(move |connection| reader::queues(connection, namespace.as_deref()))
    }

    fn queue_depth(&self, queue: QueueKey) -> Reply<'_, QueueDepth> {
        let depth = self.counts.of(queue);
        if depth.ready == 0 {
            return Box::pin(std::future::ready(Ok(depth)));
        }
        let counts = self.counts.clone();
        self.read(move |connection| {
            let first_made_at = reader::first_made_at(connection, queue)?;
            let depth = counts.of(queue);
            Ok(QueueDepth { first_made_at: first_made_at.filter(|_| depth.ready > 0), ..depth })
        })
    }

    fn claim(&self, claim: Claim) -> Reply<'_, Taken> {
        let weight = Weight { rows: claim.runs_max, bytes: 0 };
        self.write(weight, move |writer| Ok(Ok(writer.claim(&claim)?)))
    }

    fn live_runs(&self, _kept: Kept, after: Option<RunKey>, count: usize) -> Reply<'_, Vec<LiveRun>> {
        self.read(move |connection| reader::live_runs(connection, after, count))
    }

    fn load_runs(&self, runs: Vec<RunKey>) -> Reply<'_, Vec<Option<StoredRun>>> {
        self.read(move |connection| reader::load_runs(connection, &runs))
    }

    fn closed_run(&self, tree: TreeKey, start: StartId) -> Reply<'_, Option<RunKey>> {
        self.read(move |connection| reader::closed_run(connection, tree, start))
    }

    fn runs(&self, query: RunQuery) -> Reply<'_, Page<StoredRun>> {
        self.read(move |connection| reader::runs(connection, &query))
    }

    fn run_details(&self, run: RunKey) -> Reply<'_, RunDetails> {
        self.read(move |connection| reader::run_details(connection, run))
    }

    fn secret(&self, fresh: [u8; 32]) -> Reply<'_, [u8; 32]> {
        self.write(ONE_ROW, move |writer| Ok(Ok(writer.secret(&fresh)?)))
    }

    fn document(&self, name: Arc<str>) -> Reply<'_, Option<Document>> {
        self.read(move |connection| reader::document(connection, &name))
    }

    fn put_document(&self, name: Arc<str>, version: u64, bytes: Bytes) -> Reply<'_, bool> {
        let weight = Weight { rows: 1, bytes: bytes.len() };
        self.write(weight, move |writer| Ok(Ok(writer.put_document(&name, version, &bytes)?)))
    }

    fn retire(&self, retention: Retention) -> Reply<'_, u64> {
        let weight = Weight { rows: retention.rows_max, bytes: 0 };
        self.write(weight, move |writer| Ok(Ok(writer.retire(&retention)?)))
    }
}
