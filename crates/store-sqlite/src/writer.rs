//! The one thread that writes: it takes every request that waits, and makes them durable with one write to the disk.

mod statements;
mod known;
mod counts;
mod unit;
mod check;
mod tree;
mod run;
mod claim;
mod keys;
mod window;
mod lease;
mod queue;
mod rebuild;
mod secret;
mod document;
mod retire;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use punctual_store::StoreError;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::checkpoint::Copier;
use crate::fault::Fault;
use crate::open;
use crate::options::Options;

pub(crate) use counts::{Counts, SharedCounts};
pub(crate) use known::{Known, forget_holders};
pub(crate) use queue::stored_queue;
use statements::Statements;
pub(crate) use unit::weight;

/// Rows and bytes that one transaction takes before it is committed, so that nobody waits for long and the pages that it
/// changes fit into memory.
pub(crate) const GROUP_ROWS_MAX: usize = 20_000;
const GROUP_BYTES_MAX: usize = 32 << 20;

/// The database inside a transaction.
pub(crate) struct Writer<'c> {
    statements: Statements<'c>,
    known: Known,
    /// What the current transaction changes about the counts.
    counts: Counts,
}

/// How much a request writes, roughly.
#[derive(Clone, Copy)]
pub(crate) struct Weight {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

/// A request that can be tried more than once, and is answered once.
pub(crate) trait Errand: Send {
    /// How much it writes.
    fn weight(&self) -> Weight;
    /// Writes, and keeps the answer until it is durable.
    fn perform(&mut self, writer: &mut Writer<'_>) -> Result<(), Fault>;
    /// Gives the answer, or says why there is none.
    fn settle(self: Box<Self>, outcome: Result<(), StoreError>);
}

/// What a request comes to: its answer, or a refusal that the caller asked to hear.
pub(crate) type Answer<T> = Result<T, StoreError>;

struct Asked<T, F> {
    weight: Weight,
    work: F,
    answer: Option<Answer<T>>,
    reply: oneshot::Sender<Answer<T>>,
}

impl<T, F> Errand for Asked<T, F>
where
    T: Send,
    F: FnMut(&mut Writer<'_>) -> Result<Answer<T>, Fault> + Send,
{
    fn weight(&self) -> Weight {
        self.weight
    }

    fn perform(&mut self, writer: &mut Writer<'_>) -> Result<(), Fault> {
        self.answer = Some((self.work)(writer)?);
        Ok(())
    }

    fn settle(self: Box<Self>, outcome: Result<(), StoreError>) {
        let Asked { answer, reply, .. } = *self;
        let answer = outcome.and_then(|()| {
            answer.unwrap_or_else(|| Err(StoreError::unavailable("the request was not performed")))
        });
        // Whoever asked may have stopped waiting.
        let _ = reply.send(answer);
    }
}

/// A request, and where its answer will be.
pub(crate) fn errand<T: Send + 'static>(
    weight: Weight,
    work: impl FnMut(&mut Writer<'_>) -> Result<Answer<T>, Fault> + Send + 'static,
) -> (Box<dyn Errand>, oneshot::Receiver<Answer<T>>) {
    let (reply, answer) = oneshot::channel();
    (Box::new(Asked { weight, work, answer: None, reply }), answer)
}

/// Writes until nobody can ask any more.
pub(crate) fn run(
    mut connection: Connection,
    mut known: Known,
    path: PathBuf,
    options: &Options,
    copier: &Copier,
    mut errands: mpsc::Receiver<Box<dyn Errand>>,
) {
    let mut waiting = VecDeque::new();
    loop {
        let counts = known.counts.clone();
        let Some(lost) = write_until_lost(&connection, known, copier, &mut errands, &mut waiting) else {
            return;
        };
        // Whether the last commit is on the disk is not known, so nothing that was known counts: begin anew. Until that
        // works, nobody waits in vain.
        drop(connection);
        (connection, known) = loop {
            match reopen(&path, options, &counts) {
                Ok(opened) => break opened,
                Err(error) => {
                    let reason = format!("{}; {error}", lost.answer());
                    let Some(errand) = waiting.pop_front().or_else(|| errands.blocking_recv()) else {
                        return;
                    };
                    errand.settle(Err(StoreError::unavailable(reason)));
                }
            }
        };
    }
}

fn reopen(
    path: &Path,
    options: &Options,
    counts: &SharedCounts,
) -> Result<(Connection, Known), open::OpenError> {
    let connection = open::open_writer(path, options)?;
    let known = Known::read(&connection, counts.clone());
    let known = known.map_err(|source| open::OpenError::Database { path: path.into(), source })?;
    Ok((connection, known))
}

/// Writes until nobody asks any more, or the connection is lost.
fn write_until_lost(
    connection: &Connection,
    known: Known,
    copier: &Copier,
    errands: &mut mpsc::Receiver<Box<dyn Errand>>,
    waiting: &mut VecDeque<Box<dyn Errand>>,
) -> Option<Fault> {
    let statements = match Statements::prepare(connection) {
        Ok(statements) => statements,
        Err(error) => return Some(error.into()),
    };
    let mut writer = Writer { statements, known, counts: Counts::default() };
    loop {
        if waiting.is_empty() {
            waiting.push_back(errands.blocking_recv()?);
        }
        while let Ok(errand) = errands.try_recv() {
            waiting.push_back(errand);
        }
        let group = next_group(waiting);
        let rows = group.iter().fold(0_usize, |rows, errand| rows.saturating_add(errand.weight().rows));
        if let Some(lost) = writer.write(connection, group) {
            return Some(lost);
        }
        copier.wrote(connection, rows);
    }
}

fn next_group(waiting: &mut VecDeque<Box<dyn Errand>>) -> Vec<Box<dyn Errand>> {
    let (mut rows, mut bytes) = (0_usize, 0_usize);
    let weights = waiting.iter().map(|errand| errand.weight());
    let fitting = weights.take_while(|weight| {
        rows = rows.saturating_add(weight.rows);
        bytes = bytes.saturating_add(weight.bytes);
        rows <= GROUP_ROWS_MAX && bytes <= GROUP_BYTES_MAX
    });
    // The first one is taken whatever it weighs.
    let count = fitting.count().max(1);
    waiting.drain(..count).collect()
}

impl Writer<'_> {
    /// Steps that the database's machine took for the writer since this was asked last.
    pub(crate) fn steps(&self) -> u64 {
        self.statements.steps().unsigned_abs()
    }

    /// Performs a group in one transaction and answers it. Gives back the fault if the connection is lost.
    fn write(&mut self, connection: &Connection, mut group: Vec<Box<dyn Errand>>) -> Option<Fault> {
        let mut outcome = self.transact(connection, &mut group);
        // One bad request must hurt nobody else: each is tried alone, until all would meet the same fault.
        let mut left = VecDeque::from(group);
        while left.len() > 1 && outcome.as_ref().is_err_and(|fault| !fault.is_everywhere()) {
            let Some(errand) = left.pop_front() else { break };
            let mut alone = [errand];
            let fate = self.transact(connection, &mut alone);
            settle(alone, &fate);
            if fate.as_ref().is_err_and(Fault::is_everywhere) {
                outcome = fate;
            } else if left.len() == 1 {
                outcome = self.transact(connection, left.make_contiguous());
            }
        }
        settle(left, &outcome);
        outcome.err().filter(Fault::is_connection_lost)
    }

    fn transact(&mut self, connection: &Connection, group: &mut [Box<dyn Errand>]) -> Result<(), Fault> {
        let before = self.known.clone();
        let outcome = self.try_transact(group);
        match &outcome {
            Ok(()) => before.counts.end_commit(&mut self.counts),
            Err(_) => {
                self.known = before;
                self.counts = Counts::default();
                // The database may have rolled back by itself; if neither works, the next transaction will say so.
                if !connection.is_autocommit() {
                    let _ = self.statements.rollback.execute(());
                }
                self.known.counts.end_commit(&mut self.counts);
            }
        }
        outcome
    }

    fn try_transact(&mut self, group: &mut [Box<dyn Errand>]) -> Result<(), Fault> {
        self.statements.begin.execute(())?;
        for errand in group {
            errand.perform(self)?;
        }
        self.known.counts.begin_commit();
        self.statements.commit.execute(())?;
        Ok(())
    }
}

fn settle(group: impl IntoIterator<Item = Box<dyn Errand>>, outcome: &Result<(), Fault>) {
    for errand in group {
        errand.settle(outcome.as_ref().copied().map_err(Fault::answer));
    }
}
