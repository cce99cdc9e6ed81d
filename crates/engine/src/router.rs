//! The way to the driver of a schedule's shard, or to the guest that serves schedules of other nodes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use punctual_core::{Answer, ScheduleKey};
use punctual_store::{Ending, EndingAnswer, Keeper, RunWrite, ShardId, TreeKey, shard_of};
use tokio::sync::oneshot;

use crate::driver::Message;
use crate::error::EngineError;
use crate::inbox::Address;
use crate::metrics::Metrics;
use crate::relay::{Relay, work_of};
use crate::shard::{Assignment, Event, Refusal, Target};
use crate::verb::Work;

/// How long a change steps back when another node was faster too often: this, doubled up to the longest.
const STEP_BACK_FIRST: Duration = Duration::from_millis(2);

/// The longest.
const STEP_BACK_MAX: Duration = Duration::from_millis(100);

/// Finds the driver of a shard, and keeps callers from asking for more than can be done.
pub(crate) struct Router {
    shards: u32,
    drivers: RwLock<Vec<Option<Address>>>,
    /// Serves shards that have no driver here; nothing where nobody shares the database.
    guest: RwLock<Option<Address>>,
    /// The way to owners elsewhere, where nodes share the database.
    relay: Option<Relay>,
    waiting: AtomicUsize,
    requests_max: usize,
    metrics: Arc<Metrics>,
}

impl Router {
    pub(crate) fn new(
        shards: u32,
        requests_max: usize,
        metrics: Arc<Metrics>,
        relay: Option<Relay>,
    ) -> Router {
        let drivers = RwLock::new((0..shards).map(|_| None).collect());
        let (guest, waiting) = Default::default();
        Router { shards, drivers, guest, relay, waiting, requests_max, metrics }
    }

    pub(crate) fn set_guest(&self, guest: Option<Address>) {
        if let Ok(mut place) = self.guest.write() {
            *place = guest;
        }
    }

    pub(crate) fn set(&self, shard: ShardId, driver: Option<Address>) {
        if let Ok(mut drivers) = self.drivers.write()
            && let Some(place) = drivers.get_mut(shard.0 as usize)
        {
            *place = driver;
        }
    }

    fn driver(&self, shard: ShardId) -> Option<Address> {
        self.drivers.read().ok()?.get(shard.0 as usize)?.clone()
    }

    fn guest(&self) -> Option<Address> {
        self.guest.read().ok()?.clone()
    }

    /// Whether a shard has a driver here.
    pub(crate) fn has(&self, shard: ShardId) -> bool {
        self.driver(shard).is_some()
    }

    /// Tells the driver of a shard something, if it has one here.
    pub(crate) fn tell(&self, shard: ShardId, event: Event) {
        if let Some(driver) = self.driver(shard) {
            driver.send(Message::Event(event));
        }
    }

    /// Tells every driver something, and the guest.
    pub(crate) fn tell_all(&self, event: impl Fn() -> Event) {
        self.send_all(|| Message::Event(event()));
    }

    /// Lets everything lie where it is.
    pub(crate) fn die(&self) {
        self.send_all(|| Message::Die);
    }

    fn send_all(&self, message: impl Fn() -> Message) {
        let Ok(drivers) = self.drivers.read() else { return };
        for driver in drivers.iter().flatten().chain(self.guest().iter()) {
            driver.send(message());
        }
    }

    /// Tells the guest to finish.
    pub(crate) fn stop_guest(&self) {
        if let Some(guest) = self.guest() {
            guest.send(Message::Stop);
        }
    }

    /// Compares stored timers of a shard with those of its driver; nothing if it has none here.
    pub(crate) async fn recheck(
        &self,
        shard: ShardId,
        stored: Vec<(TreeKey, Option<Timestamp>)>,
    ) -> Option<u64> {
        let (waiter, answer) = oneshot::channel();
        self.driver(shard)?.send(Message::Recheck(stored, waiter));
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
        let assignment = Assignment { ticket: None, target, work, runs, tries: 0 };
        let shard = shard_of(key, self.shards);
        let Some(guest) = self.guest() else {
            return match self.driver(shard) {
                Some(driver) => ask(&driver, assignment).await,
                None => Err(Refusal::NotOwner),
            };
        };
        let mut wait = STEP_BACK_FIRST;
        loop {
            let answer = match self.driver(shard) {
                Some(driver) => ask(&driver, assignment.clone()).await,
                None => Err(Refusal::NotOwner),
            };
            let answer = match answer {
                // The shard is elsewhere, or has just gone there. What was on its way may have been written: every change is
                // harmless to repeat.
                Err(Refusal::NotOwner) => match self.relayed(shard, &assignment).await {
                    Some(answer) => answer,
                    None => ask(&guest, assignment.clone()).await,
                },
                answer => answer,
            };
            match answer {
                // Another node is faster again and again: whoever steps back for a moment meets it no more.
                Err(Refusal::Aborted { .. }) if wait <= STEP_BACK_MAX => tokio::time::sleep(wait).await,
                answer => return answer,
            }
            wait *= 2;
        }
    }

    async fn relayed(&self, shard: ShardId, work: &Assignment) -> Option<Result<Answer, Refusal>> {
        self.relay.as_ref()?.send(shard, work).await
    }

    /// Another node tells that a run of a schedule has ended: its owner here writes that, and says whether it did; anybody else
    /// keeps silent.
    pub(crate) fn hear_of_end(
        self: &Arc<Router>,
        ending: Ending,
    ) -> Option<impl Future<Output = bool> + Send + 'static> {
        let driver = self.driver(ending.shard)?;
        let (router, to, ticket) = (self.clone(), ending.from, ending.ticket);
        Some(async move {
            let result = ask(&driver, work_of(ending)).await;
            if let Some(relay) = &router.relay {
                relay.answer(to, ticket, &result);
            }
            result.is_ok()
        })
    }

    /// The owner elsewhere has answered.
    pub(crate) fn hear_of_answer(&self, to: Keeper, ticket: u64, answer: EndingAnswer) {
        if let Some(relay) = &self.relay {
            relay.answered(to, ticket, answer);
        }
    }

    /// Nobody may rely on answers that are on their way.
    pub(crate) fn give_up_relayed(&self) {
        if let Some(relay) = &self.relay {
            relay.give_up();
        }
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

async fn ask(driver: &Address, assignment: Assignment) -> Result<Answer, Refusal> {
    let (waiter, answer) = oneshot::channel();
    driver.send(Message::Submit(Box::new(assignment), Some(waiter)));
    answer.await.unwrap_or(Err(Refusal::NotOwner))
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
