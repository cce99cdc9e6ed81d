//! The verbs of operators: numbers, an examination, a copy of the database.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::stream::BoxStream;
use jiff::SignedDuration;
use punctual_api::v1;
use punctual_api::v1::health::Word;
use tokio::io::AsyncReadExt;

use crate::app::App;
use crate::convert::queue::description;
use crate::convert::run::listed;
use crate::convert::time::{length_to_wire, to_wire};
use crate::examine::finding;
use crate::status::{Fault, INTERNAL, NOT_SUPPORTED};

/// Queues and runs that one answer shows.
const QUEUES_MAX: usize = 100;
const LONGEST_MAX: usize = 20;

/// Bytes of one piece of a copy.
const PIECE_BYTES: usize = 256 * 1024;

/// A clock further off than this makes starts early or late on one of the nodes.
const OFFSET_MAX: SignedDuration = SignedDuration::from_millis(500);

/// A timer later than this is stuck, unless the node has only just begun.
const LATE_MAX: SignedDuration = SignedDuration::from_secs(30);

/// Runs that wait for longer than this without any worker are stranded.
const PATIENCE: SignedDuration = SignedDuration::from_mins(1);

pub(crate) async fn stats(app: &App, _asked: v1::StatsRequest) -> Result<v1::StatsResponse, Fault> {
    let metrics = app.engine.metrics();
    let mut total = 0;
    let lateness = metrics.lateness.snapshot();
    let lateness = lateness.buckets().map(|(bound, count)| {
        total += count;
        let at_most =
            bound.and_then(|bound| SignedDuration::try_from_secs_f64(bound).ok()).map(length_to_wire);
        v1::LatenessBucket { at_most, count: total }
    });
    let lateness = lateness.collect();
    let not_started: HashMap<String, u64> = metrics
        .verdicts()
        .filter(|(word, _)| *word != "started")
        .map(|(word, count)| (word.to_owned(), count))
        .collect();
    let mut depths = app.engine.queue_depths().await?;
    depths.sort_by_key(|(_, depth)| std::cmp::Reverse(depth.ready + depth.running + depth.backing_off));
    depths.truncate(QUEUES_MAX);
    let mut queues = Vec::with_capacity(depths.len());
    for (queue, depth) in &depths {
        queues.push(description(queue, *depth, app.engine.workers_of(queue.queue).await?));
    }
    let longest = app.engine.longest_runs(LONGEST_MAX);
    let longest = app.engine.runs_by_key(longest).await?;
    Ok(v1::StatsResponse {
        now: Some(to_wire(app.engine.now())),
        started_at: Some(to_wire(app.started_at)),
        started: metrics.started(),
        not_started,
        closed: metrics.outcomes().map(|(word, count)| (word.to_owned(), count)).collect(),
        lateness,
        running_count: metrics.running.get(),
        timer_count: metrics.timers.get(),
        quarantined_count: app.engine.quarantined().await?.len() as u64,
        queues,
        longest: longest.iter().map(listed).collect(),
        call_count: app.calls.count.load(Ordering::Relaxed),
    })
}

pub(crate) async fn examine(app: &App, _asked: v1::ExamineRequest) -> Result<v1::ExamineResponse, Fault> {
    let mut findings =
        vec![timers(app).await?, clock(app).await?, quarantine(app).await?, queues(app).await?, dead(app)];
    if let Some(file) = &app.file {
        findings.extend(crate::examine::file(&file.store).await);
    }
    Ok(v1::ExamineResponse { findings })
}

/// A schedule whose timer nobody holds would never start again.
async fn timers(app: &App) -> Result<v1::Finding, Fault> {
    let found = app.engine.check_timers().await?;
    let up = app.engine.now().duration_since(app.started_at);
    let mut said = match () {
        () if found.missing > 0 => finding(
            "timers",
            Word::Warning,
            format!("{} of {} schedules had no timer; they have one now", found.missing, found.stored),
            "tell the makers of Punctual: this should not happen",
        ),
        () if found.late_max > LATE_MAX && up > LATE_MAX => finding(
            "timers",
            Word::Warning,
            format!("a schedule should have been looked at {:#} ago", found.late_max),
            "look at the lateness and at the load of the machine and its disk",
        ),
        () => finding("timers", Word::Fine, format!("all {} timers are held", found.stored), ""),
    };
    said.mended_count = found.missing;
    Ok(said)
}

async fn clock(app: &App) -> Result<v1::Finding, Fault> {
    let offset = app.engine.clock_offset().await?;
    let message = format!("this node's clock is {:#} off the database's", offset.abs());
    Ok(match offset.abs() > OFFSET_MAX {
        true => finding("clock", Word::Warning, message, "let both machines follow a time server"),
        false => finding("clock", Word::Fine, message, ""),
    })
}

async fn quarantine(app: &App) -> Result<v1::Finding, Fault> {
    let broken = app.engine.quarantined().await?;
    Ok(match broken.values().next() {
        None => finding("quarantine", Word::Fine, "no schedule is broken".into(), ""),
        Some(first) => finding(
            "quarantine",
            Word::Broken,
            format!("{} schedules are broken and do nothing; one of them: {first}", broken.len()),
            "the log names them; restart after an upgrade that mends them, or delete and create them anew",
        ),
    })
}

async fn queues(app: &App) -> Result<v1::Finding, Fault> {
    let stranded = app.engine.stranded_queues(PATIENCE).await?;
    let Some(first) = stranded.first() else {
        return Ok(finding("queues", Word::Fine, "no queue is without workers".into(), ""));
    };
    let why = if first.paused { "is paused" } else { "has no worker" };
    let message = format!(
        "{} queues have work that nobody takes; {} of namespace {} has {} runs and {why}",
        stranded.len(),
        first.name,
        first.namespace,
        first.depth.ready
    );
    Ok(finding("queues", Word::Warning, message, "start a worker, or resume the queue"))
}

/// Whether the database answers at all.
fn dead(app: &App) -> v1::Finding {
    let health = app.engine.health();
    match health.reason {
        None => finding("engine", Word::Fine, "the engine is ready".into(), ""),
        Some(_) if app.engine.is_draining() => finding(
            "engine",
            Word::Warning,
            "this node gives its shards to others, and takes none".into(),
            "punctual node resume, when it is to take its share again",
        ),
        Some(reason) => finding("engine", Word::Broken, reason, "look at the log and at the disk"),
    }
}

type Pieces = BoxStream<'static, Result<v1::BackupPiece, tonic::Status>>;

/// A copy is made beside the database first, then sent: what is sent is of one moment, whatever the client's speed.
pub(crate) async fn backup(app: &Arc<App>) -> Result<Pieces, Fault> {
    let unsupported = || Fault::new(&NOT_SUPPORTED, "only a database in a file can be copied");
    let file = app.file.as_ref().ok_or_else(unsupported)?;
    let failed = |error: &dyn std::fmt::Display| {
        tracing::error!(%error, "a copy of the database could not be made");
        Fault::new(&INTERNAL, "the copy could not be made; the log says why")
    };
    let name = format!("{}.copy-{}", file.path.display(), uuid::Uuid::new_v4());
    let place = Removed(name.into());
    file.store.backup(&place.0).await.map_err(|error| failed(&error))?;
    let mut copy = tokio::fs::File::open(&place.0).await.map_err(|error| failed(&error))?;
    let total_bytes = copy.metadata().await.map_err(|error| failed(&error))?.len();
    let (sender, pieces) = tokio::sync::mpsc::channel(4);
    tokio::spawn(async move {
        let _place = place;
        loop {
            let mut data = vec![0; PIECE_BYTES];
            let piece = match copy.read(&mut data).await {
                Ok(0) => return,
                Ok(count) => {
                    data.truncate(count);
                    Ok(v1::BackupPiece { data, total_bytes })
                }
                Err(error) => {
                    tracing::error!(%error, "a copy of the database could not be read");
                    Err(tonic::Status::internal("the copy could not be read; the log says why"))
                }
            };
            let sent = tokio::time::timeout(Duration::from_secs(60), sender.send(piece)).await;
            if !matches!(sent, Ok(Ok(()))) {
                return;
            }
        }
    });
    let stream = futures_util::stream::unfold(pieces, |mut pieces| async move {
        pieces.recv().await.map(|piece| (piece, pieces))
    });
    Ok(Box::pin(stream))
}

/// A file that goes when nobody needs it any more.
struct Removed(std::path::PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
