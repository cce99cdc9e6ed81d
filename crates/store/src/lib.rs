//! What is durable: the narrow contract between the engine and a database, and the forms in which state is kept.
//!
//! Nothing here assumes one process. Every write of a schedule names the sequence that was read, and the epoch that a
//! driver believes in; if either has moved, nothing of that unit is written. So two owners of a shard, a process that was
//! stopped and wakes up, or a command on another node cannot both advance a schedule. Leases only keep two
//! nodes from trying the same work.
//!
//! Reading order: [`Store`], then [`Batch`] and [`Unit`] (one atomic write), [`LiveRun`] (the life of a run), [`record`] (bytes),
//! [`transfer`] (everything as rows that can move), [`memory`] (the contract as short code), `conformance` (the contract as tests).

mod key;
mod hash;
mod error;
mod commit;
mod tree;
mod run;
mod queue;
mod lease;
mod roster;
mod news;
mod query;
mod document;
pub mod record;
pub mod number;
pub mod turn;
pub mod transfer;
pub mod memory;
#[cfg(feature = "conformance")]
pub mod conformance;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Entry, StartId};
use tokio::sync::mpsc;

pub use commit::{Batch, Expected, RunRequest, RunWrite, TreeView, TreeWrite, Unit};
pub use document::{DOCUMENT_BYTES_MAX, Document};
pub use error::{Conflict, StoreError};
pub use hash::{KeyMap, KeySet};
pub use key::{Epoch, Keeper, NodeId, QueueKey, RunKey, Sequence, ShardId, TreeKey, shard_of};
pub use lease::Lease;
pub use news::{Ending, EndingAnswer, News, Told, Watch};
pub use query::{Lifespan, Page, Retention, RunFilter, RunQuery, ScheduleQuery};
pub use queue::{NewQueue, Queue, QueueDepth, QueueSettings, Rate};
pub use roster::{Beat, Kept, NodeSeen, Roster};
pub use run::{Claim, Closing, LiveRun, LiveState, NewRun, RunDetails, StoredRun, Taken};
pub use tree::{StoredTree, TreeRef};

/// Bytes that a store keeps and never looks into.
pub type Bytes = Arc<[u8]>;

/// What other nodes tell, as it comes.
pub type Listener = mpsc::UnboundedReceiver<News>;

/// An answer that takes a while.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A database that keeps schedules, runs and who may drive them.
pub trait Store: Send + Sync + 'static {
    /// The database's clock, by which leases are judged.
    fn now(&self) -> Reply<'_, Timestamp>;

    /// How many shards schedules are spread over; fixed when the database was first used.
    fn shards(&self) -> u32;

    /// Takes a shard, if nobody holds it or its lease is over; taking it anew always moves the epoch.
    /// Nothing if another node holds it.
    fn acquire(&self, shard: ShardId, node: NodeId, ttl: SignedDuration) -> Reply<'_, Option<Lease>>;

    /// Makes a lease last longer, even one that is over, if nobody has taken the shard since; else [`StoreError::Fenced`].
    fn renew(&self, lease: Lease, ttl: SignedDuration) -> Reply<'_, Lease>;

    /// Gives a shard up, so that another node need not wait; harmless if it was lost.
    fn release(&self, lease: Lease) -> Reply<'_, ()>;

    /// Makes many leases last longer at once; each has its own answer, in order.
    fn renew_all(
        &self,
        leases: Vec<Lease>,
        ttl: SignedDuration,
    ) -> Reply<'_, Vec<Result<Lease, StoreError>>> {
        Box::pin(async move {
            let mut answers = Vec::with_capacity(leases.len());
            for lease in leases {
                match self.renew(lease, ttl).await {
                    Err(error @ StoreError::Unavailable { .. }) => return Err(error),
                    answer => answers.push(answer),
                }
            }
            Ok(answers)
        })
    }

    /// Whether other processes may use the database at the same time.
    fn is_shared(&self) -> bool;

    /// A node tells that it is alive, and hears who else is.
    fn beat(&self, beat: Beat) -> Reply<'_, Roster>;

    /// Everybody who is there, for those who only look.
    fn roster(&self) -> Reply<'_, Roster>;

    /// What each node that counts as alive said last about itself, by keeper; those that said nothing are left out.
    fn reports(&self) -> Reply<'_, Vec<(Keeper, Bytes)>>;

    /// Strikes a node off the roster: itself when it leaves, or another one whose time is over (harmless if it is not, unless
    /// `leaves`). What it held is free at once.
    fn strike(&self, node: NodeId, leaves: bool) -> Reply<'_, ()>;

    /// Asks a node to give its shards to others, or to take some again. False if there is no such node.
    fn drain(&self, node: NodeId, draining: bool) -> Reply<'_, bool>;

    /// From now on this node looks after these live runs; those that have ended are passed over.
    fn keep(&self, runs: Vec<RunKey>, keeper: Keeper) -> Reply<'_, ()>;

    /// What other nodes tell from now on; one's own news may come back. Nothing where nobody shares the database.
    fn listen(&self) -> Option<Listener>;

    /// Tells other nodes something soon. It may get lost with this process, and is told once for many of the same.
    fn tell(&self, news: News);

    /// Keys that nobody else will get: the first of a block of this many.
    fn reserve(&self, count: u32) -> Reply<'_, i64>;

    /// Writes a batch durably. Each unit is written wholly or not at all, and has its own answer, in order; an error of the
    /// whole means that it is not known whether anything was written.
    fn commit(&self, batch: Batch) -> Reply<'_, Vec<Result<(), StoreError>>>;

    /// Schedules by key or name, in the order asked for; nothing where there is none.
    fn load(&self, trees: Vec<TreeRef>) -> Reply<'_, Vec<Option<StoredTree>>>;

    /// When the schedules of a shard want to be woken, by ascending key, after one of them.
    fn timers(
        &self,
        shard: ShardId,
        after: Option<TreeKey>,
        count: usize,
    ) -> Reply<'_, Vec<(TreeKey, Option<Timestamp>)>>;

    /// Ledger entries of a schedule that touch `(after, through]`, ascending, at most this many.
    fn ledger(
        &self,
        tree: TreeKey,
        after: Timestamp,
        through: Timestamp,
        count: usize,
    ) -> Reply<'_, Vec<Entry>>;

    /// Schedules of a namespace, by ascending id.
    fn schedules(&self, query: ScheduleQuery) -> Reply<'_, Page<StoredTree>>;

    /// How many schedules a query finds in all; its page is ignored.
    fn count_schedules(&self, query: ScheduleQuery) -> Reply<'_, u64>;

    /// Declares a queue. One of the same name is given back as it is; the caller compares.
    fn create_queue(&self, queue: NewQueue) -> Reply<'_, Queue>;

    /// Changes the settings of a queue; they hold for every claim from then on. Nothing if there is no such queue.
    fn update_queue(&self, queue: QueueKey, settings: QueueSettings) -> Reply<'_, Option<Queue>>;

    /// The queues of a namespace, or of all, by name.
    fn queues(&self, namespace: Option<Arc<str>>) -> Reply<'_, Vec<Queue>>;

    /// How much is in a queue.
    fn queue_depth(&self, queue: QueueKey) -> Reply<'_, QueueDepth>;

    /// Hands ready runs to a worker, by rank; each begins a new attempt. No limit of the queue is ever exceeded, whoever
    /// claims at the same time. Where keys have limits of their own, each key that may go has its turn, and rank counts
    /// within a key. What it costs depends on what it hands out, not on what waits.
    fn claim(&self, claim: Claim) -> Reply<'_, Taken>;

    /// Runs that have not ended, by ascending key, after one of them.
    fn live_runs(&self, kept: Kept, after: Option<RunKey>, count: usize) -> Reply<'_, Vec<LiveRun>>;

    /// Runs by key, in the order asked for.
    fn load_runs(&self, runs: Vec<RunKey>) -> Reply<'_, Vec<Option<StoredRun>>>;

    /// The run of one start that has ended, if it is still kept.
    fn closed_run(&self, tree: TreeKey, start: StartId) -> Reply<'_, Option<RunKey>>;

    /// Runs, the latest first.
    fn runs(&self, query: RunQuery) -> Reply<'_, Page<StoredRun>>;

    /// Progress and log tail of a run.
    fn run_details(&self, run: RunKey) -> Reply<'_, RunDetails>;

    /// The secret of this database, for signing; the given one becomes it if there is none yet.
    fn secret(&self, fresh: [u8; 32]) -> Reply<'_, [u8; 32]>;

    /// A small document by its name.
    fn document(&self, name: Arc<str>) -> Reply<'_, Option<Document>>;

    /// Writes a document, if it has been written this often so far. False, and nothing is written, if it has not.
    fn put_document(&self, name: Arc<str>, version: u64, bytes: Bytes) -> Reply<'_, bool>;

    /// Removes some of what is older than the retention, in any order, and says how many rows; zero means that nothing is
    /// left to do.
    fn retire(&self, retention: Retention) -> Reply<'_, u64>;
}
