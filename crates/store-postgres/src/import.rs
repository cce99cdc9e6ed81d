//! Everything from another database: copied in pieces, each with a note of how far it is in the same transaction, then compared
//! from the first row to the last. Until that has gone well no server opens the database.

pub(crate) mod marker;
mod shape;
mod verify;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use punctual_store::StoreError;
use punctual_store::transfer::{Cell, Facts, Piece, Row, Source, TABLES, Table, Tally, encode_cells};
use thiserror::Error;
use tokio::time::Instant;

use crate::fault::Fault;
use crate::queues::Queues;
use crate::session::{Address, Session};
use crate::{Options, days, open};
use marker::{Position, Start};
use shape::Shape;

/// What one transaction writes.
const PIECE: Piece = Piece { rows_max: 5_000, bytes_max: 8 << 20 };

/// A source that is read beside the writing.
type Shared = Arc<Mutex<dyn Source>>;

/// Why nothing, or not everything, was moved.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The target does not do what it should.
    #[error(transparent)]
    Target(StoreError),
    /// The source cannot be read.
    #[error("the source cannot be read: {0}")]
    Source(StoreError),
    /// A server uses the target.
    #[error("the node {node} uses the target")]
    InUse {
        /// Its name.
        node: String,
    },
    /// There is something in the target that was not moved there.
    #[error("the target is not empty: it has {found}")]
    NotEmpty {
        /// What there is.
        found: String,
    },
    /// What was begun is not to be continued with this source.
    #[error("another database was being moved to the target, or the source has changed since")]
    OtherSource,
    /// Somebody else writes the same.
    #[error("another process is moving rows to the target")]
    Raced,
    /// The two sides differ.
    #[error("{table} differs: the source has {source_tally}, the target has {target_tally}")]
    Mismatch {
        /// Where.
        table: &'static str,
        /// What should be there.
        source_tally: Tally,
        /// What is there.
        target_tally: Tally,
    },
}

impl From<Fault> for ImportError {
    fn from(fault: Fault) -> ImportError {
        ImportError::Target(fault.answer())
    }
}

/// How it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// From the beginning.
    New,
    /// Where an earlier try ended, after so many rows.
    Resumed(u64),
    /// It was finished before, and nothing was done.
    Finished,
}

/// What was moved and found to be the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// How it began.
    pub begun: Begun,
    /// Each table, in the order in which they moved.
    pub tables: Vec<Moved>,
    /// How long it took to compare them.
    pub checked_in: Duration,
}

/// A table that was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Which one.
    pub table: &'static str,
    /// Rows in it.
    pub rows: u64,
    /// How long it took, this time.
    pub elapsed: Duration,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub phase: Phase,
    /// With which table.
    pub table: &'static str,
    /// Rows of all tables that are done.
    pub rows: u64,
    /// Rows of all tables.
    pub total: u64,
}

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Rows are written.
    Moving,
    /// Both sides are compared.
    Checking,
}

/// Moves everything from a source into a database that has nothing of its own, and goes on where an earlier try ended. Ending it
/// at any point, by dropping it or by a power cut, leaves a target that no server opens and that the next try goes on with; with
/// `restart` that begins from nothing. Must be called inside a tokio runtime.
pub async fn import(
    options: Options,
    source: Shared,
    restart: bool,
    mut tell: impl FnMut(Progress),
) -> Result<Imported, ImportError> {
    let facts = ask(&source, |source| source.facts()).await?;
    let queues = queue_names(&source).await?;
    let mut counts = Vec::new();
    for table in &TABLES {
        counts.push(ask(&source, |source| source.count(table)).await?);
    }
    let address = Address::parse(&options.url).map_err(ImportError::Target)?;
    let session = open::first_session(&address, &options).await.map_err(ImportError::Target)?;
    let shards = open::make_schema(&session, &options).await?;
    let positions = match marker::begin(&session, &facts, &queues, restart).await? {
        Start::Finished => {
            let moved = TABLES.iter().zip(counts);
            let moved = moved.map(|(table, rows)| Moved { table: table.name, rows, elapsed: Duration::ZERO });
            return Ok(Imported {
                begun: Begun::Finished,
                tables: moved.collect(),
                checked_in: Duration::ZERO,
            });
        }
        Start::At(positions) => positions,
    };
    let done: u64 = positions.iter().map(|position| position.rows).sum();
    let begun = if done == 0 { Begun::New } else { Begun::Resumed(done) };
    let mut import = Import {
        session,
        source,
        fingerprint: facts.fingerprint,
        shards,
        queues: Arc::default(),
        progress: Progress { phase: Phase::Moving, table: "", rows: done, total: counts.iter().sum() },
        tell: &mut tell,
    };
    let tables = import.move_all(positions).await?;
    let begun_at = Instant::now();
    import.check_all().await?;
    let checked_in = begun_at.elapsed();
    import.finish(&facts).await?;
    Ok(Imported { begun, tables, checked_in })
}

struct Import<'t> {
    session: Session,
    source: Shared,
    fingerprint: [u8; 16],
    shards: u32,
    queues: Arc<Queues>,
    progress: Progress,
    tell: &'t mut dyn FnMut(Progress),
}

impl Import<'_> {
    async fn move_all(&mut self, positions: Vec<Position>) -> Result<Vec<Moved>, ImportError> {
        let mut moved = Vec::new();
        for (table, position) in TABLES.iter().zip(positions) {
            // What is set about queues decides about their runs, and has been moved before.
            self.queues.refresh(&self.session).await?;
            let begun_at = Instant::now();
            let rows = self.move_table(table, position).await?;
            moved.push(Moved { table: table.name, rows, elapsed: begun_at.elapsed() });
        }
        Ok(moved)
    }

    /// Moves the rest of a table; the next piece is read while one is written. Gives the rows that it has then.
    async fn move_table(
        &mut self,
        table: &'static Table,
        mut position: Position,
    ) -> Result<u64, ImportError> {
        let shape = Shape::of(&self.session, table, self.shards, self.queues.clone()).await?;
        let mut provided = BTreeSet::new();
        let mut piece = read(self.source.clone(), table, position.after.clone()).await?;
        while let Some(last) = piece.last() {
            let after = last[..table.key].to_vec();
            let next = tokio::spawn(read(self.source.clone(), table, Some(after.clone())));
            let rows = piece.iter().map(|row| shape.fit(row));
            let rows: Vec<Vec<shape::Value>> = rows.collect::<Result<_, _>>().map_err(ImportError::Source)?;
            days::provide_past(&self.session, table.name, shape.times(&rows), &mut provided).await?;
            let to = Position { rows: position.rows + rows.len() as u64, after: Some(after) };
            let write = async {
                // A crash of the target may take the last pieces back, each with its note; the last transaction makes all
                // durable. The way there may be slow.
                self.session
                    .run("SET LOCAL synchronous_commit = off; SET LOCAL statement_timeout = 600000")
                    .await?;
                let noted =
                    marker::advance(&self.session, table, &self.fingerprint, (&position, &to)).await?;
                if noted {
                    self.session.copy(&shape.copy_in(), &shape.types, &rows).await?;
                }
                Ok(noted)
            };
            if !self.session.transact(write).await? {
                return Err(ImportError::Raced);
            }
            position = to;
            self.tell(Phase::Moving, table, rows.len() as u64);
            piece = next.await.map_err(|error| ImportError::Source(StoreError::unavailable(error)))??;
        }
        Ok(position.rows)
    }

    /// Compares every row of both sides.
    async fn check_all(&mut self) -> Result<(), ImportError> {
        self.progress.rows = 0;
        for table in &TABLES {
            let shape = Arc::new(Shape::of(&self.session, table, self.shards, self.queues.clone()).await?);
            let expected = tokio::spawn(verify::source_tally(self.source.clone(), table, shape.clone()));
            let target_tally = verify::target_tally(&self.session, &shape).await?;
            let lost = |error| ImportError::Source(StoreError::unavailable(error));
            let source_tally = expected.await.map_err(lost)??;
            if source_tally != target_tally {
                return Err(ImportError::Mismatch { table: table.name, source_tally, target_tally });
            }
            self.tell(Phase::Checking, table, source_tally.rows);
        }
        Ok(())
    }

    async fn finish(&self, facts: &Facts) -> Result<(), ImportError> {
        for table in &TABLES {
            // Plans are made by what is there, from the first question on.
            let analyze = format!("SET LOCAL statement_timeout = 0; ANALYZE punctual.{}", table.name);
            self.session.transact(self.session.run(&analyze)).await?;
        }
        marker::finish(&self.session, facts).await
    }

    fn tell(&mut self, phase: Phase, table: &Table, rows: u64) {
        let rows = self.progress.rows + rows;
        self.progress = Progress { phase, table: table.name, rows, total: self.progress.total };
        (self.tell)(self.progress);
    }
}

/// Asks the source on a thread that may wait for a disk.
async fn ask<T: Send + 'static>(
    source: &Shared,
    question: impl FnOnce(&dyn Source) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, ImportError> {
    let source = source.clone();
    let work = move || question(&*source.lock().unwrap_or_else(PoisonError::into_inner));
    let answer = tokio::task::spawn_blocking(work).await;
    answer.map_err(StoreError::unavailable).and_then(|answer| answer).map_err(ImportError::Source)
}

async fn read(
    source: Shared,
    table: &'static Table,
    after: Option<Vec<Cell>>,
) -> Result<Vec<Row>, ImportError> {
    ask(&source, move |source| source.read(table, after.as_deref(), PIECE)).await
}

/// Namespace and name of every queue of the source.
async fn queue_names(source: &Shared) -> Result<BTreeSet<Vec<u8>>, ImportError> {
    let table = &TABLES[0];
    let (mut names, mut after) = (BTreeSet::new(), None);
    loop {
        let rows = read(source.clone(), table, after).await?;
        let Some(last) = rows.last() else { return Ok(names) };
        after = Some(last[..table.key].to_vec());
        names.extend(rows.iter().map(|row| encode_cells(&row[1..3])));
    }
}
