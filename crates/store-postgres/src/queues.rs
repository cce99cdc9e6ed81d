//! What is set about queues, remembered; whoever relies on it compares the version in the transaction.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures_util::future::join;
use jiff::SignedDuration;
use punctual_store::record::{decode_queue, encode_queue};
use punctual_store::{NewQueue, Queue, QueueKey, QueueSettings, StoreError};
use tokio_postgres::Row;

use crate::careful::Careful;
use crate::fault::Fault;
use crate::floor::Floors;
use crate::session::Session;
use crate::value::{at, time};

/// What is remembered.
#[derive(Default)]
pub(crate) struct Queues {
    known: RwLock<HashMap<i64, Known>>,
    /// Where looks for ready runs begin.
    pub(crate) floors: Floors,
    /// Queues that somebody holds for longer than a claim takes, and until when nobody here asks for them.
    held: Mutex<HashMap<i64, Instant>>,
}

/// How long a queue is waited for. Those who wait have all that their node writes behind them.
const LOCK_MAX: Duration = Duration::from_millis(150);

/// How long whoever holds a queue may do nothing: it has stopped, or its way is cut.
const HOLDER_MAX: Duration = Duration::from_millis(500);

/// How long a queue that somebody holds is left alone.
pub(crate) const HELD: SignedDuration = SignedDuration::from_millis(100);

/// One queue.
#[derive(Clone)]
pub(crate) struct Known {
    /// Counts changes of the settings; nothing for a queue that is not declared.
    pub(crate) version: Option<i64>,
    pub(crate) settings: Arc<QueueSettings>,
}

/// What holds for a queue that nobody has declared.
static UNDECLARED: LazyLock<Known> = LazyLock::new(|| Known { version: None, settings: Arc::default() });

impl Known {
    /// Whether a claim has more to look at than who is first in line.
    pub(crate) fn is_limited(&self) -> bool {
        let settings = &self.settings;
        self.version.is_none()
            || settings.paused
            || settings.is_keyed()
            || settings.concurrency_max.is_some()
            || settings.worker_concurrency_max.is_some()
            || settings.rate.is_some()
    }

    fn read(row: &Row) -> Result<Known, Fault> {
        let settings = decode_queue(row.get(2))
            .map_err(|odd| StoreError::corrupted(format!("queue {}", row.get::<_, i64>(0)), odd))?;
        Ok(Known { version: Some(row.get(1)), settings: Arc::new(settings) })
    }
}

impl Queues {
    /// What is remembered of a queue.
    pub(crate) fn of(&self, queue: i64) -> Known {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&queue).unwrap_or(&UNDECLARED).clone()
    }

    /// Reads all of them again.
    pub(crate) async fn refresh(&self, session: &Session) -> Result<(), Fault> {
        let rows = session.query("SELECT queue, version, settings FROM punctual.queue", &[]).await?;
        let read = rows.iter().map(|row| Ok((row.get(0), Known::read(row)?)));
        let read: HashMap<i64, Known> = read.collect::<Result<_, Fault>>()?;
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = read;
        Ok(())
    }

    /// Reads one again, and keeps it as it is until the transaction ends: nobody else claims by its limits meanwhile. A node that
    /// stops with it in hand would hold up all others, once with each connection that it has in line.
    pub(crate) async fn lock(&self, session: &Session, queue: i64) -> Result<Option<Known>, Fault> {
        let bounds = format!(
            "SET LOCAL lock_timeout = {}; SET LOCAL idle_in_transaction_session_timeout = {}",
            LOCK_MAX.as_millis(),
            HOLDER_MAX.as_millis()
        );
        let sql = "SELECT queue, version, settings FROM punctual.queue WHERE queue = $1 FOR NO KEY UPDATE";
        let (bounded, found) = join(session.run(&bounds), session.find(sql, &[&queue])).await;
        bounded?;
        found?.map(|row| Known::read(&row)).transpose()
    }

    /// Somebody holds it: nobody here asks for it for a moment.
    pub(crate) fn is_found_held(&self, queue: i64) {
        let until = Instant::now() + HELD.unsigned_abs();
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(queue, until);
    }

    /// Whether somebody held it a moment ago.
    pub(crate) fn is_held(&self, queue: i64) -> bool {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, until| *until > Instant::now());
        held.contains_key(&queue)
    }
}

const FIND: &str = "SELECT queue, namespace, name, settings, created_at FROM punctual.queue WHERE namespace = $1 AND name = $2";

/// Declares a queue, or gives back the one of this name.
pub(crate) async fn create(session: &Session, made: &NewQueue) -> Result<Queue, Fault> {
    let name = (&made.namespace[..], &made.name[..]);
    if let Some(row) = session.find(FIND, &[&name.0, &name.1]).await? {
        return stored(&row);
    }
    let settings = encode_queue(&made.settings);
    let sql = "WITH key AS (UPDATE punctual.meta SET number = number + 1 WHERE name = 'next_key' RETURNING number - 1)
        INSERT INTO punctual.queue (queue, namespace, name, settings, version, created_at)
        SELECT key.*, $1, $2, $3, 1, $4 FROM key
        ON CONFLICT (namespace, name) DO NOTHING
        RETURNING queue, punctual.tell('Q' || queue)";
    let row = session.find(sql, &[&name.0, &name.1, &&settings[..], &time(made.created_at)]).await?;
    match row {
        Some(row) => Ok(Queue { queue: QueueKey(row.get(0)), made: made.clone() }),
        // Somebody else declared it just now.
        None => match session.find(FIND, &[&name.0, &name.1]).await? {
            Some(row) => stored(&row),
            None => Err(StoreError::unavailable("the queue is being declared by another node").into()),
        },
    }
}

/// Changes the settings of a queue; what its limits count is counted anew in the same transaction.
pub(crate) async fn update(
    session: &Session,
    queues: &Queues,
    queue: QueueKey,
    settings: &QueueSettings,
) -> Result<Option<Queue>, Fault> {
    // Waits for everybody who relies on the settings as they are.
    let sql =
        "SELECT queue, namespace, name, settings, created_at FROM punctual.queue WHERE queue = $1 FOR UPDATE";
    let Some(row) = session.find(sql, &[&queue.0]).await? else { return Ok(None) };
    let known = stored(&row)?;
    let sql = "UPDATE punctual.queue SET settings = $2, version = version + 1 WHERE queue = $1
        RETURNING punctual.tell('Q' || queue)";
    session.execute(sql, &[&queue.0, &&encode_queue(settings)[..]]).await?;
    Careful::new(session, queues).rebuild(queue.0, &known.made.settings, settings).await?;
    let made = NewQueue { settings: settings.clone(), ..known.made };
    Ok(Some(Queue { queue, made }))
}

/// A queue from its row.
pub(crate) fn stored(row: &Row) -> Result<Queue, Fault> {
    let queue = QueueKey(row.get(0));
    let settings =
        decode_queue(row.get(3)).map_err(|odd| StoreError::corrupted(format!("queue {queue}"), odd))?;
    let (namespace, name): (&str, &str) = (row.get(1), row.get(2));
    let made =
        NewQueue { namespace: namespace.into(), name: name.into(), settings, created_at: at(row.get(4)) };
    Ok(Queue { queue, made })
}
