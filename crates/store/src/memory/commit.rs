//! Writes units: each is checked as a whole, then written as a whole.

use std::sync::Arc;

use punctual_core::Outcome;

use super::{Inner, Row};
use crate::{
    Conflict, Epoch, Expected, Keeper, Lifespan, LiveRun, LiveState, NewRun, News, RunKey, RunRequest,
    RunWrite, Sequence, StoreError, StoredRun, StoredTree, TreeView, TreeWrite, Unit,
};

impl Inner {
    /// Checks everything, then writes everything.
    pub(super) fn commit(&mut self, unit: &Unit, keeper: Keeper) -> Result<(), StoreError> {
        if let Some(write) = &unit.tree {
            self.check_tree(write)?;
        }
        // Whoever asks the same again shall hear that, whatever became of the runs.
        if let Some(request) = &unit.request {
            let place = (request.namespace.clone(), request.id.clone());
            if let Some(RunRequest { runs, .. }) = self.requests.get(&place) {
                return Err(StoreError::Conflict(Conflict::Repeated { runs: runs.clone() }));
            }
        }
        for (place, write) in unit.runs.iter().enumerate() {
            self.check_run(write, &unit.runs[..place])?;
        }
        if let Some(request) = &unit.request {
            let place = (request.namespace.clone(), request.id.clone());
            self.requests.insert(place, request.clone());
        }
        if let Some(write) = &unit.tree {
            self.write_tree(write);
            if write.epoch.is_none() {
                let (shard, tree, due_time) = (write.shard, write.tree, write.due_time);
                self.tell(&News::Tree { shard, tree, due_time });
            }
        }
        for write in &unit.runs {
            self.write_run(write, keeper);
        }
        Ok(())
    }

    fn check_tree(&self, write: &TreeWrite) -> Result<(), StoreError> {
        let epoch = self.leases.get(&write.shard).map_or(Epoch(0), |(epoch, _)| *epoch);
        if let Some(believed) = write.epoch.filter(|believed| *believed != epoch) {
            return Err(StoreError::Fenced { epoch: believed });
        }
        match &write.expected {
            Expected::At(expected) => {
                let found = self.trees.get(&write.tree).map(|row| row.stored.sequence);
                if found != Some(*expected) {
                    return Err(StoreError::Conflict(Conflict::Sequence { expected: *expected, found }));
                }
            }
            Expected::New { key, replaces } => {
                if self.names.get(key).copied() != *replaces || self.trees.contains_key(&write.tree) {
                    return Err(StoreError::Conflict(Conflict::NameTaken));
                }
            }
        }
        Ok(())
    }

    /// Runs are judged by what was there before the unit, and by what it makes before.
    fn check_run(&self, write: &RunWrite, before: &[RunWrite]) -> Result<(), StoreError> {
        let moved = |run: RunKey| Err(StoreError::Conflict(Conflict::RunMoved { run }));
        let mut made_before = before.iter().filter_map(|write| match write {
            RunWrite::Insert(made) => Some(made),
            _ => None,
        });
        match write {
            RunWrite::Insert(made)
                if self.live.contains_key(&made.run)
                    || self.closed.contains_key(&made.run)
                    || made_before.clone().any(|other| other.run == made.run) =>
            {
                moved(made.run)
            }
            RunWrite::Insert(made) if made.dedup.is_some() => {
                let same = |other: &&NewRun| other.queue == made.queue && other.dedup == made.dedup;
                let live = self.live.values().map(|live| &live.made).find(same);
                match live.or_else(|| made_before.find(same)) {
                    Some(other) => Err(StoreError::Conflict(Conflict::Duplicate { run: other.run })),
                    None => Ok(()),
                }
            }
            RunWrite::Bury { run } if !self.closed.get(run).is_some_and(|run| run.is_dead_letter) => {
                moved(*run)
            }
            RunWrite::Retry { run, attempt, .. }
            | RunWrite::HandOver { run, attempt, .. }
            | RunWrite::Close { run, attempt: Some(attempt), .. } => {
                let running = |live: &LiveRun| {
                    matches!(live.state, LiveState::Running { .. }) && live.attempt == *attempt
                };
                if self.live.get(run).is_some_and(running) { Ok(()) } else { moved(*run) }
            }
            RunWrite::Close { run, attempt: None, .. } if !self.live.contains_key(run) => moved(*run),
            RunWrite::Insert(_)
            | RunWrite::Close { .. }
            | RunWrite::Release { .. }
            | RunWrite::Stop { .. }
            | RunWrite::Bury { .. }
            | RunWrite::Details { .. } => Ok(()),
        }
    }

    fn write_tree(&mut self, write: &TreeWrite) {
        if let Expected::New { key, replaces } = &write.expected {
            if let Some(row) = replaces.and_then(|old| self.trees.get_mut(&old)) {
                row.replaced = true;
            }
            self.names.insert(key.clone(), write.tree);
            let stored = StoredTree {
                tree: write.tree,
                shard: write.shard,
                key: key.clone(),
                sequence: Sequence(0),
                due_time: None,
                definition: Arc::new([]),
                state: Arc::new([]),
                completion: None,
            };
            let view = TreeView { lifespan: Lifespan::Open, paused: false, queue: None };
            self.trees.insert(write.tree, Row { stored, view, replaced: false });
        }
        let Some(row) = self.trees.get_mut(&write.tree) else { return };
        row.stored.sequence.0 += 1;
        row.stored.state = write.state.clone();
        row.stored.due_time = write.due_time;
        if let Some(definition) = &write.definition {
            row.stored.definition = definition.clone();
        }
        if let Some(completion) = &write.completion {
            row.stored.completion = completion.clone();
        }
        row.view = write.view.unwrap_or(row.view);
        self.ledger.entry(write.tree).or_default().extend(write.ledger.iter().cloned());
        if write.retired
            && let Some(row) = self.trees.remove(&write.tree)
        {
            self.ledger.remove(&write.tree);
            if !row.replaced {
                self.names.remove(&row.stored.key);
            }
        }
    }

    fn write_run(&mut self, write: &RunWrite, keeper: Keeper) {
        match write {
            RunWrite::Insert(made) => {
                let state = match made.not_before {
                    Some(not_before) => LiveState::BackingOff { not_before },
                    None => LiveState::Ready,
                };
                let settings = self.queues.get(&made.queue).map(|queue| queue.made.settings.clone());
                let rank = settings.unwrap_or_default().rank(made.created_at, made.priority);
                self.ranks.insert(made.run, rank);
                if made.not_before.is_none() {
                    self.queue_up(made.queue, &made.key);
                }
                let live =
                    LiveRun { made: made.clone(), attempt: 0, state, stop: None, failure: None, keeper };
                self.live.insert(made.run, live);
            }
            RunWrite::Retry { run, not_before, failure, .. } => {
                if let Some(live) = self.live.get_mut(run) {
                    live.state = LiveState::BackingOff { not_before: *not_before };
                    live.failure = Some(failure.clone());
                    live.keeper = keeper;
                }
            }
            RunWrite::Release { run } => {
                let waits = |live: &LiveRun| matches!(live.state, LiveState::BackingOff { .. });
                if let Some(live) = self.live.get(run).filter(|live| waits(live)).cloned() {
                    self.queue_up(live.made.queue, &live.made.key);
                    self.live.insert(*run, LiveRun { state: LiveState::Ready, ..live });
                }
            }
            RunWrite::Stop { run, kind } => {
                if let Some(live) = self.live.get_mut(run) {
                    live.stop = live.stop.max(Some(*kind));
                }
            }
            RunWrite::Close { run, closing, .. } => {
                if let Some(live) = self.live.remove(run) {
                    let is_dead_letter = matches!(closing.outcome, Outcome::Failed | Outcome::TimedOut);
                    let closing = Some(closing.clone());
                    self.closed.insert(*run, StoredRun { run: live, closing, is_dead_letter });
                }
            }
            RunWrite::HandOver { run, worker: to, .. } => {
                if let Some(LiveState::Running { worker, .. }) =
                    self.live.get_mut(run).map(|live| &mut live.state)
                {
                    *worker = to.clone();
                }
            }
            RunWrite::Bury { run } => {
                if let Some(closed) = self.closed.get_mut(run) {
                    closed.is_dead_letter = false;
                }
            }
            RunWrite::Details { run, attempt, progress, log_tail } => {
                if self.live.get(run).is_some_and(|live| live.attempt == *attempt) {
                    let details = self.details.entry(*run).or_default();
                    details.progress = progress.clone().or(details.progress.take());
                    details.log_tail = log_tail.clone().or(details.log_tail.take());
                }
            }
        }
    }
}
