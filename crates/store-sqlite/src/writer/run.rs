//! The runs of a unit: made, tried again, stopped, closed.

use punctual_store::{Closing, Conflict, NewRun, RunKey, RunWrite, StoreError};
use rusqlite::OptionalExtension;

use super::Writer;
use crate::fault::Fault;
use crate::value::{self, Time};

/// What decides whether a run may be written, and which queue it counts for.
struct Seen {
    queue: i64,
    state: i64,
    attempt: u32,
    start: Option<(i64, i64, i64)>,
}

impl Writer<'_> {
    /// Why the runs cannot be written, if so. Nothing is written yet, so each is judged by what was there before the unit.
    pub(super) fn check_runs(&mut self, writes: &[RunWrite]) -> Result<Option<StoreError>, Fault> {
        let mut run_max = self.known.run_max;
        for (place, write) in writes.iter().enumerate() {
            let refusal = match write {
                RunWrite::Insert(made) => {
                    let is_new = made.run.0 > run_max;
                    run_max = run_max.max(made.run.0);
                    if is_new { None } else { self.check_insert(made.run, &writes[..place])? }
                }
                RunWrite::Retry { run, attempt, .. } => {
                    let seen = self.seen(*run)?;
                    seen.is_none_or(|seen| !seen.is_running(*attempt)).then(|| moved(*run))
                }
                RunWrite::Close { run, attempt, .. } => self.check_close(*run, *attempt)?,
                RunWrite::Release { .. } | RunWrite::Stop { .. } | RunWrite::Details { .. } => None,
            };
            if refusal.is_some() {
                return Ok(refusal);
            }
        }
        Ok(None)
    }

    fn check_insert(&mut self, run: RunKey, before: &[RunWrite]) -> Result<Option<StoreError>, Fault> {
        let twice = before.iter().any(|write| matches!(write, RunWrite::Insert(made) if made.run == run));
        let known = twice || self.statements.is_known_run.exists((run.0,))?;
        Ok(known.then(|| moved(run)))
    }

    fn check_close(&mut self, run: RunKey, attempt: Option<u32>) -> Result<Option<StoreError>, Fault> {
        let Some(seen) = self.seen(run)? else { return Ok(Some(moved(run))) };
        if attempt.is_some_and(|attempt| !seen.is_running(attempt)) {
            return Ok(Some(moved(run)));
        }
        // The compare of sequences keeps a start from becoming two runs; if one did, somebody must look.
        let Some(start) = seen.start else { return Ok(None) };
        let other: Option<i64> = self.statements.closed_run.query_row(start, |row| row.get(0)).optional()?;
        Ok(other.map(|other| {
            StoreError::corrupted(
                format!("run {run}"),
                format!("its start has already ended, as run {other}"),
            )
        }))
    }

    /// Writes one change. What has become pointless within the unit is passed over.
    pub(super) fn write_run(&mut self, write: &RunWrite) -> Result<(), Fault> {
        match write {
            RunWrite::Insert(made) => self.insert_run(made),
            RunWrite::Retry { run, not_before, failure, .. } => {
                if let Some(seen) = self.seen(*run)? {
                    self.statements.retry_run.execute((run.0, Time(*not_before), &failure[..]))?;
                    self.depths.add(seen.queue, seen.state, -1);
                    self.depths.add(seen.queue, value::BACKING_OFF, 1);
                }
                Ok(())
            }
            RunWrite::Release { run } => {
                let queue = self.statements.release_run.query_row([run.0], |row| row.get(0)).optional()?;
                if let Some(queue) = queue {
                    self.depths.add(queue, value::BACKING_OFF, -1);
                    self.depths.add(queue, value::READY, 1);
                }
                Ok(())
            }
            RunWrite::Stop { run, kind } => {
                self.statements.stop_run.execute((run.0, value::stop_number(*kind)))?;
                Ok(())
            }
            RunWrite::Close { run, closing, .. } => self.close_run(*run, closing),
            RunWrite::Details { run, attempt, progress, log_tail } => {
                self.statements.details.execute((
                    run.0,
                    attempt,
                    progress.as_deref(),
                    log_tail.as_deref(),
                ))?;
                Ok(())
            }
        }
    }

    fn insert_run(&mut self, made: &NewRun) -> Result<(), Fault> {
        let tree = made.origin.map(|(tree, _)| tree.0);
        let nominal_ms = made.origin.map(|(_, start)| start.nominal_ms);
        let request = made.origin.map(|(_, start)| value::request(start.origin) as i64);
        self.statements.insert_run.execute((
            made.run.0,
            made.queue.0,
            tree,
            nominal_ms,
            request,
            Time(made.due_time),
            Time(made.created_at),
            &made.body[..],
        ))?;
        self.known.run_max = self.known.run_max.max(made.run.0);
        self.depths.add(made.queue.0, value::READY, 1);
        Ok(())
    }

    fn close_run(&mut self, run: RunKey, closing: &Closing) -> Result<(), Fault> {
        let Some(seen) = self.seen(run)? else { return Ok(()) };
        let Closing { outcome, closed_at, payload } = closing;
        let outcome = value::outcome_number(*outcome);
        self.statements.close_run.execute((run.0, outcome, Time(*closed_at), payload.as_deref()))?;
        self.statements.delete_run.execute([run.0])?;
        self.depths.add(seen.queue, seen.state, -1);
        Ok(())
    }

    fn seen(&mut self, run: RunKey) -> rusqlite::Result<Option<Seen>> {
        let seen = self.statements.run.query_row([run.0], |row| {
            let tree: Option<i64> = row.get(3)?;
            let start = match tree {
                Some(tree) => Some((tree, row.get(4)?, row.get(5)?)),
                None => None,
            };
            Ok(Seen { queue: row.get(0)?, state: row.get(1)?, attempt: row.get(2)?, start })
        });
        seen.optional()
    }
}

impl Seen {
    fn is_running(&self, attempt: u32) -> bool {
        self.state == value::RUNNING && self.attempt == attempt
    }
}

fn moved(run: RunKey) -> StoreError {
    StoreError::Conflict(Conflict::RunMoved { run })
}
