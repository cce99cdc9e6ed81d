//! Random queues with random limits: what is claimed is compared, and no limit is ever exceeded.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::Pair;
use crate::conformance::limits::assert_within;
use crate::conformance::support::{at, new_queue};
use crate::{Claim, LiveRun, LiveState, NewQueue, QueueKey, QueueSettings, Rate, Store};

pub(in crate::conformance) const KEYS: [&str; 4] = ["", "a", "b", "c"];
pub(in crate::conformance) const WORKERS: [&str; 3] = ["one", "two", "three"];

/// The length of windows of keys. Stores may forget windows of keys that are over, so a longer one could see less than the
/// reference store; nothing is exceeded then, but answers may differ.
const KEY_WINDOW: SignedDuration = SignedDuration::from_secs(20);

/// A queue whose limits are watched.
pub(in crate::conformance) struct Declared {
    pub(in crate::conformance) settings: QueueSettings,
    /// What began since the settings were changed.
    starts: Vec<(Arc<str>, Timestamp)>,
}

impl Pair {
    pub(super) async fn create_queue(&mut self) {
        let name = format!("queue {}", self.random.below(4));
        let namespace = if self.random.one_in(4) { "elsewhere" } else { "default" };
        let keyed = self.random.one_in(2);
        let made = NewQueue { settings: self.settings(keyed), ..new_queue(namespace, &name) };
        let queue = self.store.create_queue(made.clone()).await.expect("the store answers");
        if !self.queues.contains(&queue.queue) {
            // The twin shall give the same key: it gives the next one.
            let next = self.twin.reserve(0).await.expect("memory answers");
            let missing = u32::try_from(queue.queue.0 - next).expect("keys are small");
            self.twin.reserve(missing).await.expect("memory answers");
            self.queues.push(queue.queue);
            self.declared.insert(queue.queue, Declared::new(made.settings.clone()));
        }
        assert_eq!(Ok(queue), self.twin.create_queue(made).await);
    }

    /// Random limits. Whether keys have their turns never changes: when they begin to, a store may begin any round.
    fn settings(&mut self, keyed: bool) -> QueueSettings {
        let random = &mut self.random;
        let per = SignedDuration::from_secs(1 + random.below(30) as i64);
        let rate = |starts_max: usize, per| Rate { starts_max: 1 + starts_max as u32, per };
        QueueSettings {
            description: random.number().to_string().into(),
            concurrency_max: random.one_in(3).then(|| random.below(8) as u32),
            worker_concurrency_max: random.one_in(3).then(|| random.below(5) as u32),
            rate: random.one_in(3).then(|| rate(random.below(5), per)),
            key_concurrency_max: keyed.then(|| 1 + random.below(4) as u32),
            key_rate: (keyed && random.one_in(2)).then(|| rate(random.below(3), KEY_WINDOW)),
            priority_step: SignedDuration::from_secs(random.below(90) as i64),
            paused: random.one_in(12),
        }
    }

    pub(super) async fn update_queue(&mut self, place: &str) {
        let queue = *self.random.pick(&self.queues).expect("there is a queue");
        let settings = self.settings(self.declared[&queue].settings.is_keyed());
        let unknown = self.random.one_in(10);
        let key = if unknown { QueueKey(queue.0 + 100_000) } else { queue };
        let store = self.store.update_queue(key, settings.clone()).await;
        assert_eq!(store, self.twin.update_queue(key, settings.clone()).await, "{place}: update");
        if !unknown {
            self.declared.insert(queue, Declared::new(settings));
        }
    }

    pub(super) async fn claim(&mut self, place: &str) {
        let queue = *self.random.pick(&self.queues).expect("there is a queue");
        let runs_max = self.random.below(6);
        self.clock += self.random.below(8) as i64;
        let keyed = self.declared[&queue].settings.is_keyed();
        // What keys may do after the clock went back is the store's business, as long as no limit is exceeded.
        let back = if keyed || self.random.one_in(2) { 0 } else { self.random.below(20) as i64 };
        let now = at(self.clock - back);
        let worker: Arc<str> = WORKERS[self.random.below(3)].into();
        let claim = Claim { queue, worker: worker.clone(), runs_max, now, keeper: Default::default() };
        let answers = (self.store.claim(claim.clone()).await, self.twin.claim(claim).await);
        let settings = &self.declared[&queue].settings;
        assert_eq!(answers.0, answers.1, "{place}: claim by {settings:?}");
        self.check_limits(queue, &worker, answers.0.expect("the store answers").runs).await;
    }

    async fn check_limits(&mut self, queue: QueueKey, worker: &Arc<str>, taken: Vec<LiveRun>) {
        let live =
            self.store.live_runs(Default::default(), None, usize::MAX).await.expect("the store answers");
        let declared = self.declared.get_mut(&queue).expect("it is declared");
        declared.check(queue, worker, &live, &taken);
    }
}

impl Declared {
    pub(in crate::conformance) fn new(settings: QueueSettings) -> Declared {
        Declared { settings, starts: Vec::new() }
    }

    /// Nothing was handed out that a limit forbids, now that these runs are live.
    pub(in crate::conformance) fn check(
        &mut self,
        queue: QueueKey,
        worker: &Arc<str>,
        live: &[LiveRun],
        taken: &[LiveRun],
    ) {
        let Declared { settings, starts } = self;
        let running = |wanted: &dyn Fn(&LiveRun, &Arc<str>) -> bool| {
            let runs = live.iter().filter(|live| match &live.state {
                LiveState::Running { worker, .. } => live.made.queue == queue && wanted(live, worker),
                LiveState::Ready | LiveState::BackingOff { .. } => false,
            });
            runs.count() as u64
        };
        let within = |bound: Option<u32>, count: u64| {
            assert!(bound.is_none_or(|bound| count <= bound.into()), "{count} run, {settings:?}");
        };
        if taken.is_empty() {
            return;
        }
        within(settings.concurrency_max, running(&|_, _| true));
        within(settings.worker_concurrency_max, running(&|_, of| of == worker));
        for run in taken {
            within(settings.key_concurrency_max, running(&|live, _| live.made.key == run.made.key));
            let LiveState::Running { started_at, .. } = run.state else { panic!("it runs") };
            starts.push((run.made.key.clone(), started_at));
        }
        let times = |wanted: &dyn Fn(&Arc<str>) -> bool| -> Vec<Timestamp> {
            starts.iter().filter(|(key, _)| wanted(key)).map(|(_, time)| *time).collect()
        };
        let check = |rate: Rate, starts: Vec<Timestamp>| {
            assert_within(&starts, rate.starts_max as usize, rate.per.as_secs());
        };
        if let Some(rate) = settings.rate {
            check(rate, times(&|_| true));
        }
        for key in KEYS {
            if let Some(rate) = settings.key_rate {
                check(rate, times(&|of| &**of == key));
            }
        }
    }
}
