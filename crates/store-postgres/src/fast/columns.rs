//! Units turned by ninety degrees: what each statement over arrays is given, and which rows it must have changed.

mod runs;
mod trees;

use std::collections::{BTreeMap, BTreeSet};

use punctual_core::StopKind;
use punctual_store::{Claim, Closing, Expected, Keeper, NewRun, RunWrite, TreeWrite, Unit};
use tokio_postgres::types::ToSql;

pub(crate) use trees::NEW_VIEW;

use super::{Wanted, told};
use crate::queues::Queues;
use crate::spots::Spots;
use crate::value::time;

/// Values of any kind, for one statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$(Box::new($value) as Box<dyn ToSql + Sync + Send + 'a>),*] };
}
use values;

/// One statement over arrays.
pub(super) struct Statement<'a> {
    pub(super) sql: &'static str,
    pub(super) values: Vec<Box<dyn ToSql + Sync + Send + 'a>>,
    pub(super) wanted: Wants,
}

/// What the answer of a statement must be.
pub(super) enum Wants {
    /// Anything.
    Nothing,
    /// So many rows were changed.
    Changed(u64),
    /// So many rows, each with its key and where it is now; and whether they were looked for by their keys.
    Spots(u64, bool),
    /// A row for each of these keys; the unit of one that is missing has met somebody.
    Rows(Wanted),
    /// No row for any of these keys.
    NoRows(Wanted),
    /// So many rows, else it is not known which of these units has met somebody.
    Count(usize, Vec<usize>),
    /// Shards, the epoch that is believed in, the unit; and whether they were looked for where they were last.
    Epochs(Vec<(i32, i64, usize)>, bool),
    /// Queues and the version of their settings that is remembered.
    Versions(BTreeMap<i64, Option<i64>>),
}

/// Unit, run, attempt, not before, failure, keeper.
type Retried<'a> = (usize, i64, u32, i64, &'a [u8], Keeper);

/// Run, attempt, progress, log tail.
type Told<'a> = (i64, u32, Option<&'a [u8]>, Option<&'a [u8]>);

/// Everything that units write, by kind.
#[derive(Default)]
pub(super) struct Columns<'a> {
    epochs: Vec<(i32, i64, usize)>,
    versions: BTreeMap<i64, Option<i64>>,
    trees: Vec<(usize, &'a TreeWrite, i64)>,
    made: Vec<(usize, &'a TreeWrite)>,
    plain_runs: Vec<(usize, &'a NewRun, i64, Keeper)>,
    other_runs: Vec<(usize, &'a NewRun, i64, Keeper)>,
    closes: Vec<(usize, i64, Option<u32>, &'a Closing)>,
    retries: Vec<Retried<'a>>,
    releases: Vec<(usize, i64)>,
    stops: Vec<(i64, StopKind)>,
    hand_overs: Vec<(usize, i64, u32, &'a str)>,
    buries: Vec<(usize, i64)>,
    details: Vec<Told<'a>>,
    requests: Vec<(usize, &'a punctual_store::RunRequest)>,
    told: Vec<String>,
}

impl<'a> Columns<'a> {
    pub(super) fn collect(
        units: &[(&'a Unit, Keeper)],
        claims: &[&'a Claim],
        queues: &Queues,
    ) -> Columns<'a> {
        let mut columns = Columns { told: told(units), ..Columns::default() };
        for claim in claims {
            columns.versions.entry(claim.queue.0).or_insert_with(|| queues.of(claim.queue.0).version);
        }
        for (place, (unit, keeper)) in units.iter().enumerate() {
            if let Some(write) = &unit.tree {
                columns.add_tree(place, write);
            }
            columns.requests.extend(unit.request.as_ref().map(|request| (place, request)));
            for write in &unit.runs {
                columns.add_run(place, write, *keeper, queues);
            }
        }
        columns.sort();
        columns
    }

    /// Rows are held in one order, whoever writes them: else two transactions wait for each other in a circle.
    fn sort(&mut self) {
        self.trees.sort_by_key(|(_, write, _)| write.tree);
        self.closes.sort_by_key(|(_, run, ..)| *run);
        self.retries.sort_by_key(|(_, run, ..)| *run);
        self.releases.sort_by_key(|(_, run)| *run);
        self.stops.sort_by_key(|(run, _)| *run);
        self.hand_overs.sort_by_key(|(_, run, ..)| *run);
        self.details.sort_by_key(|(run, ..)| *run);
    }

    fn add_tree(&mut self, place: usize, write: &'a TreeWrite) {
        if let Some(epoch) = write.epoch {
            self.epochs.push((write.shard.0 as i32, epoch.0 as i64, place));
        }
        match &write.expected {
            Expected::At(sequence) => self.trees.push((place, write, sequence.0 as i64)),
            Expected::New { .. } => self.made.push((place, write)),
        }
    }

    fn add_run(&mut self, place: usize, write: &'a RunWrite, keeper: Keeper, queues: &Queues) {
        match write {
            RunWrite::Insert(made) => {
                let known = queues.of(made.queue.0);
                let rank = known.settings.rank(made.created_at, made.priority);
                self.versions.insert(made.queue.0, known.version);
                let plain = made.dedup.is_none() && made.not_before.is_none() && made.priority == 0;
                let runs =
                    if plain && made.key.is_empty() { &mut self.plain_runs } else { &mut self.other_runs };
                runs.push((place, made, rank, keeper));
            }
            RunWrite::Close { run, attempt, closing } => self.closes.push((place, run.0, *attempt, closing)),
            RunWrite::Retry { run, attempt, not_before, failure } => {
                self.retries.push((place, run.0, *attempt, time(*not_before), failure, keeper));
            }
            RunWrite::Release { run } => self.releases.push((place, run.0)),
            RunWrite::Stop { run, kind } => self.stops.push((run.0, *kind)),
            RunWrite::HandOver { run, attempt, worker } => {
                self.hand_overs.push((place, run.0, *attempt, worker));
            }
            RunWrite::Bury { run } => self.buries.push((place, run.0)),
            RunWrite::Details { run, attempt, progress, log_tail } => {
                self.details.push((run.0, *attempt, progress.as_deref(), log_tail.as_deref()));
            }
        }
    }

    /// The statements, those that have something to do.
    pub(super) fn statements(&self, telling: bool, spots: &Spots) -> Vec<Statement<'a>> {
        let mut list = Vec::new();
        // Who must be told which rows were changed finds them by their keys.
        let spots = Some(spots).filter(|_| !telling);
        self.fence(spots, &mut list);
        self.trees(spots, &mut list);
        self.parts(&mut list);
        self.new_trees(&mut list);
        self.runs(telling, &mut list);
        self.hold_runs(&mut list);
        self.changes(telling, spots, &mut list);
        for payload in &self.told {
            list.push(statement("SELECT punctual.tell($1)", Wants::Nothing, values![payload.clone()]));
        }
        list
    }

    /// Runs that are elsewhere once this is committed.
    pub(super) fn moved_runs(&self) -> impl Iterator<Item = i64> {
        let retries = self.retries.iter().map(|(_, run, ..)| *run);
        let stops = self.stops.iter().map(|(run, _)| *run);
        retries.chain(stops).chain(self.hand_overs.iter().map(|(_, run, ..)| *run))
    }

    /// What was not found where it was, or was taken back, is looked for by its key next time.
    pub(super) fn forget(&self, spots: &Spots) {
        spots.leases.forget(self.epochs.iter().map(|(shard, ..)| *shard));
        spots.trees.forget(self.trees.iter().map(|(_, write, _)| write.tree.0));
    }

    /// Rows that must not change until the commit: epochs of shards, settings of queues.
    fn fence(&self, spots: Option<&Spots>, list: &mut Vec<Statement<'a>>) {
        if !self.epochs.is_empty() {
            let shards: BTreeSet<i32> = self.epochs.iter().map(|(shard, ..)| *shard).collect();
            let shards: Vec<i32> = shards.into_iter().collect();
            let known = spots.and_then(|spots| spots.leases.of(shards.iter().copied()));
            let wanted = Wants::Epochs(self.epochs.clone(), known.is_some());
            list.push(match known {
                Some(known) => {
                    // The sum keeps the index out of it, which has the order but leads to all versions of all leases.
                    let sql = "SELECT shard, epoch FROM punctual.lease WHERE ctid = ANY($1) ORDER BY shard + 0 FOR KEY SHARE";
                    statement(sql, wanted, values![known])
                }
                None => {
                    let sql = "SELECT shard, epoch FROM punctual.lease WHERE shard = ANY($1) ORDER BY shard FOR KEY SHARE";
                    statement(sql, wanted, values![shards])
                }
            });
        }
        if !self.versions.is_empty() {
            let queues: Vec<i64> = self.versions.keys().copied().collect();
            let sql = "SELECT queue, version FROM punctual.queue WHERE queue = ANY($1) ORDER BY queue FOR KEY SHARE";
            list.push(statement(sql, Wants::Versions(self.versions.clone()), values![queues]));
        }
    }
}

/// What is wanted of rows with keys: only their number, unless it is to be told which were changed.
fn rows(wanted: Wanted, telling: bool) -> Wants {
    if telling { Wants::Rows(wanted) } else { Wants::Changed(wanted.len() as u64) }
}

fn statement<'a>(
    sql: &'static str,
    wanted: Wants,
    values: Vec<Box<dyn ToSql + Sync + Send + 'a>>,
) -> Statement<'a> {
    Statement { sql, values, wanted }
}
