//! The way to the driver of a schedule's shard.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, RwLock};

use jiff::Timestamp;
use punctual_core::{Answer, ScheduleKey};
use punctual_store::{RunWrite, ShardId, TreeKey};
use tokio::sync::oneshot;

use crate::driver::Message;
use crate::error::EngineError;
use crate::metrics::Metrics;
use crate::shard::{Assignment, Event, Refusal, Target};
use crate::verb::Work;

/// Finds the driver of a shard, and keeps callers from asking for more than can be done.
pub(crate) struct Router {
    drivers: RwLock<Vec<Option<Sender<Message>>>>,
    waiting: AtomicUsize,
    requests_max: usize,
    metrics: Arc<Metrics>,
}

impl Router {
    pub(crate) fn new(shards: u32, requests_max: usize, metrics: Arc<Metrics>) -> Router {
        let drivers = RwLock::new((0..shards).map(|_| None).collect());
        Router { drivers, waiting: AtomicUsize::new(0), requests_max, metrics }
    }

    /// The shard that a schedule belongs to, for ever: a hash of its name.
    pub(crate) fn shard_of(&self, key: &ScheduleKey) -> ShardId {
        let shards = self.drivers.read().map_or(1, |drivers| drivers.len()) as u64;
        // FNV-1a: fixed for all time and all releases, since it decides where stored schedules are looked for.
        let bytes = key.namespace.bytes().chain([0]).chain(key.schedule.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        ShardId((hash % shards.max(1)) as u32)
    }

    pub(crate) fn set(&self, shard: ShardId, driver: Option<Sender<Message>>) {
        if let Ok(mut drivers) = self.drivers.write()
            && let Some(place) = drivers.get_mut(shard.0 as usize)
        {
            *place = driver;
        }
    }

    /// Tells every driver something.
    pub(crate) fn tell_all(&self, event: impl Fn() -> Event) {
        let Ok(drivers) = self.drivers.read() else { return };
        for driver in drivers.iter().flatten() {
            let _ = driver.send(Message::Event(event()));
        }
    }

    /// Tells every driver to finish.
    pub(crate) fn stop_all(&self) {
        let Ok(drivers) = self.drivers.read() else { return };
        for driver in drivers.iter().flatten() {
            let _ = driver.send(Message::Stop);
        }
    }

    /// Compares stored timers of a shard with those of its driver; nothing if it has none here.
    pub(crate) async fn recheck(
        &self,
        shard: ShardId,
        stored: Vec<(TreeKey, Option<Timestamp>)>,
    ) -> Option<u64> {
        let (waiter, answer) = oneshot::channel();
        let driver = self.drivers.read().ok()?.get(shard.0 as usize)?.clone()?;
        driver.send(Message::Recheck(stored, waiter)).ok()?;
        answer.await.ok()
    }

    /// Whether every shard has a driver here.
    pub(crate) fn is_complete(&self) -> bool {
        self.drivers.read().is_ok_and(|drivers| drivers.iter().all(Option::is_some))
    }

    /// Has a piece of work done, and waits until it is durable.
    pub(crate) async fn submit(
        &self,
        key: &ScheduleKey,
        target: Target,
        work: Work,
        runs: Vec<RunWrite>,
    ) -> Result<Answer, Refusal> {
        let shard = self.shard_of(key);
        let driver =
            self.drivers.read().ok().and_then(|drivers| drivers.get(shard.0 as usize).cloned().flatten());
        let Some(driver) = driver else { return Err(Refusal::NotOwner) };
        let (waiter, answer) = oneshot::channel();
        let assignment = Assignment { ticket: None, target, work, runs, tries: 0 };
        if driver.send(Message::Submit(Box::new(assignment), Some(waiter))).is_err() {
            return Err(Refusal::NotOwner);
        }
        answer.await.unwrap_or(Err(Refusal::NotOwner))
    }

    /// A place among those who wait for an answer.
    pub(crate) fn admit(self: &Arc<Router>) -> Result<Admission, EngineError> {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let admission = Admission(self.clone());
        self.metrics.requests.set(waiting as u64 + 1);
        if waiting >= self.requests_max {
            Err(EngineError::Busy("too many requests wait for an answer"))
        } else {
            Ok(admission)
        }
    }
}

/// A place among those who wait for an answer; dropping it gives it back.
pub(crate) struct Admission(Arc<Router>);

impl Drop for Admission {
    fn drop(&mut self) {
        let before = self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        self.0.metrics.requests.set(before.saturating_sub(1) as u64);
    }
}

/// What a refusal means to whoever asked.
pub(crate) fn explain(refusal: Refusal, key: &ScheduleKey) -> EngineError {
    match refusal {
        Refusal::NotFound => EngineError::NotFound(format!("schedule {:?}", key.schedule)),
        Refusal::Rejected(rejection) => EngineError::Rejected(rejection),
        Refusal::RunMoved => EngineError::Aborted { tries: 1 },
        Refusal::Aborted { tries } => EngineError::Aborted { tries },
        Refusal::Unavailable(reason) => EngineError::Unavailable(reason),
        Refusal::Quarantined(reason) => EngineError::Quarantined(reason.to_string()),
        Refusal::NotOwner => {
            EngineError::Unavailable("no node drives this schedule's shard at the moment".into())
        }
    }
}
