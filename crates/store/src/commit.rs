//! One atomic write: parts of schedules and runs that become durable together, and what must hold for it.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::{Entry, ScheduleKey, StopKind};

use crate::Bytes;
use crate::key::{Epoch, Keeper, QueueKey, RunKey, Sequence, ShardId, TreeKey};
use crate::query::Lifespan;
use crate::run::{Closing, NewRun};

/// Units that share one database transaction. They do not depend on each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Written in this order.
    pub units: Vec<Unit>,
    /// Who looks after the runs that are made, or wait for another attempt, by it.
    pub keeper: Keeper,
    /// Nobody waits for the answer: a store may let a moment pass, to write more at a time.
    pub patient: bool,
}

impl Batch {
    /// Units whose runs nobody else could look after.
    pub fn of(units: Vec<Unit>) -> Batch {
        Batch { units, ..Batch::default() }
    }
}

/// What is written wholly or not at all: at most one schedule, and the runs that begin, end or change with it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unit {
    /// The schedule.
    pub tree: Option<TreeWrite>,
    /// The runs, in order.
    pub runs: Vec<RunWrite>,
    /// A request that must not be heard twice.
    pub request: Option<RunRequest>,
}

/// A client's request that makes runs. One that was heard before makes the whole unit a
/// [`Conflict::Repeated`](crate::Conflict::Repeated). It is remembered as long as closed runs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRequest {
    /// Whose.
    pub namespace: Arc<str>,
    /// The client's own id.
    pub id: Arc<str>,
    /// The runs that it made.
    pub runs: Vec<RunKey>,
    /// When.
    pub made_at: Timestamp,
}

/// The new state of one schedule. What did not change is left out.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeWrite {
    /// Which one.
    pub tree: TreeKey,
    /// The shard that it hashes to.
    pub shard: ShardId,
    /// The epoch that the writer believes in; nothing for commands, which any node may make.
    pub epoch: Option<Epoch>,
    /// What must hold.
    pub expected: Expected,
    /// What the user asked for; rarely written.
    pub definition: Option<Bytes>,
    /// What lists can ask for; rarely written.
    pub view: Option<TreeView>,
    /// Everything that moves with each start.
    pub state: Bytes,
    /// The result and failure of the last run; the inner nothing removes them.
    pub completion: Option<Option<Bytes>>,
    /// When it wants to be woken. No store indexes it: the owner of a shard holds its timers in memory.
    pub due_time: Option<Timestamp>,
    /// What became of occurrences; a started one is told by its run.
    pub ledger: Vec<Entry>,
    /// Remove the schedule with its ledger and completion; runs stay until their own retention.
    pub retired: bool,
}

/// What must hold for a schedule to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It is new, and its name is free, or held by a closed schedule that it replaces.
    New {
        /// Its name.
        key: ScheduleKey,
        /// The schedule that gives up its name; it stays until its own retention. The caller has seen it closed, and no
        /// verb opens a closed schedule again.
        replaces: Option<TreeKey>,
    },
    /// It was not written since this sequence was read.
    At(Sequence),
}

/// What lists can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeView {
    /// Whether it is in use.
    pub lifespan: Lifespan,
    /// Whether it is paused.
    pub paused: bool,
    /// The queue of its runs.
    pub queue: Option<QueueKey>,
}

/// A change of one run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunWrite {
    /// A new run, ready to be claimed unless it is for later. A key that was used before, for a live or a closed run, is a
    /// conflict; so is a deduplication id that a live run of the queue has, or one that the unit makes before.
    Insert(NewRun),
    /// An attempt ended badly, and another one will follow.
    Retry {
        /// Which run.
        run: RunKey,
        /// The attempt that ended; another one means that this has moved on.
        attempt: u32,
        /// When the next attempt may be.
        not_before: Timestamp,
        /// The failure record.
        failure: Bytes,
    },
    /// A run that was backing off may be claimed again; harmless if it may be already.
    Release {
        /// Which run.
        run: RunKey,
    },
    /// Somebody wants the run to stop; a harder request replaces a softer one.
    Stop {
        /// Which run.
        run: RunKey,
        /// How hard.
        kind: StopKind,
    },
    /// The run ended.
    Close {
        /// Which run.
        run: RunKey,
        /// The attempt that ended it; nothing if it may be in any state.
        attempt: Option<u32>,
        /// How it ended.
        closing: Closing,
    },
    /// An attempt goes on in other hands: somebody else will report its end. Another attempt means that this has moved on.
    HandOver {
        /// Which run.
        run: RunKey,
        /// Which attempt.
        attempt: u32,
        /// Who has it now.
        worker: Arc<str>,
    },
    /// A dead letter was dealt with: tried again as another run, or given up. Conflict if it is none.
    Bury {
        /// Which run; it has ended.
        run: RunKey,
    },
    /// What the worker told on its way; harmless if the attempt is over.
    Details {
        /// Which run.
        run: RunKey,
        /// The attempt that tells it.
        attempt: u32,
        /// How far it is.
        progress: Option<Bytes>,
        /// The last lines of its log; replaces those before.
        log_tail: Option<Bytes>,
    },
}
