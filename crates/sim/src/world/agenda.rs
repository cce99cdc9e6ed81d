//! What will happen, and when.

use std::collections::BinaryHeap;

use jiff::Timestamp;
use punctual_core::{Dispatch, Outcome, StartId, StopKind};
use punctual_engine::cluster::Orphans;
use punctual_engine::shard::{Assignment, BatchId, Event, Ticket};
use punctual_store::{Batch, News, RunKey, ShardId, TreeKey, TreeRef};

use super::clients::Asked;
use super::node::{Process, Who};
use super::rounds::Heard;
use crate::chronicle::Sent;

/// Timers of a shard, as they are stored.
pub(super) type Timers = Vec<(TreeKey, Option<Timestamp>)>;

/// What happens at a time.
#[derive(Debug)]
pub(super) enum Happening {
    Beat,
    /// A process begins.
    Boot {
        node: usize,
    },
    /// A process looks who is there.
    Round {
        who: Who,
        round: u64,
    },
    /// What the store says to that.
    Answer {
        who: Who,
        heard: Box<Heard>,
    },
    /// A process takes over from those that are gone.
    Adopt {
        who: Who,
        orphans: Box<Orphans>,
    },
    /// A process that took a shard reads its timers.
    ReadTimers {
        who: Who,
        shard: ShardId,
        life: u64,
    },
    /// It drives the shard.
    Drive {
        by: Process,
        shard: ShardId,
        timers: Timers,
    },
    /// A node does not stand still any more.
    GoOn {
        node: usize,
    },
    CutMended {
        node: usize,
    },
    DatabaseBack,
    News {
        who: Who,
        news: Box<News>,
    },
    /// A process compares what it remembers with what is stored.
    CheckTimers {
        who: Who,
    },
    /// A node is asked for something.
    Serve {
        who: Who,
        shard: ShardId,
        work: Box<Assignment>,
    },
    /// Whoever told an end to its owner has waited for long enough.
    LosePatienceWithOwner {
        who: Who,
        ticket: u64,
    },
    /// A node's shard may have something to do.
    Tick {
        by: Process,
    },
    /// A node reads.
    Load {
        by: Process,
        trees: Vec<TreeRef>,
    },
    /// A node wants keys.
    Reserve {
        by: Process,
        count: u32,
    },
    /// A batch reaches the store.
    Arrive(Box<Letter>),
    /// An answer reaches a node's shard.
    Hear {
        by: Process,
        event: Box<Event>,
    },
    /// A process learns that it has missed news.
    Gap {
        who: Who,
    },
    /// A client or a worker wants something of whoever serves.
    Ask(Box<Asked>),
    /// Whoever waits for this has waited for long enough.
    LosePatience(Ticket),
    Start {
        by: Process,
        tree: TreeKey,
        dispatch: Dispatch,
    },
    RunEnds {
        tree: TreeKey,
        start: StartId,
    },
    Stop {
        by: Process,
        tree: TreeKey,
        start: StartId,
        run: Option<RunKey>,
        kind: StopKind,
    },
    Look {
        by: Process,
        tree: TreeKey,
        start: StartId,
    },
    /// A worker looks for something to do.
    Claim,
    AttemptEnds {
        run: RunKey,
        attempt: u32,
        outcome: Outcome,
    },
    /// A run that was backing off may be claimed again.
    Release {
        run: RunKey,
    },
}

impl Happening {
    /// The node in which it happens, if it happens in one: while that stands still, it has to wait.
    pub(super) fn place(&self) -> Option<usize> {
        match self {
            Happening::Round { who, .. }
            | Happening::Answer { who, .. }
            | Happening::Adopt { who, .. }
            | Happening::ReadTimers { who, .. }
            | Happening::News { who, .. }
            | Happening::CheckTimers { who }
            | Happening::Serve { who, .. }
            | Happening::LosePatienceWithOwner { who, .. }
            | Happening::Gap { who } => Some(who.node),
            Happening::Drive { by, .. } | Happening::Tick { by } | Happening::Hear { by, .. } => {
                Some(by.node)
            }
            Happening::Beat
            | Happening::Boot { .. }
            | Happening::GoOn { .. }
            | Happening::CutMended { .. }
            | Happening::DatabaseBack
            | Happening::Load { .. }
            | Happening::Reserve { .. }
            | Happening::Arrive(_)
            | Happening::Ask(_)
            | Happening::LosePatience(_)
            | Happening::Start { .. }
            | Happening::RunEnds { .. }
            | Happening::Stop { .. }
            | Happening::Look { .. }
            | Happening::Claim
            | Happening::AttemptEnds { .. }
            | Happening::Release { .. } => None,
        }
    }

    /// Whether it is something that workers do in the database, and have to wait with while that is away.
    pub(super) fn needs_database(&self) -> bool {
        matches!(self, Happening::Claim | Happening::AttemptEnds { .. } | Happening::Release { .. })
    }
}

/// A batch on its way to the store.
#[derive(Debug)]
pub(super) struct Letter {
    pub(super) by: Process,
    pub(super) batch: BatchId,
    pub(super) units: Batch,
    /// What each unit does.
    pub(super) sent: Vec<Sent>,
    /// Whoever sent it has given up waiting.
    pub(super) given_up: bool,
}

/// All that is to come; at one time, in the order in which it was added.
#[derive(Default)]
pub(super) struct Agenda {
    entries: BinaryHeap<Entry>,
    count: u64,
}

impl Agenda {
    pub(super) fn add(&mut self, time: Timestamp, happening: Happening) {
        self.count += 1;
        self.entries.push(Entry { time, number: self.count, happening });
    }

    /// The next thing, if it is not after the end.
    pub(super) fn take(&mut self, end: Timestamp) -> Option<(Timestamp, Happening)> {
        self.entries.peek().filter(|entry| entry.time <= end)?;
        self.entries.pop().map(|entry| (entry.time, entry.happening))
    }
}

/// A line of the agenda; the earliest is the greatest.
struct Entry {
    time: Timestamp,
    number: u64,
    happening: Happening,
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> std::cmp::Ordering {
        (other.time, other.number).cmp(&(self.time, self.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.number == other.number
    }
}

impl Eq for Entry {}
