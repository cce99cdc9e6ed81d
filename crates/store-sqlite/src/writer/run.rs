//! The runs of a unit: made, tried again, handed over, stopped, closed, buried.

use std::sync::Arc;

use punctual_core::Outcome;
use punctual_store::turn::Place;
use punctual_store::{Closing, NewRun, RunKey, RunWrite};
use rusqlite::OptionalExtension;

use super::Writer;
use crate::fault::Fault;
use crate::value::{self, Time};

/// What decides whether a run may be written, and which queue it counts for.
pub(super) struct Seen {
    pub(super) queue: i64,
    pub(super) state: i64,
    pub(super) attempt: u32,
    pub(super) start: Option<(i64, i64, i64)>,
}

/// What the limits of its queue count about a run, as long as it stays where it is.
struct Counted {
    key: Arc<str>,
    worker: Option<Arc<str>>,
}

impl Writer<'_> {
    /// Writes one change. What has become pointless within the unit is passed over.
    pub(super) fn write_run(&mut self, write: &RunWrite) -> Result<(), Fault> {
        match write {
            RunWrite::Insert(made) => self.insert_run(made),
            RunWrite::Retry { run, not_before, failure, .. } => {
                let Some(seen) = self.seen(*run)? else { return Ok(()) };
                let counted = self.counted(*run, seen.queue)?;
                self.statements.retry_run.execute((run.0, Time(*not_before), &failure[..]))?;
                self.counts.add(seen.queue, value::BACKING_OFF, 1);
                self.leave(*run, &seen, counted)
            }
            RunWrite::Release { run } => {
                let released = self.statements.release_run.query_row([run.0], |row| row.get(0)).optional()?;
                let Some(queue) = released else { return Ok(()) };
                self.counts.add(queue, value::BACKING_OFF, -1);
                self.counts.add(queue, value::READY, 1);
                if self.known.settings(queue).is_keyed() {
                    self.queue_up_again(*run, queue)?;
                }
                Ok(())
            }
            RunWrite::Stop { run, kind } => {
                self.statements.stop_run.execute((run.0, value::stop_number(*kind)))?;
                Ok(())
            }
            RunWrite::Close { run, closing, .. } => self.close_run(*run, closing),
            RunWrite::HandOver { run, worker, .. } => self.hand_over(*run, worker),
            RunWrite::Bury { run } => {
                self.statements.bury_run.execute([run.0])?;
                Ok(())
            }
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
        let settings = self.known.settings(made.queue.0);
        let (rank, keyed) = (settings.rank(made.created_at, made.priority), settings.is_keyed());
        let tree = made.origin.map(|(tree, _)| tree.0);
        let nominal_ms = made.origin.map(|(_, start)| start.nominal_ms);
        let request = made.origin.map(|(_, start)| value::request(start.origin) as i64);
        let (run, queue, body) = (made.run.0, made.queue.0, &made.body[..]);
        let (due_time, created_at) = (Time(made.due_time), Time(made.created_at));
        let state = if made.not_before.is_some() { value::BACKING_OFF } else { value::READY };
        // Every value that is handed over costs something, and most runs have none of these.
        let plain = made.dedup.is_none() && made.not_before.is_none() && made.priority == 0;
        if plain && !keyed && made.key.is_empty() {
            let row = (run, queue, tree, nominal_ms, request, rank, due_time, created_at, body);
            self.statements.insert_plain_run.execute(row)?;
        } else {
            let (priority, key, dedup) = (made.priority, &made.key[..], made.dedup.as_deref());
            self.statements.insert_run.execute(rusqlite::params![
                run,
                queue,
                tree,
                nominal_ms,
                request,
                state,
                rank,
                keyed,
                due_time,
                created_at,
                priority,
                key,
                dedup,
                made.not_before.map(Time),
                body
            ])?;
        }
        self.known.run_max = self.known.run_max.max(run);
        self.counts.add(queue, state, 1);
        if keyed && state == value::READY {
            self.queue_up(queue, &made.key, Place { rank, run })?;
        }
        Ok(())
    }

    fn close_run(&mut self, run: RunKey, closing: &Closing) -> Result<(), Fault> {
        let Some(seen) = self.seen(run)? else { return Ok(()) };
        let counted = self.counted(run, seen.queue)?;
        let Closing { outcome, closed_at, payload } = closing;
        let is_dead = matches!(outcome, Outcome::Failed | Outcome::TimedOut);
        let outcome = value::outcome_number(*outcome);
        self.statements.close_run.execute((run.0, outcome, Time(*closed_at), payload.as_deref(), is_dead))?;
        self.statements.delete_run.execute([run.0])?;
        self.known.closed += 1;
        self.leave(run, &seen, counted)
    }

    fn hand_over(&mut self, run: RunKey, to: &Arc<str>) -> Result<(), Fault> {
        let Some(seen) = self.seen(run)?.filter(|seen| seen.state == value::RUNNING) else { return Ok(()) };
        let from = self.counted(run, seen.queue)?.and_then(|counted| counted.worker);
        self.statements.hand_over_run.execute((run.0, &to[..]))?;
        if let Some(from) = from
            && self.known.settings(seen.queue).worker_concurrency_max.is_some()
        {
            self.counts.add_worker(seen.queue, &from, -1);
            self.counts.add_worker(seen.queue, to, 1);
        }
        Ok(())
    }

    /// A run that has backed off waits again, at the place that it always had.
    fn queue_up_again(&mut self, run: RunKey, queue: i64) -> Result<(), Fault> {
        let place = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let (key, rank): (Arc<str>, i64) = self.statements.run_place.query_row([run.0], place)?;
        self.queue_up(queue, &key, Place { rank, run: run.0 })
    }

    /// A run is no longer where it was seen; its row says so already.
    fn leave(&mut self, run: RunKey, seen: &Seen, counted: Option<Counted>) -> Result<(), Fault> {
        self.counts.add(seen.queue, seen.state, -1);
        let Some(Counted { key, worker }) = counted else { return Ok(()) };
        let settings = self.known.settings(seen.queue).clone();
        if let Some(worker) = worker.filter(|_| seen.state == value::RUNNING)
            && settings.worker_concurrency_max.is_some()
        {
            self.counts.add_worker(seen.queue, &worker, -1);
        }
        match seen.state {
            value::READY if settings.is_keyed() => self.key_lost_ready(seen.queue, &key, run.0),
            value::RUNNING if settings.is_keyed() => self.key_lost_running(seen.queue, &key),
            _ => Ok(()),
        }
    }

    pub(super) fn seen(&mut self, run: RunKey) -> rusqlite::Result<Option<Seen>> {
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

    /// Nothing for a queue whose limits count no more than runs.
    fn counted(&mut self, run: RunKey, queue: i64) -> rusqlite::Result<Option<Counted>> {
        let settings = self.known.settings(queue);
        if !settings.is_keyed() && settings.worker_concurrency_max.is_none() {
            return Ok(None);
        }
        let counted = |row: &rusqlite::Row<'_>| Ok(Counted { key: row.get(0)?, worker: row.get(2)? });
        self.statements.run_place.query_row([run.0], counted).optional()
    }
}

impl Seen {
    pub(super) fn is_running(&self, attempt: u32) -> bool {
        self.state == value::RUNNING && self.attempt == attempt
    }
}
