//! What could refuse a unit, besides its schedule. Nothing is written yet, so each run is judged by what was there before
//! the unit.

use punctual_store::{Conflict, NewRun, RunKey, RunRequest, RunWrite, StoreError};
use rusqlite::OptionalExtension;

use super::Writer;
use crate::fault::Fault;
use crate::value;

impl Writer<'_> {
    /// Why the request cannot be heard, if so.
    pub(super) fn check_request(&mut self, request: &RunRequest) -> Result<Option<StoreError>, Fault> {
        let name = (&request.namespace[..], &request.id[..]);
        let known = self.statements.request.query_row(name, |row| row.get::<_, Vec<u8>>(0)).optional()?;
        Ok(known.map(|runs| StoreError::Conflict(Conflict::Repeated { runs: value::runs_of(&runs) })))
    }

    /// Why the runs cannot be written, if so.
    pub(super) fn check_runs(&mut self, writes: &[RunWrite]) -> Result<Option<StoreError>, Fault> {
        let mut run_max = self.known.run_max;
        for (place, write) in writes.iter().enumerate() {
            let refusal = match write {
                RunWrite::Insert(made) => {
                    let is_new = made.run.0 > run_max;
                    run_max = run_max.max(made.run.0);
                    let refusal = if is_new { None } else { self.check_insert(made.run, &writes[..place])? };
                    match refusal {
                        None => self.check_dedup(made, &writes[..place])?,
                        refusal => refusal,
                    }
                }
                RunWrite::Retry { run, attempt, .. } | RunWrite::HandOver { run, attempt, .. } => {
                    let seen = self.seen(*run)?;
                    seen.is_none_or(|seen| !seen.is_running(*attempt)).then(|| moved(*run))
                }
                RunWrite::Close { run, attempt, .. } => self.check_close(*run, *attempt)?,
                RunWrite::Bury { run } => {
                    let dead: Option<bool> =
                        self.statements.is_dead_run.query_row([run.0], |row| row.get(0)).optional()?;
                    (dead != Some(true)).then(|| moved(*run))
                }
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

    fn check_dedup(&mut self, made: &NewRun, before: &[RunWrite]) -> Result<Option<StoreError>, Fault> {
        let Some(dedup) = &made.dedup else { return Ok(None) };
        let live = (made.queue.0, &dedup[..]);
        let live: Option<i64> = self.statements.dedup.query_row(live, |row| row.get(0)).optional()?;
        let within = before.iter().find_map(|write| match write {
            RunWrite::Insert(other) if other.queue == made.queue && other.dedup == made.dedup => {
                Some(other.run)
            }
            _ => None,
        });
        let same = live.map(RunKey).or(within);
        Ok(same.map(|run| StoreError::Conflict(Conflict::Duplicate { run })))
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
}

fn moved(run: RunKey) -> StoreError {
    StoreError::Conflict(Conflict::RunMoved { run })
}
