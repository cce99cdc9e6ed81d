//! What can go wrong between the store and its file, before it becomes an answer.

use punctual_store::StoreError;
use rusqlite::{Error, ErrorCode};

/// What went wrong: with the database, or with what it gave back.
#[derive(Debug)]
pub(crate) enum Fault {
    Database(Error),
    Store(StoreError),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Database(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Fault {
        Fault::Store(error)
    }
}

impl Fault {
    /// Whether the next request would meet it too, whatever it asks: the disk is full or does not answer, or a tool of
    /// somebody else holds the file.
    pub(crate) fn is_everywhere(&self) -> bool {
        let Fault::Database(error) = self else { return false };
        let code = error.sqlite_error_code();
        code.is_some_and(|code| {
            let blocked = matches!(code, ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked);
            let full = matches!(code, ErrorCode::DiskFull | ErrorCode::CannotOpen | ErrorCode::ReadOnly);
            blocked || full || is_lost(code)
        })
    }

    /// Whether the connection is better opened anew: what it holds in memory may differ from what is on disk.
    pub(crate) fn is_connection_lost(&self) -> bool {
        let Fault::Database(error) = self else { return false };
        error.sqlite_error_code().is_some_and(is_lost)
    }

    /// The answer to the caller.
    pub(crate) fn answer(&self) -> StoreError {
        match self {
            Fault::Store(error) => error.clone(),
            Fault::Database(
                error @ (Error::FromSqlConversionFailure(..)
                | Error::InvalidColumnType(..)
                | Error::IntegralValueOutOfRange(..)
                | Error::Utf8Error(..)),
            ) => StoreError::corrupted("a row", error),
            Fault::Database(error) => match error.sqlite_error_code() {
                Some(ErrorCode::DiskFull) => StoreError::unavailable("the disk is full"),
                _ => StoreError::unavailable(error),
            },
        }
    }
}

fn is_lost(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::SystemIoFailure
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::OutOfMemory
    )
}
