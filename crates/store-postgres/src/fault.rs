//! What can go wrong between the store and its database, before it becomes an answer.

use punctual_store::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// What went wrong: with the database, or with what it gave back.
#[derive(Debug)]
pub(crate) enum Fault {
    Database(Error),
    Store(StoreError),
    /// No answer came in time.
    Silent,
    /// Somebody else did the same between our look and our write: the next look sees it.
    Overtaken,
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
        let error = match self {
            Fault::Database(error) => error,
            Fault::Store(_) | Fault::Silent => return false,
            Fault::Overtaken => return true,
        };
        let passing = [
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::LOCK_NOT_AVAILABLE,
            // Somebody made it between our look and our write: the next look sees it.
            SqlState::UNIQUE_VIOLATION,
        ];
        error.code().is_some_and(|code| passing.contains(code))
    }

    /// Whether somebody held what was waited for.
    pub(crate) fn is_held(&self) -> bool {
        let Fault::Database(error) = self else { return false };
        error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
    }

    /// Whether it only says that something else went wrong before.
    pub(crate) fn is_consequence(&self) -> bool {
        let Fault::Database(error) = self else { return false };
        error.code() == Some(&SqlState::IN_FAILED_SQL_TRANSACTION)
    }

    /// Whether something was to be made that is there already.
    pub(crate) fn is_duplicate(&self) -> bool {
        let Fault::Database(error) = self else { return false };
        error.code() == Some(&SqlState::UNIQUE_VIOLATION)
    }

    /// Whether the other side has not proved to be the database: it will not prove it in a moment either.
    pub(crate) fn is_distrust(&self) -> bool {
        let Fault::Database(error) = self else { return false };
        let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
        let cause = cause.and_then(std::io::Error::get_ref).and_then(|cause| cause.downcast_ref());
        matches!(cause, Some(rustls::Error::InvalidCertificate(_)))
    }

    /// Whether the connection is of no use any more, or leads to a server that does not take writes.
    pub(crate) fn is_connection_lost(&self) -> bool {
        if let Fault::Silent = self {
            return true;
        }
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
            Fault::Silent => StoreError::unavailable("no answer in time"),
            Fault::Overtaken => StoreError::unavailable("others write the same at the same time"),
        }
    }
}

/// What the database said, without its own prefix.
pub(crate) fn shown(error: &Error) -> String {
    let pooled = [SqlState::DUPLICATE_PSTATEMENT, SqlState::INVALID_SQL_STATEMENT_NAME];
    match error.as_db_error() {
        Some(said) if pooled.contains(said.code()) => format!(
            "{} ({}): the address leads through a proxy that hands out connections by transaction and does not keep prepared \
             statements; have it keep them (`max_prepared_statements` of PgBouncer 1.21 and later) or pool by session, or give the \
             address of the server itself",
            said.message(),
            said.code().code()
        ),
        Some(said) => format!("{} ({})", said.message(), said.code().code()),
        None => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}
