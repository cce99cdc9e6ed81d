//! The runs of a unit: made, tried again, handed over, stopped, closed, buried.

use std::sync::Arc;

use punctual_core::Outcome;
use punctual_store::turn::Place;
use punctual_store::{Closing, Keeper, NewRun, RunKey, RunWrite};

use super::Careful;
use crate::fault::Fault;
use crate::value::{self, BACKING_OFF, READY, RUNNING, run_columns, time};

/// What decides whether a run may be written.
pub(super) struct Seen {
    queue: i64,
    state: i64,
    attempt: u32,
    rank: i64,
    key: Arc<str>,
}

impl Seen {
    pub(super) fn is_running(&self, attempt: u32) -> bool {
        self.state == RUNNING && self.attempt == attempt
    }
}

impl Careful<'_> {
    /// A live run, held until the transaction ends; before it its queue, if that serves keys in turn.
    pub(super) async fn seen(&self, run: RunKey) -> Result<Option<Seen>, Fault> {
        let sql = "SELECT queue FROM punctual.run_live WHERE run = $1 AND keyed";
        if let Some(row) = self.session.find(sql, &[&run.0]).await? {
            self.queue(row.get(0)).await?;
        }
        let sql = "SELECT queue, state, attempt, rank, key FROM punctual.run_live WHERE run = $1 FOR UPDATE";
        Ok(self.session.find(sql, &[&run.0]).await?.map(|row| Seen {
            queue: row.get(0),
            state: row.get::<_, i16>(1).into(),
            attempt: row.get::<_, i32>(2) as u32,
            rank: row.get(3),
            key: value::text(row.get(4)),
        }))
    }

    /// Writes one change. What has become pointless within the unit is passed over.
    pub(super) async fn write_run(&self, write: &RunWrite, keeper: Keeper) -> Result<(), Fault> {
        match write {
            RunWrite::Insert(made) => return self.insert_run(made, keeper).await,
            RunWrite::Retry { run, not_before, failure, .. } => {
                let Some(seen) = self.seen(*run).await? else { return Ok(()) };
                let sql = "UPDATE punctual.run_live
                    SET state = 1, since = $2, worker = NULL, failure = $3, keeper = $4, limited = false WHERE run = $1";
                self.session.execute(sql, &[&run.0, &time(*not_before), &&failure[..], &keeper.0]).await?;
                self.leave(*run, &seen).await?;
            }
            RunWrite::Release { run } => {
                let Some(seen) = self.seen(*run).await?.filter(|seen| seen.state == BACKING_OFF) else {
                    return Ok(());
                };
                let sql = "UPDATE punctual.run_live SET state = 0, since = NULL WHERE run = $1";
                self.session.execute(sql, &[&run.0]).await?;
                if self.queue(seen.queue).await?.settings.is_keyed() {
                    self.queue_up(seen.queue, &seen.key, Place { rank: seen.rank, run: run.0 }).await?;
                }
            }
            RunWrite::Stop { run, kind } => {
                let sql = "UPDATE punctual.run_live SET stop = greatest(stop, $2) WHERE run = $1";
                self.session.execute(sql, &[&run.0, &(value::stop_number(*kind) as i16)]).await?;
            }
            RunWrite::Close { run, closing, .. } => self.close_run(*run, closing).await?,
            RunWrite::HandOver { run, worker, .. } => {
                let sql = "UPDATE punctual.run_live SET worker = $2 WHERE run = $1 AND state = 2";
                self.session.execute(sql, &[&run.0, &&worker[..]]).await?;
            }
            RunWrite::Bury { run } => {
                let sql = "UPDATE punctual.run_closed SET dead = false WHERE run = $1 AND dead";
                self.session.execute(sql, &[&run.0]).await?;
            }
            RunWrite::Details { run, attempt, progress, log_tail } => {
                let sql = "INSERT INTO punctual.run_detail (run, progress, log_tail)
                    SELECT run, $3::bytea, $4::bytea FROM punctual.run_live WHERE run = $1 AND attempt = $2
                    ON CONFLICT (run) DO UPDATE SET progress = coalesce(excluded.progress, run_detail.progress),
                        log_tail = coalesce(excluded.log_tail, run_detail.log_tail)";
                let (progress, log_tail) = (progress.as_deref(), log_tail.as_deref());
                self.session.execute(sql, &[&run.0, &(*attempt as i32), &progress, &log_tail]).await?;
            }
        }
        Ok(())
    }

    async fn insert_run(&self, made: &NewRun, keeper: Keeper) -> Result<(), Fault> {
        let known = self.queue(made.queue.0).await?;
        let (rank, keyed) = (known.settings.rank(made.created_at, made.priority), known.settings.is_keyed());
        let tree = made.origin.map(|(tree, _)| tree.0);
        let nominal_ms = made.origin.map(|(_, start)| start.nominal_ms);
        let request = made.origin.map(|(_, start)| value::request(start.origin) as i64);
        let not_before = made.not_before.map(time);
        let state = if made.not_before.is_some() { BACKING_OFF } else { READY };
        let (due_time, created_at) = (time(made.due_time), time(made.created_at));
        let (key, dedup) = (made.key.as_bytes(), made.dedup.as_deref().map(str::as_bytes));
        let sql = "INSERT INTO punctual.run_live
                (run, queue, tree, nominal_ms, request, rank, due_time, created_at, since, not_before, keeper, state,
                priority, keyed, key, dedup, body, attempt, stop, limited)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10, $11, $12, $13, $14, $15, $16, 0, 0, false)";
        self.session
            .execute(
                sql,
                &[
                    &made.run.0,
                    &made.queue.0,
                    &tree,
                    &nominal_ms,
                    &request,
                    &rank,
                    &due_time,
                    &created_at,
                    &not_before,
                    &keeper.0,
                    &(state as i16),
                    &made.priority,
                    &keyed,
                    &key,
                    &dedup,
                    &&made.body[..],
                ],
            )
            .await?;
        if keyed && state == READY {
            self.queue_up(made.queue.0, &made.key, Place { rank, run: made.run.0 }).await?;
        }
        Ok(())
    }

    async fn close_run(&self, run: RunKey, closing: &Closing) -> Result<(), Fault> {
        let Some(seen) = self.seen(run).await? else { return Ok(()) };
        let Closing { outcome, closed_at, payload } = closing;
        let is_dead = matches!(outcome, Outcome::Failed | Outcome::TimedOut);
        let sql = concat!(
            "WITH gone AS (DELETE FROM punctual.run_live WHERE run = $1 RETURNING *)
            INSERT INTO punctual.run_closed (",
            run_columns!(),
            ", outcome, closed_at, dead, payload) SELECT ",
            run_columns!(),
            ", $2::smallint, $3::bigint, $4::boolean, $5::bytea FROM gone"
        );
        let outcome = value::outcome_number(*outcome) as i16;
        self.session
            .execute(sql, &[&run.0, &outcome, &time(*closed_at), &is_dead, &payload.as_deref()])
            .await?;
        self.leave(run, &seen).await
    }

    /// A run is no longer where it was seen; its row says so already.
    async fn leave(&self, run: RunKey, seen: &Seen) -> Result<(), Fault> {
        if !self.queue(seen.queue).await?.settings.is_keyed() {
            return Ok(());
        }
        match seen.state {
            READY => self.key_lost_ready(seen.queue, &seen.key, run.0).await,
            RUNNING => self.key_lost_running(seen.queue, &seen.key).await,
            _ => Ok(()),
        }
    }
}
