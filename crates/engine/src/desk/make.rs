//! Runs without a schedule: made, tried again after their end, and taken out of their queue.

use std::sync::Arc;

use jiff::Timestamp;
use punctual_core::Outcome;
use punctual_store::record::{RunBody, decode_body, encode_body};
use punctual_store::{
    Closing, Conflict, NewRun, QueueKey, RunKey, RunRequest, RunWrite, StoreError, StoredRun, Unit,
};

use super::Desk;
use super::watch::Watch;
use crate::error::EngineError;
use crate::router::Admission;

/// Keys that are reserved at a time.
const KEYS_RESERVED: u32 = 10_000;

/// A run that is to be made.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) queue: QueueKey,
    pub(crate) body: RunBody,
    pub(crate) dedup: Option<Arc<str>>,
    pub(crate) not_before: Option<Timestamp>,
}

/// A request that gives the same runs whenever it is heard.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) namespace: Arc<str>,
    pub(crate) id: Arc<str>,
    /// Runs that were there already, by their place in the request; the others are to be made.
    pub(crate) there: Vec<Option<RunKey>>,
}

impl Request {
    fn made(self, new: &[RunKey], made_at: Timestamp) -> RunRequest {
        let mut new = new.iter().copied();
        let runs = self.there.into_iter().filter_map(|there| there.or_else(|| new.next())).collect();
        RunRequest { namespace: self.namespace, id: self.id, runs, made_at }
    }
}

/// Why runs were not made.
#[derive(Debug)]
pub(crate) enum MakeError {
    /// A live run has the deduplication id of one of them.
    Duplicate(RunKey),
    /// The request was heard before, and made these.
    Repeated(Vec<RunKey>),
    /// Anything else.
    Other(EngineError),
}

impl From<EngineError> for MakeError {
    fn from(error: EngineError) -> MakeError {
        MakeError::Other(error)
    }
}

impl From<StoreError> for MakeError {
    fn from(error: StoreError) -> MakeError {
        match error {
            StoreError::Conflict(Conflict::Duplicate { run }) => MakeError::Duplicate(run),
            StoreError::Conflict(Conflict::Repeated { runs }) => MakeError::Repeated(runs),
            other => MakeError::Other(other.into()),
        }
    }
}

impl Desk {
    /// Makes runs, all or none, and wakes those who wait for them. The place of whoever asked is kept until it is done.
    pub(crate) async fn make(
        self: &Arc<Desk>,
        orders: Vec<Order>,
        request: Option<Request>,
        place: Arc<Admission>,
    ) -> Result<Vec<RunKey>, MakeError> {
        let desk = self.clone();
        let making = async move {
            let _place = place;
            desk.make_all(&orders, request).await
        };
        self.to_the_end(making).await
    }

    async fn make_all(&self, orders: &[Order], request: Option<Request>) -> Result<Vec<RunKey>, MakeError> {
        let now = self.clock.now();
        let keys = self.take_keys(orders.len()).await?;
        let made: Vec<NewRun> =
            orders.iter().zip(&keys).map(|(order, run)| new_run(order, *run, now)).collect();
        let inserts = made.iter().cloned().map(RunWrite::Insert).collect();
        let request = request.map(|request| request.made(&keys, now));
        self.write_unit(Unit { tree: None, runs: inserts, request }).await?;
        self.made(orders, &made);
        Ok(keys)
    }

    /// Makes a run like one that ended badly; both become durable together, so that no dead letter is tried twice.
    pub(crate) async fn revive(self: &Arc<Desk>, dead: StoredRun) -> Result<RunKey, MakeError> {
        let desk = self.clone();
        self.to_the_end(async move { desk.bury_and_make(&dead).await }).await
    }

    async fn bury_and_make(&self, dead: &StoredRun) -> Result<RunKey, MakeError> {
        let now = self.clock.now();
        let body = decode_body(&dead.run.made.body);
        let body = body.map_err(|error| MakeError::Other(EngineError::Quarantined(error.to_string())))?;
        let order =
            Order { queue: dead.run.made.queue, body, dedup: dead.run.made.dedup.clone(), not_before: None };
        let keys = self.take_keys(1).await?;
        let made: Vec<NewRun> = keys.iter().map(|run| new_run(&order, *run, now)).collect();
        let bury = RunWrite::Bury { run: dead.run.made.run };
        let runs = [bury].into_iter().chain(made.iter().cloned().map(RunWrite::Insert)).collect();
        self.write_unit(Unit { runs, ..Unit::default() }).await?;
        self.made(&[order], &made);
        Ok(keys[0])
    }

    /// Gives dead letters up.
    pub(crate) async fn bury(&self, dead: &[StoredRun]) -> Result<u64, EngineError> {
        let unit = |run: &StoredRun| Unit {
            runs: vec![RunWrite::Bury { run: run.run.made.run }],
            ..Unit::default()
        };
        let batch = self.batch(dead.iter().map(unit).collect());
        let answers = self.store.commit(batch).await?;
        Ok(answers.iter().filter(|answer| answer.is_ok()).count() as u64)
    }

    /// Ends runs that nobody has. Those of schedules are ended one by one, since each changes its schedule too.
    pub(crate) async fn discard(&self, waiting: &[StoredRun]) -> Result<u64, EngineError> {
        let closed_at = self.clock.now();
        let closing = Closing { outcome: Outcome::Cancelled, closed_at, payload: None };
        let mut count = 0;
        let (of_schedules, alone): (Vec<_>, Vec<_>) =
            waiting.iter().partition(|stored| stored.run.made.origin.is_some());
        for stored in of_schedules {
            let recorded = self.close_stored(stored, Outcome::Cancelled, None).await?;
            count += u64::from(recorded == super::Recorded::Closed);
        }
        let close = |stored: &&StoredRun| {
            let run = stored.run.made.run;
            Unit {
                runs: vec![RunWrite::Close { run, attempt: None, closing: closing.clone() }],
                ..Unit::default()
            }
        };
        let answers = self.store.commit(self.batch(alone.iter().map(close).collect())).await?;
        let mut watches = self.watches();
        for (stored, answer) in alone.iter().zip(&answers) {
            if answer.is_ok() {
                count += 1;
                watches.remove(stored.run.made.run);
                // A worker may have got it in the last moment, wherever it asked.
                self.tell_of(stored.run.made.run);
                self.metrics.ended(Outcome::Cancelled);
            }
        }
        Ok(count)
    }

    async fn write_unit(&self, unit: Unit) -> Result<(), MakeError> {
        let answers = self.store.commit(self.batch(vec![unit])).await.inspect_err(|_| self.doubt())?;
        match answers.into_iter().next() {
            Some(answer) => Ok(answer?),
            None => Err(MakeError::Other(EngineError::Unavailable("the database gave no answer".into()))),
        }
    }

    /// Watches what must be watched, and tells who waits.
    fn made(&self, orders: &[Order], made: &[NewRun]) {
        let mut watches = self.watches();
        for (order, made) in orders.iter().zip(made) {
            let last_time = order.body.action.last_time(made.created_at);
            let watch = match (made.not_before, last_time) {
                (Some(not_before), last_time) => {
                    Watch::BackingOff { queue: made.queue, not_before, last_time }
                }
                (None, Some(last_time)) => Watch::Queued { last_time },
                (None, None) => continue,
            };
            watches.set_new(made.run, watch);
        }
        drop(watches);
        self.alarm.notify_one();
        let mut queues: Vec<QueueKey> = made.iter().map(|made| made.queue).collect();
        queues.dedup();
        for queue in queues {
            self.ring(queue);
        }
    }

    async fn take_keys(&self, count: usize) -> Result<Vec<RunKey>, StoreError> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let (mut held, now) = (self.keys.lock().await, self.clock.now());
        let is_old = now.duration_since(held.1) > self.config.shard.keys_age_max;
        if is_old || held.0.end - held.0.start < count {
            let reserved = KEYS_RESERVED.max(u32::try_from(count).unwrap_or(u32::MAX));
            let first = self.store.reserve(reserved).await?;
            *held = (first..first + i64::from(reserved), now);
        }
        let first = held.0.start;
        held.0.start += count;
        Ok((first..first + count).map(RunKey).collect())
    }
}

fn new_run(order: &Order, run: RunKey, now: Timestamp) -> NewRun {
    let not_before = order.not_before.filter(|not_before| *not_before > now);
    NewRun {
        run,
        queue: order.queue,
        origin: None,
        due_time: not_before.unwrap_or(now),
        created_at: now,
        priority: order.body.action.priority,
        key: order.body.action.key.clone(),
        dedup: order.dedup.clone(),
        not_before,
        body: encode_body(&order.body),
    }
}
