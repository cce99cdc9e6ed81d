//! Who is there: the nodes that share a database, and what they tell each other.

use jiff::{SignedDuration, Timestamp};

use punctual_core::StartId;

use crate::key::{Keeper, NodeId, QueueKey, RunKey, ShardId, TreeKey};
use crate::lease::Lease;
use crate::run::Closing;

/// A node tells that it is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Who.
    pub node: NodeId,
    /// The number under which it looks after runs.
    pub keeper: Keeper,
    /// When its process began.
    pub started_at: Timestamp,
    /// The release that it runs.
    pub version: String,
    /// How long it counts as alive without another word.
    pub ttl: SignedDuration,
}

/// Everybody who is there, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    /// The moment, by the database's clock.
    pub now: Timestamp,
    /// The node that asked did not count as alive just before: others may have taken over what it looked after.
    pub was_over: bool,
    /// The nodes, by keeper; those too that were not heard of in time, until they are struck off.
    pub nodes: Vec<NodeSeen>,
    /// Who holds which shard, by shard; those too whose time is over. A shard that nobody holds is left out.
    pub leases: Vec<Lease>,
}

/// A node, as the roster has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSeen {
    /// Who.
    pub node: NodeId,
    /// The number under which it looks after runs.
    pub keeper: Keeper,
    /// When its process began.
    pub started_at: Timestamp,
    /// The release that it runs.
    pub version: String,
    /// Until when it counts as alive.
    pub expires_at: Timestamp,
    /// It is to give its shards to others, and take none.
    pub draining: bool,
}

/// Which live runs, by who looks after them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// All.
    #[default]
    ByAnybody,
    /// Those of one node.
    By(Keeper),
    /// Those that none of these looks after.
    ByNoneOf(Vec<Keeper>),
}

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
