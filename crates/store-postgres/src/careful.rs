//! Units one after another: everything that could refuse one is looked at, and held, before anything of it is written.

mod claim;
mod keys;
mod rebuild;
mod run;
mod tree;
mod window;

use punctual_store::{Conflict, Keeper, NewRun, RunKey, RunRequest, RunWrite, StoreError, Unit};

use crate::fault::Fault;
use crate::news;
use crate::queues::{Known, Queues};
use crate::session::Session;
use crate::value::{self, time};
pub(crate) use claim::{SPOT, claim_ready, taken_of};

/// Does things one after another, in a transaction that somebody else begins and ends.
#[derive(Clone, Copy)]
pub(crate) struct Careful<'a> {
    pub(crate) session: &'a Session,
    queues: &'a Queues,
}

/// What a unit was told.
type Answer = Result<(), StoreError>;

/// Writes units, each wholly or not at all.
pub(crate) async fn write(
    session: &Session,
    queues: &Queues,
    units: &[(&Unit, Keeper)],
) -> Result<Vec<Answer>, Fault> {
    let careful = Careful::new(session, queues);
    hold(session, units).await?;
    let mut answers = Vec::with_capacity(units.len());
    for (unit, keeper) in units {
        answers.push(careful.write_unit(unit, *keeper).await?);
    }
    Ok(answers)
}

/// Holds runs in the one order in which everybody does. Those of a queue that serves keys are held after their queue.
pub(crate) const HOLD_RUNS: &str =
    "SELECT FROM punctual.run_live WHERE run = ANY($1) AND NOT keyed ORDER BY run FOR UPDATE";

/// Holds what units will write, schedules first: units that take it one after another would wait for each other in a circle.
async fn hold(session: &Session, units: &[(&Unit, Keeper)]) -> Result<(), Fault> {
    let trees: Vec<i64> =
        units.iter().filter_map(|(unit, _)| unit.tree.as_ref()).map(|write| write.tree.0).collect();
    if !trees.is_empty() {
        let sql = "SELECT FROM punctual.state WHERE tree = ANY($1) ORDER BY tree FOR UPDATE";
        session.query(sql, &[&trees]).await?;
    }
    let runs: Vec<i64> =
        units.iter().flat_map(|(unit, _)| &unit.runs).filter_map(changed).map(|run| run.0).collect();
    if !runs.is_empty() {
        session.query(HOLD_RUNS, &[&runs]).await?;
    }
    Ok(())
}

/// The live run that is changed, if one is.
pub(crate) fn changed(write: &RunWrite) -> Option<RunKey> {
    match write {
        RunWrite::Retry { run, .. }
        | RunWrite::Release { run }
        | RunWrite::Stop { run, .. }
        | RunWrite::Close { run, .. }
        | RunWrite::HandOver { run, .. } => Some(*run),
        RunWrite::Insert(_) | RunWrite::Bury { .. } | RunWrite::Details { .. } => None,
    }
}

impl<'a> Careful<'a> {
    pub(crate) fn new(session: &'a Session, queues: &'a Queues) -> Careful<'a> {
        Careful { session, queues }
    }

    async fn write_unit(&self, unit: &Unit, keeper: Keeper) -> Result<Answer, Fault> {
        if let Some(write) = &unit.tree
            && let Some(refusal) = self.check_tree(write).await?
        {
            return Ok(Err(refusal));
        }
        // Whoever asks the same again shall hear that, whatever became of the runs.
        if let Some(request) = &unit.request
            && let Some(refusal) = self.check_request(request).await?
        {
            return Ok(Err(refusal));
        }
        for (place, write) in unit.runs.iter().enumerate() {
            if let Some(refusal) = self.check_run(write, &unit.runs[..place]).await? {
                return Ok(Err(refusal));
            }
        }
        if let Some(request) = &unit.request
            && !self.write_request(request).await?
        {
            return Err(Fault::Overtaken);
        }
        if let Some(write) = &unit.tree {
            self.write_tree(write).await?;
            if write.epoch.is_none() {
                let (shard, tree, due_time) = (write.shard, write.tree, write.due_time);
                let told = news::encode(&punctual_store::News::Tree { shard, tree, due_time });
                self.session.execute("SELECT punctual.tell($1)", &[&told]).await?;
            }
        }
        for write in &unit.runs {
            self.write_run(write, keeper).await?;
        }
        Ok(Ok(()))
    }

    async fn check_request(&self, request: &RunRequest) -> Result<Option<StoreError>, Fault> {
        let sql = "SELECT runs FROM punctual.request WHERE namespace = $1 AND id = $2";
        let known = self.session.find(sql, &[&&request.namespace[..], &request.id.as_bytes()]).await?;
        Ok(known.map(|row| StoreError::Conflict(Conflict::Repeated { runs: value::runs_of(row.get(0)) })))
    }

    async fn write_request(&self, request: &RunRequest) -> Result<bool, Fault> {
        let sql = "INSERT INTO punctual.request (namespace, id, made_at, runs) VALUES ($1, $2, $3, $4)
            ON CONFLICT DO NOTHING";
        let runs = value::run_keys(&request.runs);
        let (namespace, id, made_at) = (&request.namespace[..], request.id.as_bytes(), time(request.made_at));
        Ok(self.session.execute(sql, &[&namespace, &id, &made_at, &runs]).await? > 0)
    }

    /// Runs are judged by what was there before the unit, and by what it makes before.
    async fn check_run(&self, write: &RunWrite, before: &[RunWrite]) -> Result<Option<StoreError>, Fault> {
        let refusal = match write {
            RunWrite::Insert(made) => return self.check_insert(made, before).await,
            RunWrite::Retry { run, attempt, .. }
            | RunWrite::HandOver { run, attempt, .. }
            | RunWrite::Close { run, attempt: Some(attempt), .. } => {
                let seen = self.seen(*run).await?;
                seen.is_none_or(|seen| !seen.is_running(*attempt)).then_some(*run)
            }
            RunWrite::Close { run, attempt: None, .. } => self.seen(*run).await?.is_none().then_some(*run),
            RunWrite::Bury { run } => {
                let sql = "SELECT run FROM punctual.run_closed WHERE run = $1 AND dead FOR UPDATE";
                self.session.find(sql, &[&run.0]).await?.is_none().then_some(*run)
            }
            RunWrite::Release { .. } | RunWrite::Stop { .. } | RunWrite::Details { .. } => None,
        };
        Ok(refusal.map(moved))
    }

    async fn check_insert(&self, made: &NewRun, before: &[RunWrite]) -> Result<Option<StoreError>, Fault> {
        // Its queue stays as it is until the run is there.
        self.queue(made.queue.0).await?;
        let mut made_before = before.iter().filter_map(|write| match write {
            RunWrite::Insert(other) => Some(other),
            _ => None,
        });
        let sql = "SELECT run FROM punctual.run_live WHERE run = $1
            UNION ALL SELECT run FROM punctual.run_closed WHERE run = $1";
        let known = self.session.find(sql, &[&made.run.0]).await?.is_some();
        if known || made_before.clone().any(|other| other.run == made.run) {
            return Ok(Some(moved(made.run)));
        }
        let Some(dedup) = &made.dedup else { return Ok(None) };
        let sql = "SELECT run FROM punctual.run_live WHERE queue = $1 AND dedup = $2";
        let live = self.session.find(sql, &[&made.queue.0, &dedup.as_bytes()]).await?;
        let mut within = || made_before.find(|other| other.queue == made.queue && other.dedup == made.dedup);
        let same = live.map(|row| RunKey(row.get(0))).or_else(|| within().map(|other| other.run));
        Ok(same.map(|run| StoreError::Conflict(Conflict::Duplicate { run })))
    }

    /// What is set about a queue, held until the transaction ends if it serves keys in turn.
    async fn queue(&self, queue: i64) -> Result<Known, Fault> {
        let known = self.queues.of(queue);
        if known.settings.is_keyed() {
            return Ok(self.queues.lock(self.session, queue).await?.unwrap_or(known));
        }
        let sql = "SELECT version FROM punctual.queue WHERE queue = $1 FOR KEY SHARE";
        let version: Option<i64> = self.session.find(sql, &[&queue]).await?.map(|row| row.get(0));
        if version == known.version {
            return Ok(known);
        }
        self.queues.refresh(self.session).await?;
        let known = self.queues.of(queue);
        if known.settings.is_keyed() {
            return Ok(self.queues.lock(self.session, queue).await?.unwrap_or(known));
        }
        Ok(known)
    }
}

fn moved(run: RunKey) -> StoreError {
    StoreError::Conflict(Conflict::RunMoved { run })
}
