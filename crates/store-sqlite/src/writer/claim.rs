//! Handing runs to a worker: by rank or key by key, and never more than every limit of the queue allows.

use std::sync::Arc;

use punctual_store::{Claim, LiveRun, LiveState, QueueSettings, StoreError, Taken};

use super::Writer;
use crate::fault::Fault;
use crate::value::{self, Time};

/// Keys that are forgotten at each claim besides two for each run that it hands out, so that they become fewer.
const KEYS_FORGOTTEN: usize = 4;

impl Writer<'_> {
    /// Begins a new attempt of each run that is handed out.
    pub(crate) fn claim(&mut self, claim: &Claim) -> Result<Taken, Fault> {
        let Some(settings) = self.known.queues.get(&claim.queue.0).cloned() else {
            return Ok(Taken::default());
        };
        let room = self.room(claim, &settings);
        if settings.paused || room == 0 {
            return Ok(Taken::default());
        }
        let taken = if settings.is_keyed() {
            self.claim_by_key(claim, &settings, room)?
        } else {
            self.claim_by_rank(claim, &settings, room)?
        };
        let count = value::count(taken.runs.len());
        self.counts.add(claim.queue.0, value::READY, -count);
        self.counts.add(claim.queue.0, value::RUNNING, count);
        if settings.worker_concurrency_max.is_some() {
            self.counts.add_worker(claim.queue.0, &claim.worker, count);
        }
        Ok(taken)
    }

    /// How many runs the worker may get by what runs already.
    fn room(&self, claim: &Claim, settings: &QueueSettings) -> usize {
        if settings.concurrency_max.is_none() && settings.worker_concurrency_max.is_none() {
            return claim.runs_max;
        }
        let load = self.known.counts.within(&self.counts, claim.queue.0, &claim.worker);
        let left = |bound: Option<u32>, running: u64| {
            bound.map_or(u64::MAX, |bound| u64::from(bound).saturating_sub(running))
        };
        let room = left(settings.concurrency_max, load.running)
            .min(left(settings.worker_concurrency_max, load.of_worker));
        claim.runs_max.min(usize::try_from(room).unwrap_or(usize::MAX))
    }

    fn claim_by_rank(
        &mut self,
        claim: &Claim,
        settings: &Arc<QueueSettings>,
        room: usize,
    ) -> Result<Taken, Fault> {
        let mut window = settings.rate.map(|rate| self.window(claim.queue.0, rate)).transpose()?;
        let (allowed, opens) = match &window {
            Some(window) => self.allowance(window, claim.now, room)?,
            None => (room, None),
        };
        let mut taken = Taken::default();
        // They are read to the end first: a change must not move what is being read.
        let mut rows = self.statements.claim_ready.query((claim.queue.0, value::count(allowed)))?;
        while let Some(row) = rows.next()? {
            taken.runs.push(value::live_run(row)?);
        }
        drop(rows);
        for run in &mut taken.runs {
            self.begin_attempt(claim, run)?;
            if let Some(window) = &mut window {
                self.add_start(window, claim.now)?;
            }
        }
        taken.next_time = opens.filter(|_| self.ready(claim) > taken.runs.len() as u64);
        Ok(taken)
    }

    fn claim_by_key(
        &mut self,
        claim: &Claim,
        settings: &Arc<QueueSettings>,
        room: usize,
    ) -> Result<Taken, Fault> {
        let queue = claim.queue.0;
        let before = self.round(queue)?;
        let (mut round, mut taken) = (before, Taken::default());
        let mut window = settings.rate.map(|rate| self.window(queue, rate)).transpose()?;
        if settings.key_rate.is_some() {
            self.open_keys(queue, claim.now)?;
        }
        while taken.runs.len() < room {
            let opens = window.as_ref().map(|window| self.opens(window, claim.now)).transpose()?.flatten();
            if opens.is_some() {
                taken.next_time = opens.filter(|_| self.ready(claim) > taken.runs.len() as u64);
                break;
            }
            let Some(key) = self.next_key(queue, settings, claim.now)? else {
                taken.next_time = self.held_until(queue)?;
                break;
            };
            if let Some(first) = key.first {
                let mut run = self.ready_run(first.run)?;
                self.begin_attempt(claim, &mut run)?;
                taken.runs.push(run);
            }
            if let Some(window) = &mut window {
                self.add_start(window, claim.now)?;
            }
            round.handed_out += 1;
            self.key_starts(queue, key, settings, (round, claim.now))?;
        }
        if settings.key_rate.is_some() {
            self.forget_keys(queue, &mut round, claim.now, KEYS_FORGOTTEN + 2 * taken.runs.len())?;
        }
        if round != before {
            self.set_round(queue, round)?;
        }
        Ok(taken)
    }

    fn ready_run(&mut self, run: i64) -> Result<LiveRun, Fault> {
        let mut rows = self.statements.claim_run.query([run])?;
        match rows.next()? {
            Some(row) => value::live_run(row),
            None => {
                Err(StoreError::corrupted(format!("run {run}"), "it is first in line, but not there").into())
            }
        }
    }

    fn begin_attempt(&mut self, claim: &Claim, run: &mut LiveRun) -> Result<(), Fault> {
        self.statements.claim.execute((run.made.run.0, &claim.worker[..], Time(claim.now)))?;
        run.attempt += 1;
        run.state = LiveState::Running { worker: claim.worker.clone(), started_at: claim.now };
        Ok(())
    }

    /// How many runs of the queue waited before this claim.
    fn ready(&self, claim: &Claim) -> u64 {
        self.known.counts.within(&self.counts, claim.queue.0, &claim.worker).ready
    }
}
