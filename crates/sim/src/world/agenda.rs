//! What will happen, and when.

use std::collections::BinaryHeap;

use jiff::Timestamp;
use punctual_core::{Dispatch, Outcome, StartId, StopKind};
use punctual_engine::shard::{BatchId, Event, Ticket};
use punctual_store::{Batch, RunKey, TreeKey, TreeRef};

use super::clients::Asked;
use super::node::Process;
use crate::chronicle::Sent;

/// What happens at a time.
#[derive(Debug)]
pub(super) enum Happening {
    Beat,
    Revive {
        node: usize,
    },
    /// Somebody should own the schedules.
    Elect,
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
    /// An owner learns that it has missed news.
    Gap {
        by: Process,
    },
    /// A client or a worker wants something of whoever owns the schedules.
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
