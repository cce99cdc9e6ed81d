//! Why the engine did not do what it was asked.

use punctual_core::Rejection;
use punctual_store::StoreError;
use thiserror::Error;

/// Why the engine did not do what it was asked. Nothing of it was kept, except where it says that this is unknown.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum EngineError {
    /// There is no such thing.
    #[error("{0} is not found")]
    NotFound(String),
    /// The schedule's own rules refused it.
    #[error("{0}")]
    Rejected(Rejection),
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// A schedule needs a queue that was declared before.
    #[error("queue {0:?} is not declared in this namespace")]
    UnknownQueue(String),
    /// Another thing of that name exists, with other settings.
    #[error("{0}")]
    AlreadyExists(String),
    /// Others changed the schedule at the same time, again and again.
    #[error("the schedule was changed by others at the same time, {tries} times in a row")]
    Aborted {
        /// How often it was tried.
        tries: u32,
    },
    /// The database does not answer. The change may have happened; asking again with the same request id is harmless.
    #[error("{0}")]
    Unavailable(String),
    /// More is asked than can be done: ask again later.
    #[error("the engine is busy: {0}")]
    Busy(&'static str),
    /// The schedule's stored state, or a transition of it, is broken; it is kept as it is and does nothing.
    #[error("the schedule is quarantined: {0}")]
    Quarantined(String),
    /// The engine is stopping.
    #[error("the engine is stopping")]
    Stopping,
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> EngineError {
        match error {
            StoreError::Conflict(_) => EngineError::Aborted { tries: 1 },
            StoreError::Fenced { .. } => EngineError::Unavailable(error.to_string()),
            StoreError::Unavailable { reason } => EngineError::Unavailable(reason),
            StoreError::Corrupted { .. } => EngineError::Quarantined(error.to_string()),
        }
    }
}
