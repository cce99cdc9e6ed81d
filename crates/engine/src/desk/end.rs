//! Attempts end, runs end, and their schedules hear of it in the same transaction.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::{Completion, Failure, NextStep, Outcome, ScheduleKey, StartId, Wish};
use punctual_store::record::{decode_body, encode_failure};
use punctual_store::{
    Bytes, Closing, Conflict, LiveState, QueueKey, RunKey, RunWrite, StoreError, StoredRun, TreeKey, Unit,
};

use super::Desk;
use super::watch::{Change, Lease, Watch};
use crate::error::EngineError;
use crate::router::explain;
use crate::shard::{Refusal, Target};
use crate::verb::{Verb, Work};

/// What a worker reports about one attempt.
#[derive(Clone, Debug)]
pub struct Report {
    /// The namespace of the run.
    pub namespace: Arc<str>,
    /// Who reports: the worker that claimed the attempt.
    pub worker: Arc<str>,
    /// Which run.
    pub run: RunKey,
    /// Which attempt.
    pub attempt: u32,
    /// How it ended.
    pub end: AttemptEnd,
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub enum AttemptEnd {
    /// Well, with a result.
    Succeeded(Option<Bytes>),
    /// Badly, with a wish for the wait before another attempt.
    Failed(Failure, Option<Wish>),
    /// It was asked to stop, and did.
    Cancelled,
}

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// The run is over, as reported.
    Closed,
    /// Another attempt will be made.
    Retried {
        /// Not before this.
        not_before: Timestamp,
    },
    /// The attempt did not count any more; nothing changed.
    Stale,
}

impl Desk {
    /// Records how an attempt ended. Reporting it twice is harmless.
    pub(crate) async fn report(&self, report: Report) -> Result<Recorded, EngineError> {
        let Report { namespace, worker, run, attempt, end } = report;
        let lease = self.watches().lease(run, attempt).cloned();
        let lease = match lease {
            Some(lease) => lease,
            None => match self.find_lease(run, attempt).await? {
                Some(lease) => lease,
                None => return self.was_recorded(run, attempt, &end).await,
            },
        };
        if lease.key.namespace != namespace {
            return Err(EngineError::NotFound(format!("run {run}")));
        }
        if lease.worker != worker {
            return Ok(Recorded::Stale);
        }
        let recorded = match &end {
            AttemptEnd::Succeeded(result) => {
                self.close_attempt(run, &lease, Outcome::Succeeded, result.clone()).await?
            }
            AttemptEnd::Cancelled => self.close_attempt(run, &lease, Outcome::Cancelled, None).await?,
            AttemptEnd::Failed(failure, wish) => {
                self.attempt_failed(run, &lease, Outcome::Failed, failure, *wish).await?
            }
        };
        match recorded {
            Recorded::Stale => self.was_recorded(run, attempt, &end).await,
            Recorded::Closed | Recorded::Retried { .. } => Ok(recorded),
        }
    }

    /// A run that this process does not watch may still be live in the database.
    pub(super) async fn find_lease(&self, run: RunKey, attempt: u32) -> Result<Option<Lease>, EngineError> {
        let Some(stored) = self.load_run(run).await?.filter(|stored| stored.closing.is_none()) else {
            return Ok(None);
        };
        let running = matches!(stored.run.state, LiveState::Running { .. }) && stored.run.attempt == attempt;
        let Some(body) = decode_body(&stored.run.made.body).ok().filter(|_| running) else { return Ok(None) };
        match self.watch_of(&stored.run, &body, self.clock.now(), None) {
            Some(Watch::Running(lease)) => Ok(Some(*lease)),
            _ => Ok(None),
        }
    }

    /// The same report may have arrived before, with its answer lost.
    async fn was_recorded(
        &self,
        run: RunKey,
        attempt: u32,
        end: &AttemptEnd,
    ) -> Result<Recorded, EngineError> {
        let Some(stored) = self.load_run(run).await? else { return Ok(Recorded::Stale) };
        let same_attempt = stored.run.attempt == attempt;
        let recorded = match (&stored.closing, end) {
            (Some(closing), AttemptEnd::Succeeded(result)) => (closing.outcome == Outcome::Succeeded
                && closing.payload == *result)
                .then_some(Recorded::Closed),
            (Some(closing), AttemptEnd::Failed(..)) => {
                (closing.outcome == Outcome::Failed).then_some(Recorded::Closed)
            }
            (Some(closing), AttemptEnd::Cancelled) => {
                (closing.outcome == Outcome::Cancelled).then_some(Recorded::Closed)
            }
            (None, AttemptEnd::Failed(..)) => match stored.run.state {
                LiveState::BackingOff { not_before } => Some(Recorded::Retried { not_before }),
                LiveState::Ready | LiveState::Running { .. } => None,
            },
            (None, AttemptEnd::Succeeded(_) | AttemptEnd::Cancelled) => None,
        };
        Ok(recorded.filter(|_| same_attempt).unwrap_or(Recorded::Stale))
    }

    /// An attempt ended badly: another one, or the end of the run.
    pub(super) async fn attempt_failed(
        &self,
        run: RunKey,
        lease: &Lease,
        outcome: Outcome,
        failure: &Failure,
        wish: Option<Wish>,
    ) -> Result<Recorded, EngineError> {
        let now = self.clock.now();
        let record = encode_failure(failure);
        let next = match lease.stop {
            // Nobody wants another attempt of a run that was asked to stop, unless an attempt only follows what goes on.
            Some(_) if !failure.retryable || !self.is_followed(&lease.retry.queue) => {
                NextStep::Close { outcome: Outcome::Cancelled }
            }
            Some(_) | None => lease.retry.after(now, lease.created_at, lease.attempt, outcome, failure, wish),
        };
        match next {
            NextStep::Close { outcome } => self.close_attempt(run, lease, outcome, Some(record)).await,
            NextStep::Retry { not_before } => self.retry_attempt(run, lease, not_before, record).await,
        }
    }

    /// Another attempt will follow, from this time on.
    pub(super) async fn retry_attempt(
        &self,
        run: RunKey,
        lease: &Lease,
        not_before: Timestamp,
        failure: Bytes,
    ) -> Result<Recorded, EngineError> {
        if !self.write_run(RunWrite::Retry { run, attempt: lease.attempt, not_before, failure }).await? {
            return Ok(Recorded::Stale);
        }
        self.metrics.retries.add(1);
        let last_time = lease.retry.last_time(lease.created_at);
        let mut watches = self.watches();
        let elsewhere = !watches.is_watched(run);
        // Who was asked to look meanwhile may have released it, and a worker may have it again.
        if watches.any_lease(run).is_none_or(|held| held.attempt <= lease.attempt) {
            watches.set(run, Watch::BackingOff { queue: lease.queue, not_before, last_time });
        }
        drop(watches);
        self.show_running();
        if elsewhere {
            self.tell_of(run);
        }
        self.ring_for_room(lease.queue);
        Ok(Recorded::Retried { not_before })
    }

    async fn close_attempt(
        &self,
        run: RunKey,
        lease: &Lease,
        outcome: Outcome,
        payload: Option<Bytes>,
    ) -> Result<Recorded, EngineError> {
        let end = RunEnd {
            run,
            attempt: Some(lease.attempt),
            queue: lease.queue,
            origin: lease.origin,
            key: &lease.key,
            outcome,
            payload,
        };
        self.close(end).await
    }

    /// Closes a run; its schedule hears of it in the same transaction.
    pub(super) async fn close(&self, end: RunEnd<'_>) -> Result<Recorded, EngineError> {
        let (run, in_any_state) = (end.run, end.attempt.is_none());
        let closed = self.write_end(end).await;
        if in_any_state {
            // A worker may have got it in the last moment, from any node, and what was not answered may be written.
            self.tell_of(run);
        }
        closed
    }

    async fn write_end(&self, end: RunEnd<'_>) -> Result<Recorded, EngineError> {
        let RunEnd { run, attempt, queue, origin, key, outcome, payload } = end;
        let closed_at = self.clock.now();
        let write = RunWrite::Close {
            run,
            attempt,
            closing: Closing { outcome, closed_at, payload: payload.clone() },
        };
        let closed = match origin {
            None => self.write_run(write).await?,
            Some((tree, start)) => {
                let completion = Completion { start, outcome, payload, completed_at: closed_at };
                let work = Work::Change(Verb::Complete(completion));
                match self.router.submit(key, Target::Tree(tree), work, vec![write.clone()]).await {
                    Ok(_) => true,
                    Err(Refusal::RunMoved) => false,
                    // Its schedule is gone or broken; the run has ended all the same.
                    Err(Refusal::NotFound | Refusal::Quarantined(_)) => self.write_run(write).await?,
                    Err(refusal) => return Err(explain(refusal, key)),
                }
            }
        };
        if !closed {
            return Ok(Recorded::Stale);
        }
        self.metrics.ended(outcome);
        let mut watches = self.watches();
        let elsewhere = attempt.is_some() && !watches.is_watched(run);
        watches.remove(run);
        drop(watches);
        self.show_running();
        if elsewhere {
            self.tell_of(run);
        }
        self.directives.notify_waiters();
        self.ring_for_room(queue);
        Ok(Recorded::Closed)
    }

    /// Deals with a deadline that has come.
    pub(super) async fn deadline(
        &self,
        run: RunKey,
        watch: Watch,
        now: Timestamp,
    ) -> Result<(), EngineError> {
        let moment = self.watches().now();
        // Whoever is heard of in time costs no look at the database.
        if self.node.shared && self.is_over(run, &watch, now) {
            let Some(stored) = self.still(run, &watch).await? else { return Ok(()) };
            if let Some(lease) = self.watches().any_lease(run) {
                lease.stop = lease.stop.max(stored.run.stop);
            }
        }
        match watch {
            Watch::BackingOff { queue, not_before, last_time }
                if last_time.is_none_or(|last| not_before < last) =>
            {
                self.release(run, queue, last_time, moment).await
            }
            Watch::Queued { .. } | Watch::BackingOff { .. } => self.out_of_time(run).await,
            Watch::Running(lease) => {
                // The worker may have been heard of since.
                let current = self.watches().lease(run, lease.attempt).cloned();
                let Some(lease) = current else { return Ok(()) };
                let late = lease.deadline.is_some_and(|deadline| deadline <= now);
                if !late && lease.until > now {
                    return Ok(());
                }
                let over = lease.retry.last_time(lease.created_at).is_some_and(|last| last <= now);
                let failure = match (late, over) {
                    (true, true) => Failure {
                        retryable: false,
                        ..Failure::new("schedule_to_close_timeout", "the run took too long")
                    },
                    (true, false) => Failure::new("start_to_close_timeout", "the attempt took too long"),
                    (false, _) => {
                        self.metrics.takeovers.add(1);
                        Failure::new(
                            "worker_lost",
                            &format!("nothing was heard of worker {} in time", lease.worker),
                        )
                    }
                };
                match self.attempt_failed(run, &lease, Outcome::TimedOut, &failure, None).await? {
                    // It ended in another way, or fails already: what is stored says how it goes on.
                    Recorded::Stale => self.read_again(&[run]).await?,
                    // The worker may have turned to another node in that very moment, which must not tell it to go on.
                    Recorded::Closed | Recorded::Retried { .. } => self.tell_of(run),
                }
                self.directives.notify_waiters();
                Ok(())
            }
        }
    }

    /// Whether a deadline still stands.
    fn is_over(&self, run: RunKey, watch: &Watch, now: Timestamp) -> bool {
        match watch {
            Watch::Queued { .. } | Watch::BackingOff { .. } => true,
            Watch::Running(lease) => self
                .watches()
                .lease(run, lease.attempt)
                .is_some_and(|lease| lease.until <= now || lease.deadline.is_some_and(|end| end <= now)),
        }
    }

    async fn release(
        &self,
        run: RunKey,
        queue: QueueKey,
        last_time: Option<Timestamp>,
        moment: Change,
    ) -> Result<(), EngineError> {
        self.write_run(RunWrite::Release { run }).await?;
        let mut watches = self.watches();
        match last_time {
            // A worker may have it by now, and its lease is what counts.
            _ if watches.changed_since(run, moment) || watches.any_lease(run).is_some() => {}
            Some(last_time) => watches.set(run, Watch::Queued { last_time }),
            None => watches.remove(run),
        }
        drop(watches);
        self.ring(queue);
        Ok(())
    }

    /// The whole run took too long while nobody had it.
    async fn out_of_time(&self, run: RunKey) -> Result<(), EngineError> {
        let Some(stored) = self.load_run(run).await?.filter(|stored| stored.closing.is_none()) else {
            self.watches().remove(run);
            return Ok(());
        };
        let is_running = matches!(stored.run.state, LiveState::Running { .. });
        let failure = Failure::new("schedule_to_close_timeout", "no worker finished the run in time");
        let payload = Some(encode_failure(&failure));
        if is_running || self.close_stored(&stored, Outcome::TimedOut, payload).await? == Recorded::Stale {
            // What is watched is over; what is stored says how it goes on.
            self.read_again(&[run]).await?;
        }
        Ok(())
    }

    /// Closes a run in whatever state it is.
    pub(super) async fn close_stored(
        &self,
        stored: &StoredRun,
        outcome: Outcome,
        payload: Option<Bytes>,
    ) -> Result<Recorded, EngineError> {
        let made = &stored.run.made;
        let body = decode_body(&made.body).map_err(|error| EngineError::Quarantined(error.to_string()))?;
        let key = ScheduleKey { namespace: body.namespace, schedule: body.schedule };
        let (run, queue, origin) = (made.run, made.queue, made.origin);
        self.close(RunEnd { run, attempt: None, queue, origin, key: &key, outcome, payload }).await
    }

    /// Writes a change of one run, and says whether it still applied.
    pub(super) async fn write_run(&self, write: RunWrite) -> Result<bool, EngineError> {
        let batch = self.batch(vec![Unit { runs: vec![write], ..Unit::default() }]);
        let answers = self.store.commit(batch).await.inspect_err(|_| self.doubt())?;
        match answers.into_iter().next() {
            Some(Ok(())) => Ok(true),
            Some(Err(StoreError::Conflict(Conflict::RunMoved { .. }))) | None => Ok(false),
            Some(Err(error)) => Err(Desk::unavailable(error)),
        }
    }

    pub(super) async fn load_run(&self, run: RunKey) -> Result<Option<StoredRun>, EngineError> {
        let found = self.store.load_runs(vec![run]).await.map_err(Desk::unavailable)?;
        Ok(found.into_iter().next().flatten())
    }
}

/// The end of a run.
pub(super) struct RunEnd<'a> {
    pub(super) run: RunKey,
    /// Only if this attempt still counts; nothing closes it in whatever state it is.
    pub(super) attempt: Option<u32>,
    pub(super) queue: QueueKey,
    pub(super) origin: Option<(TreeKey, StartId)>,
    pub(super) key: &'a ScheduleKey,
    pub(super) outcome: Outcome,
    pub(super) payload: Option<Bytes>,
}
