//! What a shard is told, and what it asks to be done.

use std::ops::Range;
use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::{Answer, Dispatch, Note, Rejection, ScheduleKey, StartId, StopKind, Verdict};
use punctual_store::{Batch, QueueKey, RunKey, RunWrite, StoreError, StoredTree, TreeKey, TreeRef};

use crate::verb::{Verb, Work};

/// Somebody who waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A batch on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchId(pub u64);

/// Which schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// By its name.
    Name(ScheduleKey),
    /// By its key.
    Tree(TreeKey),
}

/// One piece of work.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// Who waits for it, if anybody does.
    pub ticket: Option<Ticket>,
    /// Which schedule.
    pub target: Target,
    /// What is to be done.
    pub work: Work,
    /// Changes of runs that must be written together with it.
    pub runs: Vec<RunWrite>,
    /// How often it was tried.
    pub tries: u32,
}

impl Assignment {
    /// A timer that came.
    pub(super) fn wake(tree: TreeKey) -> Assignment {
        Assignment {
            ticket: None,
            target: Target::Tree(tree),
            work: Work::Change(Verb::Wake),
            runs: Vec::new(),
            tries: 0,
        }
    }
}

impl Assignment {
    /// Whether it changes this run.
    pub(super) fn speaks_of(&self, wanted: RunKey) -> bool {
        self.changed_runs().any(|run| run == wanted)
    }

    /// Whether one of these changes a run that it changes too. What a store compares is the run as it was before the unit, so
    /// two ends of one run in one unit would both be found good.
    pub(super) fn meets(&self, others: &[Assignment]) -> bool {
        self.changed_runs().any(|run| others.iter().any(|other| other.speaks_of(run)))
    }

    fn changed_runs(&self) -> impl Iterator<Item = RunKey> {
        self.runs.iter().map(|write| match write {
            RunWrite::Insert(made) => made.run,
            RunWrite::Retry { run, .. }
            | RunWrite::Release { run }
            | RunWrite::Stop { run, .. }
            | RunWrite::Close { run, .. }
            | RunWrite::HandOver { run, .. }
            | RunWrite::Bury { run }
            | RunWrite::Details { run, .. } => *run,
        })
    }

    /// Whether it may share a unit with others: not after a unit of it was refused.
    pub(super) fn is_sociable(&self) -> bool {
        self.tries == 0 || self.runs.is_empty()
    }
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// Somebody wants something.
    Submit(Assignment),
    /// Timers of schedules that were stored before this owner came.
    Timers(Vec<(TreeKey, Option<Timestamp>)>),
    /// Somebody who does not own the shard has written a schedule of it.
    Moved {
        /// Which one.
        tree: TreeKey,
        /// When it wants to be woken.
        due_time: Option<Timestamp>,
    },
    /// Such news may have been missed.
    MissedNews,
    /// A queue exists.
    QueueDeclared {
        /// Its namespace.
        namespace: Arc<str>,
        /// Its name.
        name: Arc<str>,
        /// Its key.
        queue: QueueKey,
    },
    /// All queues were declared that exist.
    QueuesListed,
    /// Keys that nobody else will get.
    Reserved {
        /// The keys.
        keys: Range<i64>,
    },
    /// No keys could be had; the shard will ask again.
    ReserveFailed,
    /// What was asked for.
    Loaded {
        /// In this order.
        trees: Vec<TreeRef>,
        /// What is stored.
        answer: Result<Vec<Option<StoredTree>>, StoreError>,
    },
    /// What became of a batch.
    Committed {
        /// Which one.
        batch: BatchId,
        /// One answer for each unit, or none at all.
        answer: Result<Vec<Result<(), StoreError>>, StoreError>,
    },
}

/// What is to be done.
#[derive(Debug)]
pub enum Effect {
    /// Load these.
    Load(Vec<TreeRef>),
    /// Write this.
    Commit {
        /// Its name, for the answer.
        batch: BatchId,
        /// What to write.
        units: Batch,
    },
    /// Get this many keys.
    Reserve {
        /// How many.
        count: u32,
    },
    /// Declare all queues that exist: one that is wanted is not known here.
    ListQueues,
    /// Answer somebody; for a change, only after it is durable.
    Reply {
        /// Whom.
        ticket: Ticket,
        /// With what.
        answer: Result<Answer, Refusal>,
    },
    /// Runs were made on a queue.
    RunsMade {
        /// Which queue.
        queue: QueueKey,
        /// The runs.
        runs: Vec<MadeRun>,
    },
    /// Call somebody outside to start a run.
    Start {
        /// Of which schedule.
        tree: TreeKey,
        /// Its name.
        key: Arc<ScheduleKey>,
        /// Which start.
        dispatch: Dispatch,
    },
    /// Ask a run to stop.
    Stop {
        /// Of which schedule.
        tree: TreeKey,
        /// Which start.
        start: StartId,
        /// Its run, if it is on a queue.
        run: Option<RunKey>,
        /// How hard.
        kind: StopKind,
    },
    /// Find out about a silent run.
    Check {
        /// Of which schedule.
        tree: TreeKey,
        /// Which start.
        start: StartId,
        /// Its run, if it is on a queue.
        run: Option<RunKey>,
    },
    /// Something for the event log.
    Noted {
        /// Of which schedule.
        key: Arc<ScheduleKey>,
        /// When.
        at: Timestamp,
        /// What.
        note: Note,
        /// The run that it is about, if it is on a queue.
        run: Option<RunKey>,
    },
    /// Occurrences got their verdict; for counting.
    Decided {
        /// What became of them.
        verdict: Verdict,
        /// How many.
        count: u64,
    },
    /// A batch was written; for counting.
    Written {
        /// How many units.
        units: usize,
        /// Units that somebody else was faster with.
        conflicts: usize,
    },
    /// The database did not answer.
    Stumbled {
        /// What it said.
        reason: String,
        /// How often in a row.
        failures: u32,
    },
    /// A schedule is broken and does nothing any more.
    Quarantined {
        /// Which one.
        tree: TreeKey,
        /// Its name.
        key: ScheduleKey,
        /// Why.
        reason: Arc<str>,
    },
    /// The shard belongs to somebody else.
    Fenced,
}

/// A run that was just made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeRun {
    /// Which one.
    pub run: RunKey,
    /// When it should begin.
    pub due_time: Timestamp,
    /// When it must be over, claimed or not.
    pub last_time: Option<Timestamp>,
}

/// Why a piece of work was not done.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// There is no such schedule.
    NotFound,
    /// Its own rules say no.
    Rejected(Rejection),
    /// The run that it speaks of has moved on.
    RunMoved,
    /// Others were faster too often.
    Aborted {
        /// How often it was tried.
        tries: u32,
    },
    /// The database does not answer.
    Unavailable(String),
    /// The schedule is broken.
    Quarantined(Arc<str>),
    /// Somebody else drives the shard.
    NotOwner,
}
