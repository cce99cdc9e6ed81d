//! The schedule of a unit: compared by epoch and sequence, then written; what did not change is not touched.

use punctual_core::ScheduleKey;
use punctual_store::record::verdict_number;
use punctual_store::{
    Conflict, Epoch, Expected, Lifespan, Sequence, StoreError, TreeKey, TreeView, TreeWrite,
};
use rusqlite::OptionalExtension;

use super::Writer;
use crate::fault::Fault;
use crate::value::{self, Time};

impl Writer<'_> {
    /// Why the schedule cannot be written, if so.
    pub(super) fn check_tree(&mut self, write: &TreeWrite) -> Result<Option<StoreError>, Fault> {
        if let Some(fenced) = self.check_epoch(write) {
            return Ok(Some(fenced));
        }
        match &write.expected {
            Expected::At(expected) => {
                let found = self.sequence(write.tree)?;
                Ok((found != Some(*expected)).then(|| moved(*expected, found)))
            }
            Expected::New { key, replaces } => {
                let taken = self.holder(key)? != *replaces || self.sequence(write.tree)?.is_some();
                Ok(taken.then_some(StoreError::Conflict(Conflict::NameTaken)))
            }
        }
    }

    /// Writes the schedule, or says why not and writes nothing.
    pub(super) fn write_tree(&mut self, write: &TreeWrite) -> Result<Option<StoreError>, Fault> {
        let tree = write.tree.0;
        let due_time = write.due_time.map(Time);
        let sequence = match &write.expected {
            Expected::At(expected) => {
                if let Some(fenced) = self.check_epoch(write) {
                    return Ok(Some(fenced));
                }
                let before = expected.0 as i64;
                let changed =
                    self.statements.update_state.execute((tree, before, due_time, &write.state[..]))?;
                if changed == 0 {
                    return Ok(Some(moved(*expected, self.sequence(write.tree)?)));
                }
                self.write_parts(write)?;
                before.wrapping_add(1)
            }
            Expected::New { key, .. } => {
                if let Some(refusal) = self.check_tree(write)? {
                    return Ok(Some(refusal));
                }
                self.statements.insert_state.execute((tree, due_time, &write.state[..]))?;
                self.insert_schedule(write, key)?;
                1
            }
        };
        if let Some(completion) = &write.completion {
            match completion {
                Some(bytes) => self.statements.set_completion.execute((tree, &bytes[..]))?,
                None => self.statements.clear_completion.execute([tree])?,
            };
        }
        self.write_ledger(write, sequence)?;
        if write.retired {
            self.remove_tree(tree)?;
        }
        Ok(None)
    }

    fn check_epoch(&self, write: &TreeWrite) -> Option<StoreError> {
        let believed = write.epoch?;
        let epoch = self.known.leases.get(&write.shard).map_or(Epoch(0), |held| held.epoch);
        (believed != epoch).then_some(StoreError::Fenced { epoch: believed })
    }

    fn sequence(&mut self, tree: TreeKey) -> rusqlite::Result<Option<Sequence>> {
        let found = self.statements.sequence.query_row([tree.0], |row| row.get::<_, i64>(0)).optional()?;
        Ok(found.map(|sequence| Sequence(sequence as u64)))
    }

    fn holder(&mut self, key: &ScheduleKey) -> rusqlite::Result<Option<TreeKey>> {
        let name = (&key.namespace[..], &key.schedule[..]);
        self.statements.name.query_row(name, |row| row.get(0).map(TreeKey)).optional()
    }

    fn insert_schedule(&mut self, write: &TreeWrite, key: &ScheduleKey) -> Result<(), Fault> {
        let (namespace, id) = (&key.namespace[..], &key.schedule[..]);
        let definition = write.definition.as_deref().unwrap_or_default();
        let row = (write.tree.0, write.shard.0, namespace, id, definition);
        self.statements.insert_schedule.execute(row)?;
        let view = write.view.unwrap_or(TreeView { lifespan: Lifespan::Open, paused: false, queue: None });
        let (lifespan, queue) = (value::lifespan_number(view.lifespan), view.queue.map(|queue| queue.0));
        let row = (namespace, id, write.tree.0, lifespan, view.paused, queue);
        // Whoever held the name is only found by its key from now on.
        self.statements.take_name.execute(row)?;
        Ok(())
    }

    /// What changes rarely.
    fn write_parts(&mut self, write: &TreeWrite) -> Result<(), Fault> {
        if let Some(definition) = &write.definition {
            self.statements.update_definition.execute((write.tree.0, &definition[..]))?;
        }
        if let Some(view) = write.view {
            let (lifespan, queue) = (value::lifespan_number(view.lifespan), view.queue.map(|queue| queue.0));
            self.statements.update_view.execute((write.tree.0, lifespan, view.paused, queue))?;
        }
        Ok(())
    }

    fn write_ledger(&mut self, write: &TreeWrite, sequence: i64) -> Result<(), Fault> {
        for (place, entry) in write.ledger.iter().enumerate() {
            self.statements.insert_ledger.execute((
                write.tree.0,
                entry.from != entry.through,
                Time(entry.from),
                Time(entry.through),
                value::sorted(value::request(entry.origin)),
                sequence,
                value::count(place),
                entry.count as i64,
                entry.at_least,
                verdict_number(entry.verdict),
                Time(entry.decided_at),
            ))?;
        }
        self.known.ledger += value::count(write.ledger.len());
        Ok(())
    }

    fn remove_tree(&mut self, tree: i64) -> Result<(), Fault> {
        let statements = &mut self.statements;
        // The name is found by the schedule's row, so it goes first.
        statements.release_name.execute([tree])?;
        statements.delete_schedule.execute([tree])?;
        statements.delete_state.execute([tree])?;
        statements.clear_completion.execute([tree])?;
        self.known.ledger -= value::count(statements.delete_ledger.execute([tree])?);
        Ok(())
    }
}

fn moved(expected: Sequence, found: Option<Sequence>) -> StoreError {
    StoreError::Conflict(Conflict::Sequence { expected, found })
}
