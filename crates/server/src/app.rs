//! What every handler shares: the engine, who answers, and whether the server is stopping.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{RequestId, ScheduleKey};
use punctual_engine::{Elsewhere, Engine, Happened};
use punctual_store_sqlite::Sqlite;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc, watch};

use crate::calls::Calls;
use crate::metrics::Requests;
use crate::status::{Fault, STOPPING, TOO_MANY_WATCHERS};
use crate::temporal::activities::Polls;
use crate::temporal::upstream::Upstream;
use crate::traces::PlainNews;

/// What every handler shares.
pub(crate) struct App {
    pub(crate) engine: Engine,
    pub(crate) node: String,
    /// `sqlite`, `postgres` or `memory`.
    pub(crate) store: &'static str,
    pub(crate) started_at: Timestamp,
    /// How long ended runs are kept.
    pub(crate) run_retention: SignedDuration,
    pub(crate) requests: Requests,
    pub(crate) connections: Arc<Semaphore>,
    pub(crate) connections_max: usize,
    pub(crate) watchers: Arc<Semaphore>,
    pub(crate) watchers_max: usize,
    pub(crate) stopping: watch::Sender<bool>,
    pub(crate) calls: Calls,
    /// Polls of activity workers that wait.
    pub(crate) polls: Polls,
    /// The Temporal cluster behind this server, if there is one.
    pub(crate) upstream: Option<Upstream>,
    /// Where handlers tell of runs without a schedule, if traces are sent.
    pub(crate) plain_runs: Option<mpsc::Sender<PlainNews>>,
    /// The file behind it, if it is one.
    pub(crate) file: Option<File>,
}

/// A database in a file.
pub(crate) struct File {
    pub(crate) store: Arc<Sqlite>,
    pub(crate) path: PathBuf,
}

/// A watcher's place and what it hears.
pub(crate) struct Seat {
    pub(crate) events: broadcast::Receiver<Happened>,
    pub(crate) elsewhere: broadcast::Receiver<Elsewhere>,
    pub(crate) stopping: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
}

impl App {
    /// Whether new waits are refused and old ones end.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Ends when the server begins to stop.
    pub(crate) async fn stop(&self) {
        // The sender is in `self`, so waiting cannot fail.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }

    /// Whether traces are sent, and called servers are told the trace of their run.
    pub(crate) fn has_traces(&self) -> bool {
        self.plain_runs.is_some()
    }

    /// Tells those who make traces. Nobody waits for them: what they cannot take has no trace.
    pub(crate) fn tell_traces(&self, news: impl IntoIterator<Item = PlainNews>) {
        if let Some(traces) = &self.plain_runs {
            for news in news {
                let _ = traces.try_send(news);
            }
        }
    }

    /// A place among the watchers, if there is one.
    pub(crate) fn seat(&self) -> Result<Seat, Fault> {
        if self.is_stopping() {
            return Err(Fault::new(&STOPPING, "the server is stopping"));
        }
        let place = self.watchers.clone().try_acquire_owned();
        let max = self.watchers_max;
        let full =
            |_| Fault::new(&TOO_MANY_WATCHERS, format!("{max} watchers are allowed, and all are there"));
        Ok(Seat {
            events: self.engine.watch(),
            elsewhere: self.engine.watch_elsewhere(),
            stopping: self.stopping.subscribe(),
            _place: place.map_err(full)?,
        })
    }
}

/// Who asks without a namespace means this one.
pub(crate) const NAMESPACE_DEFAULT: &str = "default";

/// The queue that is there from the start.
pub(crate) const QUEUE_DEFAULT: &str = "default";

/// The namespace that a request means.
pub(crate) fn namespace(given: &str) -> &str {
    if given.is_empty() { NAMESPACE_DEFAULT } else { given }
}

/// The schedule that a request means.
pub(crate) fn schedule_key(namespace_given: &str, schedule: &str) -> Result<ScheduleKey, Fault> {
    if schedule.is_empty() {
        return Err(Fault::field("schedule_id", "is empty, expected the name of a schedule"));
    }
    Ok(ScheduleKey::new(namespace(namespace_given), schedule))
}

/// The client's name for its request, or one that nobody else has.
pub(crate) fn request_id(given: &str) -> RequestId {
    if given.is_empty() { RequestId::new(&uuid::Uuid::new_v4().to_string()) } else { RequestId::new(given) }
}
