//! The schedule of a unit: compared by epoch and sequence, then written; what did not change is not touched.

use punctual_core::ScheduleKey;
use punctual_store::record::verdict_number;
use punctual_store::{Conflict, Expected, Sequence, StoreError, TreeKey, TreeView, TreeWrite};

use super::Careful;
use crate::fast::NEW_VIEW;
use crate::fault::Fault;
use crate::value::{self, time};

impl Careful<'_> {
    /// Why the schedule cannot be written, if so. What it is judged by stays as it is until the transaction ends.
    pub(super) async fn check_tree(&self, write: &TreeWrite) -> Result<Option<StoreError>, Fault> {
        if let Some(believed) = write.epoch {
            let sql = "SELECT epoch FROM punctual.lease WHERE shard = $1 FOR KEY SHARE";
            let found = self.session.find(sql, &[&(write.shard.0 as i32)]).await?;
            if found.map_or(0, |row| row.get::<_, i64>(0)) as u64 != believed.0 {
                return Ok(Some(StoreError::Fenced { epoch: believed }));
            }
        }
        match &write.expected {
            Expected::At(expected) => {
                let found = self.sequence(write.tree).await?;
                let moved = Conflict::Sequence { expected: *expected, found };
                Ok((found != Some(*expected)).then_some(StoreError::Conflict(moved)))
            }
            Expected::New { key, replaces } => {
                let taken =
                    self.holder(key).await? != *replaces || self.sequence(write.tree).await?.is_some();
                Ok(taken.then_some(StoreError::Conflict(Conflict::NameTaken)))
            }
        }
    }

    async fn sequence(&self, tree: TreeKey) -> Result<Option<Sequence>, Fault> {
        let sql = "SELECT sequence FROM punctual.state WHERE tree = $1 FOR UPDATE";
        let found = self.session.find(sql, &[&tree.0]).await?;
        Ok(found.map(|row| Sequence(row.get::<_, i64>(0) as u64)))
    }

    async fn holder(&self, key: &ScheduleKey) -> Result<Option<TreeKey>, Fault> {
        let sql = "SELECT tree FROM punctual.schedule_name WHERE namespace = $1 AND id = $2 FOR UPDATE";
        let found = self.session.find(sql, &[&&key.namespace[..], &&key.schedule[..]]).await?;
        Ok(found.map(|row| TreeKey(row.get(0))))
    }

    /// Writes the schedule, which was compared.
    pub(super) async fn write_tree(&self, write: &TreeWrite) -> Result<(), Fault> {
        let (session, tree, due_time) = (self.session, write.tree.0, write.due_time.map(time));
        let sequence = match &write.expected {
            Expected::At(expected) => {
                let sql = "UPDATE punctual.state SET sequence = sequence + 1, due_time = $2, bytes = $3 WHERE tree = $1";
                session.execute(sql, &[&tree, &due_time, &&write.state[..]]).await?;
                self.write_parts(write).await?;
                (expected.0 as i64).wrapping_add(1)
            }
            Expected::New { key, replaces } => {
                let sql =
                    "INSERT INTO punctual.state (tree, sequence, due_time, bytes) VALUES ($1, 1, $2, $3)";
                session.execute(sql, &[&tree, &due_time, &&write.state[..]]).await?;
                self.insert_schedule(write, key, replaces.is_some()).await?;
                1
            }
        };
        match &write.completion {
            None => {}
            Some(Some(bytes)) => {
                let sql = "INSERT INTO punctual.completion (tree, bytes) VALUES ($1, $2)
                    ON CONFLICT (tree) DO UPDATE SET bytes = excluded.bytes";
                session.execute(sql, &[&tree, &&bytes[..]]).await?;
            }
            Some(None) => {
                session.execute("DELETE FROM punctual.completion WHERE tree = $1", &[&tree]).await?;
            }
        }
        self.write_ledger(write, sequence).await?;
        if write.retired { self.remove_tree(tree).await } else { Ok(()) }
    }

    async fn insert_schedule(
        &self,
        write: &TreeWrite,
        key: &ScheduleKey,
        replaces: bool,
    ) -> Result<(), Fault> {
        let (namespace, id, tree) = (&key.namespace[..], &key.schedule[..], write.tree.0);
        let definition = write.definition.as_deref().unwrap_or_default();
        let sql = "INSERT INTO punctual.schedule (tree, shard, namespace, id, definition) VALUES ($1, $2, $3, $4, $5)";
        self.session.execute(sql, &[&tree, &(write.shard.0 as i32), &namespace, &id, &definition]).await?;
        let TreeView { lifespan, paused, queue } = write.view.unwrap_or(NEW_VIEW);
        let (lifespan, queue) = (value::lifespan_number(lifespan) as i16, queue.map(|queue| queue.0));
        // Whoever held the name is only found by its key from now on.
        let sql = if replaces {
            "UPDATE punctual.schedule_name SET tree = $3, lifespan = $4, paused = $5, queue = $6
            WHERE namespace = $1 AND id = $2"
        } else {
            "INSERT INTO punctual.schedule_name (namespace, id, tree, lifespan, paused, queue)
            VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING"
        };
        let written =
            self.session.execute(sql, &[&namespace, &id, &tree, &lifespan, &paused, &queue]).await?;
        if written == 0 {
            return Err(Fault::Overtaken);
        }
        Ok(())
    }

    /// What changes rarely.
    async fn write_parts(&self, write: &TreeWrite) -> Result<(), Fault> {
        let tree = write.tree.0;
        if let Some(definition) = &write.definition {
            let sql = "UPDATE punctual.schedule SET definition = $2 WHERE tree = $1";
            self.session.execute(sql, &[&tree, &&definition[..]]).await?;
        }
        if let Some(TreeView { lifespan, paused, queue }) = write.view {
            let (lifespan, queue) = (value::lifespan_number(lifespan) as i16, queue.map(|queue| queue.0));
            let sql = "UPDATE punctual.schedule_name AS name SET lifespan = $2, paused = $3, queue = $4
                FROM punctual.schedule WHERE schedule.tree = $1 AND name.namespace = schedule.namespace
                    AND name.id = schedule.id AND name.tree = $1";
            self.session.execute(sql, &[&tree, &lifespan, &paused, &queue]).await?;
        }
        Ok(())
    }

    async fn write_ledger(&self, write: &TreeWrite, sequence: i64) -> Result<(), Fault> {
        let sql = "INSERT INTO punctual.ledger
                (tree, wide, from_time, through_time, origin, sequence, place, count, at_least, verdict, decided_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
        for (place, entry) in write.ledger.iter().enumerate() {
            let (from, through, decided_at) = (time(entry.from), time(entry.through), time(entry.decided_at));
            let origin = value::sorted(value::request(entry.origin));
            let (count, verdict) = (entry.count as i64, verdict_number(entry.verdict) as i16);
            let (wide, place) = (entry.from != entry.through, value::count(place));
            self.session
                .execute(
                    sql,
                    &[
                        &write.tree.0,
                        &wide,
                        &from,
                        &through,
                        &origin,
                        &sequence,
                        &place,
                        &count,
                        &entry.at_least,
                        &verdict,
                        &decided_at,
                    ],
                )
                .await?;
        }
        Ok(())
    }

    async fn remove_tree(&self, tree: i64) -> Result<(), Fault> {
        // The name is found by the schedule's row, so it goes first.
        let release = "DELETE FROM punctual.schedule_name AS name USING punctual.schedule
            WHERE schedule.tree = $1 AND name.namespace = schedule.namespace AND name.id = schedule.id
                AND name.tree = $1";
        self.session.execute(release, &[&tree]).await?;
        self.session.execute("DELETE FROM punctual.schedule WHERE tree = $1", &[&tree]).await?;
        self.session.execute("DELETE FROM punctual.state WHERE tree = $1", &[&tree]).await?;
        self.session.execute("DELETE FROM punctual.completion WHERE tree = $1", &[&tree]).await?;
        self.session.execute("DELETE FROM punctual.ledger WHERE tree = $1", &[&tree]).await?;
        Ok(())
    }
}
