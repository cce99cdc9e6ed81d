//! Calls that the server makes itself: runs of the queue `punctual.calls`, taken and reported like any worker's.
//!
//! A call is a run, so everything that holds for runs holds for it: it is durable before it is made, a node that dies is
//! taken over after its lease, attempts and timeouts are those of its action, and it can be listed, cancelled and explained.
//! No transaction is open while a call is made. Calls to one target share the places of its key, so a dead target delays no
//! other.

mod perform;
mod beat;
mod accepted;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use punctual_actions::{Call, CallError, Caller, Claim, Rules, Signer, Stopper};
use punctual_core::RunAction;
use punctual_engine::{Engine, EngineError};
use punctual_store::{Queue, QueueSettings, RunKey};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

use crate::app::App;
use crate::config::Config;
use crate::convert::action::CALLS_QUEUE;
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::status::{Fault, NOT_ALLOWED};

/// What a callback's token is for.
pub(crate) const CALLBACK: &str = "callback";

/// How long one claim waits.
const WAIT: Duration = Duration::from_secs(20);

/// Calls that one claim takes.
const CLAIM_MAX: usize = 100;

/// The calls of this node.
pub(crate) struct Calls {
    caller: Caller,
    rules: Rules,
    signer: Signer,
    /// Where callbacks are sent.
    base: String,
    /// Who this is, among workers.
    worker: Arc<str>,
    places: Arc<Semaphore>,
    in_flight: Mutex<BTreeMap<(Arc<str>, RunKey), InFlight>>,
    /// Attempts of operations that were taken on, so that a cancel can be passed on.
    accepted: Mutex<BTreeMap<(Arc<str>, RunKey), u32>>,
    pub(crate) count: AtomicU64,
}

/// A call that is being made.
struct InFlight {
    attempt: u32,
    stopper: Stopper,
}

impl Calls {
    /// What is needed to make calls, as the operator allows them.
    pub(crate) async fn new(config: &Config, address: &str, engine: &Engine) -> Result<Calls, EngineError> {
        let rules = Rules {
            allow_private: config.allow_private,
            allowed_networks: config.allow_networks.0.clone(),
            allow_commands: config.allow_commands,
            response_bytes_max: PAYLOAD_BYTES_MAX - 1024,
            in_flight_max: config.calls_max,
            in_flight_per_target_max: config.calls_per_target_max,
            ..Rules::default()
        };
        let fresh = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()].map(uuid::Uuid::into_bytes).concat();
        let secret = engine.secret(fresh.try_into().unwrap_or([0; 32])).await?;
        let base = match config.callback_url.as_str() {
            "" => format!("http://{address}"),
            given => given.trim_end_matches('/').to_owned(),
        };
        let caller = Caller::new(rules.clone());
        Ok(Calls {
            caller: caller.map_err(|error| EngineError::Invalid(error.to_string()))?,
            places: Arc::new(Semaphore::new(config.calls_max)),
            rules,
            signer: Signer::new(secret),
            base,
            worker: format!("punctual.node.{}", config.node).into(),
            in_flight: Mutex::default(),
            accepted: Mutex::default(),
            count: AtomicU64::new(0),
        })
    }

    /// Refuses what would never work: a call that makes no sense, or that the operator does not allow.
    pub(crate) fn check(&self, action: &RunAction) -> Result<(), Fault> {
        let Some(bytes) = &action.call else { return Ok(()) };
        let checked = Call::from_json(bytes).and_then(|call| call.check(&self.rules));
        checked.map_err(|error| refused(&error).within(&format!("action.{}", action.handler)))
    }

    /// Calls to one target at a time, as the queue counts them.
    fn per_target_max(&self) -> Option<u32> {
        Some(u32::try_from(self.rules.in_flight_per_target_max).unwrap_or(u32::MAX))
    }

    /// Sees to it that the queue of calls exists where it is needed.
    pub(crate) async fn declare(&self, engine: &Engine, namespace: &str) -> Result<(), EngineError> {
        if engine.describe_queue(namespace, CALLS_QUEUE).await.is_ok() {
            return Ok(());
        }
        let settings = QueueSettings {
            description: "calls that the server makes itself; the key is the target".into(),
            key_concurrency_max: self.per_target_max(),
            ..QueueSettings::default()
        };
        engine.create_queue(namespace, CALLS_QUEUE, settings).await.map(drop)
    }

    /// The setting may have changed since the queue was made. What else was set of the queue stays.
    async fn renew(&self, engine: &Engine, queue: &Queue) {
        if queue.made.settings.key_concurrency_max == self.per_target_max() {
            return;
        }
        let settings =
            QueueSettings { key_concurrency_max: self.per_target_max(), ..queue.made.settings.clone() };
        if let Err(error) = engine.update_queue(&queue.made.namespace, CALLS_QUEUE, settings).await {
            tracing::warn!(%error, "calls_per_target_max is not in force: the queue keeps what it was made with");
        }
    }

    /// A token that speaks for a run.
    pub(crate) fn sign(&self, claim: &Claim) -> String {
        self.signer.sign(claim)
    }

    /// Who a token for this purpose speaks for; nothing if it is forged or over.
    pub(crate) fn verify(&self, token: &str, purpose: &str, now: i64) -> Option<Claim> {
        self.signer.verify(token, purpose, now).ok()
    }

    fn accepted(&self) -> MutexGuard<'_, BTreeMap<(Arc<str>, RunKey), u32>> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_flight(&self) -> MutexGuard<'_, BTreeMap<(Arc<str>, RunKey), InFlight>> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refused(error: &CallError) -> Fault {
    match error {
        CallError::Malformed { reason } | CallError::Rules { reason } => Fault::field("", reason),
        CallError::Invalid { field, reason } => Fault::field(field, reason),
        CallError::AddressRefused { field, reason } => Fault::new(&NOT_ALLOWED, reason).at(field),
        CallError::Forbidden { reason } => Fault::new(&NOT_ALLOWED, reason),
    }
}

/// Takes and makes calls until the server stops.
pub(crate) fn start(app: &Arc<App>) -> JoinHandle<()> {
    let app = app.clone();
    tokio::spawn(async move {
        let mut served = BTreeMap::new();
        let mut helpers = JoinSet::new();
        loop {
            let queues = tokio::select! {
                queues = app.engine.queues_named(CALLS_QUEUE, served.len()) => queues,
                () = app.stop() => break,
            };
            for queue in queues {
                let namespace = queue.made.namespace.clone();
                if served.insert(namespace.clone(), ()).is_none() {
                    app.calls.renew(&app.engine, &queue).await;
                    helpers.spawn(serve(app.clone(), namespace.clone()));
                    helpers.spawn(beat::keep(app.clone(), namespace.clone()));
                    helpers.spawn(accepted::recall(app.clone(), namespace));
                }
            }
        }
        while helpers.join_next().await.is_some() {}
    })
}

/// Takes the calls of one namespace, as many as there are places.
async fn serve(app: Arc<App>, namespace: Arc<str>) {
    let mut made = JoinSet::new();
    while !app.is_stopping() {
        let places = app.calls.places.clone();
        let place = tokio::select! {
            Ok(place) = places.clone().acquire_owned() => place,
            () = app.stop() => break,
        };
        let mut held = vec![place];
        while held.len() < CLAIM_MAX
            && let Ok(place) = places.clone().try_acquire_owned()
        {
            held.push(place);
        }
        let claim = app.engine.claim(&namespace, CALLS_QUEUE, &app.calls.worker, held.len(), WAIT, None);
        let claimed = tokio::select! {
            claimed = claim => claimed,
            () = app.stop() => break,
        };
        match claimed {
            Ok(claimed) => {
                for (claimed, place) in claimed.into_iter().zip(held) {
                    let app = app.clone();
                    made.spawn(async move {
                        app.calls.count.fetch_add(1, Ordering::Relaxed);
                        perform::perform(&app, claimed).await;
                        app.calls.count.fetch_sub(1, Ordering::Relaxed);
                        drop(place);
                    });
                }
            }
            Err(error) => {
                tracing::warn!(%namespace, %error, "calls have to wait");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        while made.try_join_next().is_some() {}
    }
    // What is in flight may still end; what does not in time is made again after the restart, with the same key.
    let grace = tokio::time::sleep(Duration::from_secs(2));
    tokio::pin!(grace);
    loop {
        tokio::select! {
            ended = made.join_next() => if ended.is_none() { break },
            () = &mut grace => break,
        }
    }
}
