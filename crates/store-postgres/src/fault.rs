//! What can go wrong between the store and its database, before it becomes an answer.

use punctual_store::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

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
    /// Whether the transaction met another one, and the same again may well succeed.
    pub(crate) fn is_passing(&self) -> bool {
        let Fault::Database(error) = self else { return false };
        let passing = [
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::LOCK_NOT_AVAILABLE,
        ];
        error.code().is_some_and(|code| passing.contains(code))
    }

    /// Whether it says only that something else went wrong before, in the same transaction.
    pub(crate) fn is_consequence(&self) -> bool {
        let Fault::Database(error) = self else { return false };
        error.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION)
    }

    /// Whether the connection is of no use any more, or leads to a server that does not take writes.
    pub(crate) fn is_connection_lost(&self) -> bool {
        let Fault::Database(error) = self else { return false };
        let lost = [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::READ_ONLY_SQL_TRANSACTION,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        ];
        error.is_closed()
            || match error.code() {
                Some(code) => lost.contains(code) || code.code().starts_with("08"),
                // No word from the server: it is the connection.
                None => error.as_db_error().is_none(),
            }
    }

    /// The answer to the caller.
    pub(crate) fn answer(&self) -> StoreError {
        match self {
            Fault::Store(error) => error.clone(),
            Fault::Database(error) => StoreError::unavailable(shown(error)),
        }
    }
}

/// What the database said, without its own prefix.
pub(crate) fn shown(error: &Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} ({})", said.message(), said.code().code()),
        None => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}
