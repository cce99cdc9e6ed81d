//! The simulated store: compares before it writes, and remembers everything for the checkers.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::{Definition, Effects, Entry, RequestId, ScheduleTree};

use crate::story::Event;

/// One stored schedule.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its state.
    pub tree: ScheduleTree,
    /// Counts its transitions; compared on every commit.
    pub sequence: u64,
    /// What became of its occurrences, with the definition that was in force.
    pub ledger: Vec<(Entry, Arc<Definition>)>,
    /// The committed changes, in order, with the time that the schedule saw.
    pub log: Vec<(Timestamp, Event)>,
    /// As it was created.
    pub first_definition: Arc<Definition>,
    /// When it was created.
    pub created_at: Timestamp,
    /// The limit it was created with.
    pub remaining_actions: Option<u32>,
    /// The requests that were obeyed.
    pub obeyed: BTreeSet<RequestId>,
    /// The most runs that any of its definitions allowed beside each other.
    pub concurrency_max: u32,
}

/// One atomic write.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Which schedule.
    pub schedule: usize,
    /// The sequence that was read.
    pub expected: u64,
    /// The epoch that the writer believes in; nothing for commands, which any node may make.
    pub epoch: Option<u64>,
    /// The new state.
    pub tree: ScheduleTree,
    /// What it asks for.
    pub effects: Effects,
    /// What was done, and the time that the schedule saw.
    pub event: (Timestamp, Event),
}

/// Why a commit was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Somebody else was faster.
    Conflict,
    /// The writer is no longer the owner.
    Fenced,
}

/// All schedules, and who may drive them.
#[derive(Clone, Debug, Default)]
pub struct Store {
    /// The schedules.
    pub schedules: Vec<Stored>,
    /// Counts changes of ownership.
    pub epoch: u64,
    /// A deliberate fault: who believes to be the owner is not compared.
    pub trusts_owners: bool,
    /// A deliberate fault: what was read is not compared with what is there.
    pub trusts_readers: bool,
}

impl Store {
    /// Writes all or nothing.
    pub fn commit(&mut self, commit: &Commit) -> Result<(), Refused> {
        if commit.epoch.is_some_and(|epoch| epoch != self.epoch) && !self.trusts_owners {
            return Err(Refused::Fenced);
        }
        let stored = &mut self.schedules[commit.schedule];
        if stored.sequence != commit.expected && !self.trusts_readers {
            return Err(Refused::Conflict);
        }
        // An update decides what was due by the old definition, before the new one comes into force.
        let definition = stored.tree.definition().clone();
        stored.ledger.extend(commit.effects.ledger.iter().map(|entry| (entry.clone(), definition.clone())));
        stored.tree = commit.tree.clone();
        stored.sequence += 1;
        stored.log.push(commit.event.clone());
        let concurrency = stored.tree.definition().schedule().policies.concurrency;
        stored.concurrency_max = stored.concurrency_max.max(concurrency);
        Ok(())
    }
}
