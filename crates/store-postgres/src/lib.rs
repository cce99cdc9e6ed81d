//! The store for many nodes: one PostgreSQL, and no other coordinator.
//!
//! Reading order: [`Postgres`], `store` (the contract, method by method), `lane` (what waits becomes one transaction),
//! `fast` (units that meet nobody, as a few statements over arrays), `spots` (where rows are, without their indexes), `careful` (all others, one after another), `reader`,
//! `roster` (leases and nodes, by the database's clock), `news` (what nodes tell each other), `days` (history by day), `anew` (tables that grow while somebody holds a snapshot open),
//! `proxy` (what one on the way must do for us), `import` (everything from another database).
//!
//! Every commit holds the row of its shard's epoch against change, and compares the sequence of each schedule in the statement
//! that writes it: so two owners of a shard, or an owner and a command on another node, cannot both advance a schedule.

mod anew;
mod careful;
mod days;
mod documents;
mod fast;
mod fault;
mod floor;
mod fresh;
mod import;
mod keys;
mod lane;
mod news;
mod open;
mod options;
mod pace;
mod pool;
mod proxy;
mod queues;
mod reader;
mod retire;
mod roster;
mod session;
mod spots;
mod store;
mod value;

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub use import::{Begun, ImportError, Imported, Moved, Phase, Progress, import};
pub use options::Options;
use punctual_store::News;

use keys::Keys;
use lane::Lanes;
use news::Listeners;
use pool::Pool;
use queues::Queues;
use spots::Spots;

/// A store in a PostgreSQL database, used by any number of processes at a time.
pub struct Postgres {
    shards: u32,
    options: Arc<Options>,
    /// Questions.
    readers: Pool,
    /// Leases and nodes: they wait for nobody else.
    beats: Pool,
    /// What may take a while.
    chores: Arc<Pool>,
    lanes: Arc<Lanes>,
    queues: Arc<Queues>,
    spots: Arc<Spots>,
    keys: Keys,
    listeners: Arc<Listeners>,
    teller: mpsc::UnboundedSender<News>,
    tasks: Vec<JoinHandle<()>>,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}
