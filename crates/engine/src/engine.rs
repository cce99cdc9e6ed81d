//! The engine of one node: starts and stops the drivers of its shards, and serves every verb.

mod enqueue;
mod examine;
mod own;
mod queues;
mod read;
mod retain;
mod runs;
mod schedules;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use punctual_store::Store;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

pub use enqueue::{Enqueued, OnDuplicate, RunOrder};
pub use examine::{StrandedQueue, TimerCheck};
pub use read::{Described, Listed, WhyAnswer};
pub use runs::{RunPage, RunSearch, RunView};
pub use schedules::NewSchedule;

use crate::clock::Clock;
use crate::config::EngineConfig;
use crate::desk::Desk;
use crate::error::EngineError;
use crate::metrics::Metrics;
use crate::outlet::{Happened, Outlet};
use crate::router::Router;
use queues::Queues;

/// The engine of one node. Cloning it is cheap; all clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    config: EngineConfig,
    metrics: Arc<Metrics>,
    router: Arc<Router>,
    outlet: Arc<Outlet>,
    desk: Arc<Desk>,
    queues: Queues,
    stopping: AtomicBool,
    owners: Mutex<Vec<JoinHandle<()>>>,
    helpers: Mutex<Vec<JoinHandle<()>>>,
}

/// Whether the engine can do its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// It can.
    pub ready: bool,
    /// What is in its way, if anything is.
    pub reason: Option<String>,
}

impl Engine {
    /// Starts an engine on a store: takes over what was live, then drives what is due. Must be called inside a tokio runtime.
    pub async fn start(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        config: EngineConfig,
    ) -> Result<Engine, EngineError> {
        let metrics = Arc::new(Metrics::default());
        let router = Arc::new(Router::new(store.shards(), config.requests_max, metrics.clone()));
        let (outlet, news) = Outlet::new(metrics.clone());
        let desk = Desk::new(store.clone(), clock.clone(), router.clone(), metrics.clone(), config.clone());
        let desk = Arc::new(desk);
        let inner = Arc::new(Inner {
            store,
            clock,
            config,
            metrics,
            router,
            outlet,
            desk,
            queues: Queues::default(),
            stopping: AtomicBool::new(false),
            owners: Mutex::default(),
            helpers: Mutex::default(),
        });
        let engine = Engine { inner };
        engine.refresh_queues().await?;
        engine.inner.desk.recover().await?;
        let desk = tokio::spawn(engine.inner.desk.clone().run(news));
        let retention = tokio::spawn(engine.clone().retain());
        let checks = tokio::spawn(engine.clone().keep_checking());
        keep(&engine.inner.helpers, [desk, retention, checks]);
        engine.own_all().await?;
        Ok(engine)
    }

    /// Stops: takes no more work, finishes what is on its way, gives its shards up. Ends within the time given.
    pub async fn stop(&self, deadline: Duration) -> bool {
        self.inner.stopping.store(true, Ordering::SeqCst);
        self.stop_drivers();
        let owners =
            std::mem::take(&mut *self.inner.owners.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        let all = async {
            for owner in owners {
                let _ = owner.await;
            }
        };
        let in_time = tokio::time::timeout(deadline, all).await.is_ok();
        let helpers =
            std::mem::take(&mut *self.inner.helpers.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        for helper in helpers {
            helper.abort();
            // Only when it is gone has it let go of the store.
            let _ = helper.await;
        }
        in_time
    }

    /// Whether it can do its work.
    pub fn health(&self) -> Health {
        let trouble = self.inner.outlet.trouble.lock().ok().and_then(|trouble| trouble.clone());
        let reason = if self.is_stopping() {
            Some("stopping".to_owned())
        } else if let Some(trouble) = trouble {
            Some(format!("the database does not answer: {trouble}"))
        } else if !self.inner.router.is_complete() {
            Some("not every shard has an owner here".to_owned())
        } else {
            None
        };
        Health { ready: reason.is_none(), reason }
    }

    /// What it counts.
    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// What time it is, for the engine.
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// The bounds in force.
    pub fn config(&self) -> &EngineConfig {
        &self.inner.config
    }

    /// Everything that happens to schedules from now on. Who is slow misses some, and is told so.
    pub fn watch(&self) -> broadcast::Receiver<Happened> {
        self.inner.outlet.events.subscribe()
    }

    fn is_stopping(&self) -> bool {
        self.inner.stopping.load(Ordering::SeqCst)
    }
}

fn keep(place: &Mutex<Vec<JoinHandle<()>>>, tasks: impl IntoIterator<Item = JoinHandle<()>>) {
    if let Ok(mut kept) = place.lock() {
        kept.extend(tasks);
    }
}
