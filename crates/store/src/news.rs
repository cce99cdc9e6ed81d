//! What nodes tell each other.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::{Note, ScheduleKey, StartId};

use crate::key::{Keeper, QueueKey, RunKey, ShardId, TreeKey};
use crate::run::Closing;

/// What nodes tell each other through the database. It saves waiting; no promise rests on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Runs became ready in this queue, or room did.
    Ready(QueueKey),
    /// Somebody waits for runs of this queue, and wants to hear of some.
    Wanted {
        /// Which queue.
        queue: QueueKey,
        /// The node at which it waits.
        at: Keeper,
    },
    /// A queue was declared, or its settings changed.
    Queue(QueueKey),
    /// A schedule was written by a node that does not own it, and wants to be woken then.
    Tree {
        /// Its shard.
        shard: ShardId,
        /// Which one.
        tree: TreeKey,
        /// When.
        due_time: Option<Timestamp>,
    },
    /// Somebody wants a run to stop, or has ended it while a worker had it.
    Stop(RunKey),
    /// A run has ended at a node that does not drive its schedule. Whoever does writes both, and says so.
    Ending(Box<Ending>),
    /// What became of such an end.
    Written {
        /// Whom it concerns.
        to: Keeper,
        /// Which end.
        ticket: u64,
        /// What became of it.
        answer: EndingAnswer,
    },
    /// Somebody watches at this node, for a while: what happens elsewhere is to be told.
    Watched {
        /// The node.
        at: Keeper,
        /// What is watched.
        watch: Watch,
    },
    /// Something happened to a schedule that is watched at another node.
    Happened(Box<Told>),
    /// So much more happened than was told.
    Untold {
        /// Where.
        from: Keeper,
        /// How much.
        count: u64,
    },
    /// Nodes came, went, or gave shards away.
    Roster,
    /// Something may have been missed: look at everything.
    Gap,
}

/// The end of a run, told to whoever drives its schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Who tells it, and waits for the answer.
    pub from: Keeper,
    /// Its name, among those of the same node.
    pub ticket: u64,
    /// The shard of the schedule.
    pub shard: ShardId,
    /// The schedule.
    pub tree: TreeKey,
    /// Which of its starts.
    pub start: StartId,
    /// The run.
    pub run: RunKey,
    /// The attempt that ended it; nothing if it may be in any state.
    pub attempt: Option<u32>,
    /// How it ended.
    pub closing: Closing,
}

/// What became of the end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndingAnswer {
    /// It is durable, and the schedule has heard of it.
    Written,
    /// The run is not as the teller believed.
    RunMoved,
    /// Nothing was written: the teller has to see to it.
    Refused,
}

/// What is watched: one schedule, or all of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watch {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The schedule; nothing: all of them.
    pub schedule: Option<Arc<str>>,
}

impl Watch {
    /// Whether it is about this schedule.
    pub fn covers(&self, key: &ScheduleKey) -> bool {
        *self.namespace == *key.namespace
            && self.schedule.as_ref().is_none_or(|schedule| **schedule == *key.schedule)
    }
}

/// Something that happened to a schedule, told to those who watch it at other nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The node at which it happened.
    pub from: Keeper,
    /// Of which schedule.
    pub key: ScheduleKey,
    /// When.
    pub at: Timestamp,
    /// What.
    pub note: Note,
    /// The run that it is about, if it is on a queue.
    pub run: Option<RunKey>,
}
