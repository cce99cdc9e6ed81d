//! What nodes tell each other: one channel, heard on a connection of its own, told in bundles.

mod ending;
mod hex;
mod told;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use punctual_store::{EndingAnswer, Keeper, Listener, News, QueueKey, RunKey, ShardId, StoreError, TreeKey};
use tokio::sync::mpsc;
use tokio_postgres::AsyncMessage;

use crate::fault::Fault;
use crate::lane::Lanes;
use crate::options::Options;
use crate::pool::Pool;
use crate::queues::Queues;
use crate::session::{Address, Purpose, Session};
use crate::value::{at, time};

/// A payload may have 8,000 bytes.
const BYTES_MAX: usize = 7_000;

/// The longest time between two tries to listen again.
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// Who listens in this process.
#[derive(Default)]
pub(crate) struct Listeners(Mutex<Vec<mpsc::UnboundedSender<News>>>);

impl Listeners {
    pub(crate) fn add(&self) -> Listener {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        receiver
    }

    pub(crate) fn hear(&self, news: &News) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.send(news.clone()).is_ok());
    }
}

/// One piece of news in a payload.
pub(crate) fn encode(news: &News) -> String {
    match news {
        News::Ready(queue) => format!("R{queue}"),
        News::Wanted { queue, at } => format!("A{queue}:{at}"),
        News::Queue(queue) => format!("Q{queue}"),
        News::Tree { shard, tree, due_time } => match due_time {
            Some(due_time) => format!("T{shard}:{tree}:{}", time(*due_time)),
            None => format!("T{shard}:{tree}:"),
        },
        News::Stop(run) => format!("S{run}"),
        News::Ending(ending) => format!("E{}", ending::encode(ending)),
        News::Written { to, ticket, answer } => {
            let answer = match answer {
                EndingAnswer::Written => 'w',
                EndingAnswer::RunMoved => 'm',
                EndingAnswer::Refused => 'r',
            };
            format!("W{to}:{ticket}:{answer}")
        }
        News::Watched { at, watch } => format!("V{at}:{}", told::encode_watch(watch)),
        News::Happened(happened) => format!("H{}", told::encode(happened)),
        News::Untold { from, count } => format!("U{from}:{count}"),
        News::Roster => "N".to_owned(),
        News::Gap => "G".to_owned(),
    }
}

fn decode(word: &str) -> Option<News> {
    let mut letters = word.chars();
    let kind = letters.next()?;
    let rest = letters.as_str();
    match kind {
        'R' => Some(News::Ready(QueueKey(rest.parse().ok()?))),
        'A' => {
            let (queue, at) = rest.split_once(':')?;
            Some(News::Wanted { queue: QueueKey(queue.parse().ok()?), at: Keeper(at.parse().ok()?) })
        }
        'Q' => Some(News::Queue(QueueKey(rest.parse().ok()?))),
        'S' => Some(News::Stop(RunKey(rest.parse().ok()?))),
        'N' => Some(News::Roster),
        'G' => Some(News::Gap),
        'T' => {
            let mut parts = rest.split(':');
            let (shard, tree) = (ShardId(parts.next()?.parse().ok()?), TreeKey(parts.next()?.parse().ok()?));
            let due_time = parts.next()?;
            let due_time = if due_time.is_empty() { None } else { Some(at(due_time.parse().ok()?)) };
            Some(News::Tree { shard, tree, due_time })
        }
        'E' => Some(News::Ending(Box::new(ending::decode(rest)?))),
        'W' => {
            let mut parts = rest.split(':');
            let (to, ticket) = (Keeper(parts.next()?.parse().ok()?), parts.next()?.parse().ok()?);
            let answer = match parts.next()? {
                "w" => EndingAnswer::Written,
                "m" => EndingAnswer::RunMoved,
                _ => EndingAnswer::Refused,
            };
            Some(News::Written { to, ticket, answer })
        }
        'V' => {
            let (at, watch) = rest.split_once(':')?;
            Some(News::Watched { at: Keeper(at.parse().ok()?), watch: told::decode_watch(watch)? })
        }
        'H' => Some(News::Happened(Box::new(told::decode(rest)?))),
        'U' => {
            let (from, count) = rest.split_once(':')?;
            Some(News::Untold { from: Keeper(from.parse().ok()?), count: count.parse().ok()? })
        }
        // A later release may tell what this one does not know.
        _ => None,
    }
}

/// Bundles of words that each fit into a payload.
pub(crate) fn payloads(words: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut payloads: Vec<String> = Vec::new();
    for word in words {
        match payloads.last_mut() {
            Some(last) if last.len() + word.len() < BYTES_MAX => {
                last.push(' ');
                last.push_str(&word);
            }
            _ => payloads.push(word),
        }
    }
    payloads
}

/// A connection that listens. What is told from now on is heard.
pub(crate) async fn open(
    address: &Address,
    options: &Options,
    listeners: &Arc<Listeners>,
) -> Result<Session, Fault> {
    let listeners = listeners.clone();
    let hear = move |message: AsyncMessage| {
        if let AsyncMessage::Notification(told) = message {
            told.payload().split(' ').filter_map(decode).for_each(|news| listeners.hear(&news));
        }
    };
    let session = Session::open(address, options, Purpose::Lease, hear).await?;
    let row = session.find("SELECT quote_ident(name) FROM punctual.channel", &[]).await?;
    let Some(row) = row else {
        return Err(StoreError::corrupted("the table channel", "it has no row").into());
    };
    let channel: &str = row.get(0);
    session.run(&format!("LISTEN {channel}")).await?;
    Ok(session)
}

/// Goes on listening, whatever becomes of the connection. What was told in between is lost, so everybody looks again.
pub(crate) async fn keep_listening(
    address: Address,
    options: Arc<Options>,
    listeners: Arc<Listeners>,
    mut session: Session,
) {
    loop {
        // A connection that says nothing may be dead: so it is asked for something now and then.
        while session.run("SELECT 1").await.is_ok() {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(5)) => {}
                () = session.closed() => break,
            }
        }
        tracing::warn!("the connection that listens for other nodes is lost; trying again");
        let mut pause = Duration::from_millis(20);
        session = loop {
            match open(&address, &options, &listeners).await {
                Ok(session) => break session,
                Err(_) => tokio::time::sleep(pause).await,
            }
            pause = (pause * 2).min(BACKOFF_MAX);
        };
        tracing::info!("listening for other nodes again");
        listeners.hear(&News::Gap);
    }
}

/// Queues that others have changed are read again.
pub(crate) async fn keep_queues(mut news: Listener, queues: Arc<Queues>, chores: Arc<Pool>) {
    while let Some(heard) = news.recv().await {
        match heard {
            News::Ready(queue) => queues.floors.doubt(queue.0),
            // Ranks depend on settings.
            News::Queue(queue) => queues.floors.forget(queue.0),
            News::Gap => queues.floors.forget_all(),
            _ => {}
        }
        if matches!(heard, News::Queue(_) | News::Gap)
            && let Ok((session, _guard)) = chores.alone().await
        {
            // Whoever uses what is old is told so by the version, and reads it again.
            let _ = session.within(queues.refresh(&session)).await;
        }
    }
}

/// What is told need not survive a crash of the database. That is said in the statement itself: a proxy may hand the connection to
/// somebody else afterwards, whose writes must.
const TELL: &str = "SELECT punctual.tell(payload)
    FROM (SELECT set_config('synchronous_commit', 'off', true)) AS quickly, unnest($1::text[]) AS payload";

/// Tells in bundles; what cannot be told is lost.
pub(crate) async fn keep_telling(pool: Pool, mut told: mpsc::UnboundedReceiver<News>, lanes: Arc<Lanes>) {
    while let Some(first) = told.recv().await {
        // In the order in which it was told: what happened to a schedule is a story.
        let (mut words, mut known) = (Vec::new(), HashSet::new());
        let mut add = |news: &News| {
            let word = encode(news);
            // One that is too long would take all others with it.
            if word.len() < BYTES_MAX && known.insert(word.clone()) {
                words.push(word);
            }
        };
        add(&first);
        while let Ok(more) = told.try_recv() {
            add(&more);
        }
        // The connection may have been lost since the last word: then once more, since saying it twice is harmless.
        let all = payloads(words);
        for _ in 0..2 {
            let Ok((session, _guard)) = pool.session().await else { break };
            match session.execute(TELL, &[&all]).await {
                Err(fault) if fault.is_connection_lost() => {}
                _ => break,
            }
        }
        tokio::time::sleep(lanes.pace.pause()).await;
    }
}
