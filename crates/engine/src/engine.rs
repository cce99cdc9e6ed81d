//! The engine of one node: starts and stops the drivers of its shards, and serves every verb.

mod adopt;
mod enqueue;
mod examine;
mod hear;
mod member;
mod nodes;
mod own;
mod queues;
mod read;
mod reports;
mod retain;
mod runs;
mod schedules;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_store::Store;
use tokio::sync::{Notify, broadcast, mpsc};
use tokio::task::JoinHandle;

pub use enqueue::{Enqueued, OnDuplicate, RunOrder};
pub use examine::{StrandedQueue, TimerCheck};
pub use read::{Described, Listed, WhyAnswer};
pub use runs::{RunPage, RunSearch, RunView};
pub use schedules::NewSchedule;

use crate::clock::Clock;
use crate::cluster::{DatabaseClock, Node};
use crate::config::EngineConfig;
use crate::desk::Desk;
use crate::driver::Surroundings;
use crate::error::EngineError;
use crate::metrics::Metrics;
use crate::outlet::{Happened, Outlet, RunNews};
use crate::relay::Relay;
use crate::router::Router;
use crate::threads::Threads;
use crate::watchers::Watchers;
use member::{Member, Standing};
use queues::Queues;
use reports::Remembered;

/// How long a node takes to leave when it could not even begin, and to say goodbye.
const GIVE_UP: Duration = Duration::from_secs(5);

/// Where many draw keys, none uses old ones: runs are listed by key, the latest first.
const KEYS_AGE_MAX: SignedDuration = SignedDuration::from_secs(1);

/// Such stores keep keys for all shards of a node together, so none needs very many of its own; and runs that are made at the same
/// time are neighbours in what is sorted by key. They last for two large batches while more are drawn.
const KEYS_MIN: i64 = 5_000;

/// The engine of one node. Cloning it is cheap; all clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// The same clock, if it is the database's.
    database_clock: Option<Arc<DatabaseClock>>,
    config: EngineConfig,
    node: Node,
    /// Nodes may have come or gone.
    roster_bell: Notify,
    standing: Mutex<Standing>,
    reports: Remembered,
    metrics: Arc<Metrics>,
    router: Arc<Router>,
    outlet: Arc<Outlet>,
    threads: Threads,
    desk: Arc<Desk>,
    queues: Queues,
    stopping: AtomicBool,
    /// Whoever drives shards here.
    owners: Mutex<Vec<JoinHandle<()>>>,
    /// Whoever serves schedules of other nodes.
    guests: Mutex<Vec<JoinHandle<()>>>,
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
        mut config: EngineConfig,
    ) -> Result<Engine, EngineError> {
        let mut clock = clock;
        let database_clock = match config.follow_database_clock {
            true => Some(Arc::new(DatabaseClock::new(&*store, clock.clone()).await?)),
            false => None,
        };
        if let Some(database_clock) = &database_clock {
            clock = database_clock.clone();
        }
        let node = Node::new(&*store, &config, clock.now()).await?;
        if node.shared {
            config.shard.keys_age_max = config.shard.keys_age_max.min(KEYS_AGE_MAX);
            config.shard.keys_min = config.shard.keys_min.min(KEYS_MIN);
        }
        let metrics = Arc::new(Metrics::default());
        let relay =
            node.shared.then(|| Relay::new(store.clone(), node.keeper, config.shard_lease.unsigned_abs()));
        let router = Arc::new(Router::new(store.shards(), config.requests_max, metrics.clone(), relay));
        let (outlet, news) = Outlet::new(metrics.clone(), Watchers::new(store.clone(), node.keeper));
        let (desk_config, desk_node) = (config.clone(), node.clone());
        let desk =
            Desk::new(store.clone(), clock.clone(), router.clone(), metrics.clone(), desk_config, desk_node);
        let desk = Arc::new(desk);
        let around = Surroundings {
            keeper: node.keeper,
            store: store.clone(),
            clock: clock.clone(),
            runtime: tokio::runtime::Handle::current(),
            outlet: outlet.clone(),
        };
        let threads = Threads::start(around, store.shards())
            .map_err(|error| EngineError::Unavailable(format!("no thread for shards: {error}")))?;
        let inner = Arc::new(Inner {
            store,
            clock,
            database_clock,
            config,
            node,
            roster_bell: Notify::new(),
            standing: Mutex::default(),
            reports: Remembered::default(),
            metrics,
            router,
            outlet,
            threads,
            desk,
            queues: Queues::default(),
            stopping: AtomicBool::new(false),
            owners: Mutex::default(),
            guests: Mutex::default(),
            helpers: Mutex::default(),
        });
        let engine = Engine { inner };
        let started = engine.set_going(news).await;
        if let Err(error) = started {
            // What it holds would be missing elsewhere.
            engine.stop(GIVE_UP).await;
            return Err(error);
        }
        Ok(engine)
    }

    async fn set_going(&self, news: mpsc::UnboundedReceiver<RunNews>) -> Result<(), EngineError> {
        let (inner, shared) = (&self.inner, self.inner.node.shared);
        // Who listens before looking misses nothing.
        let listener = inner.store.listen().filter(|_| shared);
        self.refresh_queues().await?;
        if !shared {
            inner.desk.recover().await?;
        }
        let desk = tokio::spawn(inner.desk.clone().run(news));
        let retention = tokio::spawn(self.clone().retain());
        let checks = tokio::spawn(self.clone().keep_checking());
        keep(&inner.helpers, [desk, retention, checks]);
        if shared {
            let guest = self.start_guest();
            keep(&inner.guests, [tokio::spawn(self.clone().keep_guest(guest))]);
            keep(&inner.helpers, listener.map(|listener| tokio::spawn(self.clone().hear_all(listener))));
            keep(&inner.helpers, [tokio::spawn(inner.desk.clone().sweep())]);
        }
        let mut member = Member::new(self.clone());
        let joined = member.join().await;
        keep(&inner.owners, [tokio::spawn(member.run())]);
        joined
    }

    /// Stops: takes no more work, finishes what is on its way, gives its shards up. Ends within the time given.
    pub async fn stop(&self, deadline: Duration) -> bool {
        let inner = &self.inner;
        inner.stopping.store(true, Ordering::SeqCst);
        inner.roster_bell.notify_one();
        let (owners, guests) = (take(&inner.owners), take(&inner.guests));
        let all = async {
            for owner in owners {
                let _ = owner.await;
            }
            // While shards are given up, their schedules are served by the guest.
            inner.router.stop_guest();
            for guest in guests {
                let _ = guest.await;
            }
            inner.desk.finish().await;
        };
        let in_time = tokio::time::timeout(deadline, all).await.is_ok();
        for helper in take(&inner.helpers) {
            helper.abort();
            // Only when it is gone has it let go of the store.
            let _ = helper.await;
        }
        if inner.node.shared && in_time {
            let struck = tokio::time::timeout(GIVE_UP, inner.store.strike(inner.node.id.clone(), true)).await;
            if !matches!(struck, Ok(Ok(()))) {
                tracing::warn!("the others could not be told; they wait until this node's time is over");
            }
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
        } else {
            self.aloof().map(str::to_owned)
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

    /// Everything that happens at this node to schedules from now on. Who is slow misses some, and is told so.
    pub fn watch(&self) -> broadcast::Receiver<Happened> {
        self.inner.outlet.events.subscribe()
    }

    fn is_stopping(&self) -> bool {
        self.inner.stopping.load(Ordering::SeqCst)
    }
}

fn take(place: &Mutex<Vec<JoinHandle<()>>>) -> Vec<JoinHandle<()>> {
    std::mem::take(&mut *place.lock().unwrap_or_else(PoisonError::into_inner))
}

fn keep(place: &Mutex<Vec<JoinHandle<()>>>, tasks: impl IntoIterator<Item = JoinHandle<()>>) {
    if let Ok(mut kept) = place.lock() {
        kept.extend(tasks);
    }
}
