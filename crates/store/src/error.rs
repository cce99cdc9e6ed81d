//! Why a store did not do what it was asked, named by the caller's next move.

use thiserror::Error;

use crate::key::{Epoch, RunKey, Sequence};

/// Why a store did not do what it was asked.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StoreError {
    /// Somebody else was faster: load again, apply again.
    #[error("{0}")]
    Conflict(Conflict),
    /// The shard belongs to somebody else now: stop driving it.
    #[error("epoch {epoch} of the shard is over")]
    Fenced {
        /// The epoch that the writer believed in.
        epoch: Epoch,
    },
    /// The database does not answer, or not now: back off. Whether a write happened is unknown.
    #[error("the database is unavailable: {reason}")]
    Unavailable {
        /// What it said.
        reason: String,
    },
    /// What was read makes no sense: keep it, use it no more, and tell somebody.
    #[error("{key} is corrupted: {reason}")]
    Corrupted {
        /// Which row.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// What had moved.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Conflict {
    /// The schedule was written since it was read, or is gone.
    #[error("sequence is {found:?}, the write expected {expected}")]
    Sequence {
        /// The sequence that was read.
        expected: Sequence,
        /// The sequence that is there.
        found: Option<Sequence>,
    },
    /// A schedule of this name exists.
    #[error("the name is taken")]
    NameTaken,
    /// A live run of the queue has this deduplication id.
    #[error("run {run} has this deduplication id")]
    Duplicate {
        /// Which run.
        run: RunKey,
    },
    /// The request was heard before.
    #[error("the request was heard before, and made {} runs", runs.len())]
    Repeated {
        /// What it made.
        runs: Vec<RunKey>,
    },
    /// The run has ended, or another attempt has begun.
    #[error("run {run} has moved on")]
    RunMoved {
        /// Which run.
        run: RunKey,
    },
}

impl StoreError {
    /// A database that does not answer.
    pub fn unavailable(reason: impl ToString) -> StoreError {
        StoreError::Unavailable { reason: reason.to_string() }
    }

    /// A row that makes no sense.
    pub fn corrupted(key: impl ToString, reason: impl ToString) -> StoreError {
        StoreError::Corrupted { key: key.to_string(), reason: reason.to_string() }
    }
}
