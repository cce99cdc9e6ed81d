//! Where the effects of all shards of a node come together: counting, the event log, runs, and broken schedules.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use punctual_core::{Note, ScheduleKey, StartId, StopKind};
use punctual_store::{QueueKey, RunKey, StoreError, TreeKey};
use tokio::sync::{broadcast, mpsc};

use crate::metrics::Metrics;
use crate::shard::{Effect, MadeRun};
use crate::watchers::Watchers;

/// One line of a schedule's event log.
#[derive(Clone, Debug)]
pub struct Happened {
    /// Of which schedule.
    pub key: Arc<ScheduleKey>,
    /// When.
    pub at: Timestamp,
    /// What.
    pub note: Note,
    /// The run that it is about, if it is on a queue.
    pub run: Option<RunKey>,
}

/// What the keeper of runs is told.
#[derive(Debug)]
pub(crate) enum RunNews {
    /// Runs were made, by so many schedules.
    Made { queue: QueueKey, schedules: usize, runs: Vec<MadeRun> },
    /// A schedule wants one of its runs to stop.
    Stop { tree: TreeKey, start: StartId, run: Option<RunKey>, kind: StopKind },
    /// Runs may have been made without an answer.
    Doubt,
}

impl RunNews {
    /// Adds runs of one more schedule to what is told of a queue.
    pub(crate) fn add(told: &mut Vec<RunNews>, queue: QueueKey, made: Vec<MadeRun>) {
        match told.last_mut() {
            Some(RunNews::Made { queue: same, schedules, runs }) if *same == queue => {
                *schedules += 1;
                runs.extend(made);
            }
            _ => told.push(RunNews::Made { queue, schedules: 1, runs: made }),
        }
    }
}

/// Events that a slow watcher may be behind before it misses some.
const EVENTS_KEPT: usize = 4_096;

/// Where effects go.
pub(crate) struct Outlet {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) events: broadcast::Sender<Happened>,
    pub(crate) watchers: Watchers,
    pub(crate) runs: mpsc::UnboundedSender<RunNews>,
    pub(crate) quarantined: Mutex<BTreeMap<TreeKey, Arc<str>>>,
    /// What the database said last, while it does not answer.
    pub(crate) trouble: Mutex<Option<String>>,
}

impl Outlet {
    pub(crate) fn new(
        metrics: Arc<Metrics>,
        watchers: Watchers,
    ) -> (Arc<Outlet>, mpsc::UnboundedReceiver<RunNews>) {
        let (runs, news) = mpsc::unbounded_channel();
        let (events, _) = broadcast::channel(EVENTS_KEPT);
        let (quarantined, trouble) = Default::default();
        (Arc::new(Outlet { metrics, events, watchers, runs, quarantined, trouble }), news)
    }

    /// Whether anybody wants to hear of what happens to schedules, line by line.
    pub(crate) fn is_followed(&self) -> bool {
        tracing::enabled!(tracing::Level::DEBUG) || self.watchers.any() || self.events.receiver_count() > 0
    }

    /// The database has answered.
    pub(crate) fn recovered(&self) {
        if self.trouble.lock().is_ok_and(|mut trouble| trouble.take().is_some()) {
            tracing::info!("the database answers again");
        }
    }

    /// Broken schedules are driven elsewhere from now on.
    pub(crate) fn forget_quarantined(&self, trees: impl Iterator<Item = TreeKey>) {
        if let Ok(mut quarantined) = self.quarantined.lock() {
            trees.for_each(|tree| drop(quarantined.remove(&tree)));
            self.metrics.quarantined.set(quarantined.len() as u64);
        }
    }

    /// The database did not answer.
    pub(crate) fn stumbled(&self, error: &StoreError) {
        self.metrics.stumbles.add(1);
        if let Ok(mut trouble) = self.trouble.lock() {
            if trouble.is_none() {
                tracing::warn!(%error, "the database does not answer; what is driven here goes on as far as it can");
            }
            *trouble = Some(error.to_string());
        }
    }

    /// Runs are durable.
    pub(crate) fn made(&self, made: Vec<RunNews>, now: Timestamp) {
        for news in made {
            if let RunNews::Made { runs, .. } = &news {
                for run in runs {
                    self.metrics.lateness.observe_duration(now.duration_since(run.due_time));
                }
            }
            let _ = self.runs.send(news);
        }
    }

    pub(crate) fn take(&self, effect: Effect) {
        match effect {
            Effect::Stop { tree, start, run, kind } => {
                let _ = self.runs.send(RunNews::Stop { tree, start, run, kind });
            }
            // A run on a queue is known to the database: it is never silent for its schedule, and needs no looking after.
            Effect::Check { .. } => {}
            Effect::Noted { key, at, note, run } => {
                tracing::debug!(namespace = %key.namespace, schedule_id = %key.schedule, ?note, "noted");
                let happened = Happened { key, at, note, run };
                self.watchers.tell(&happened);
                // Nobody may be watching.
                let _ = self.events.send(happened);
            }
            Effect::Decided { verdict, count } => self.metrics.decided(verdict, count),
            Effect::Written { units, conflicts } => {
                self.metrics.batch_size.observe(units as f64);
                self.metrics.conflicts.add(conflicts as u64);
                self.recovered();
            }
            Effect::Stumbled { reason, failures } => {
                self.metrics.stumbles.add(1);
                if failures.is_power_of_two() {
                    tracing::warn!(%reason, failures, "the database does not answer; backing off");
                }
                if let Ok(mut trouble) = self.trouble.lock() {
                    *trouble = Some(reason);
                }
                let _ = self.runs.send(RunNews::Doubt);
            }
            Effect::Quarantined { tree, key, reason } => {
                let (namespace, schedule) = (&key.namespace, &key.schedule);
                tracing::error!(%namespace, schedule_id = %schedule, %reason, "schedule quarantined");
                if let Ok(mut quarantined) = self.quarantined.lock() {
                    quarantined.insert(tree, reason);
                    self.metrics.quarantined.set(quarantined.len() as u64);
                }
            }
            // The driver performs these itself.
            Effect::RunsMade { .. }
            | Effect::Load(_)
            | Effect::Commit { .. }
            | Effect::Reserve { .. }
            | Effect::ListQueues
            | Effect::Reply { .. }
            | Effect::Start { .. }
            | Effect::Fenced => {}
        }
    }
}
