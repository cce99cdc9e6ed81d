//! Refusals as Temporal's clients know them: code, words and detail are what they decide by.

use prost::{Message, Name};
use prost_types::Any;
use punctual_core::Rejection;
use punctual_engine::EngineError;
use tonic::{Code, Status};

use super::wire::{details, enums};
use crate::grpc::Refuses;
use crate::status::{self, Fault};

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    code: Code,
    message: String,
    detail: Option<Any>,
}

impl Refusal {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into(), detail: None }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::InvalidArgument, message)
    }

    /// TypeScript's client recognises a bad spec by how the message begins.
    pub(super) fn spec(message: impl std::fmt::Display) -> Refusal {
        Refusal::invalid(format!("Invalid schedule spec: {message}"))
    }

    pub(super) fn not_found(message: impl Into<String>) -> Refusal {
        Refusal::new(Code::NotFound, message).with(&details::NotFoundFailure::default())
    }

    pub(super) fn unknown_namespace(name: &str) -> Refusal {
        let detail = details::NamespaceNotFoundFailure { namespace: name.into() };
        let found = status::found(name);
        Refusal::new(Code::NotFound, format!("Namespace {found} is not found.")).with(&detail)
    }

    /// Python, Ruby and Go look for this detail, and for nothing else.
    pub(super) fn already_exists(schedule: &str) -> Refusal {
        let detail = details::WorkflowExecutionAlreadyStartedFailure::default();
        let message = format!("schedule {} is already registered", status::found(schedule));
        Refusal::new(Code::AlreadyExists, message).with(&detail)
    }

    /// What a cluster behind this server said, with its first detail.
    pub(super) fn of(status: &Status) -> Refusal {
        let carried =
            punctual_temporal_api::google::rpc::Status::decode(status.details()).unwrap_or_default();
        let detail = carried.details.into_iter().next();
        Refusal { code: status.code(), message: status.message().to_owned(), detail }
    }

    pub(super) fn stale_token() -> Refusal {
        Refusal::new(Code::FailedPrecondition, "mismatched conflict token")
    }

    fn with<M: Message + Name>(mut self, detail: &M) -> Refusal {
        self.detail = Some(Any { type_url: M::type_url(), value: detail.encode_to_vec() });
        self
    }
}

/// What the engine says of a schedule.
pub(super) fn of_schedule(schedule: &str, error: EngineError) -> Refusal {
    match error {
        EngineError::Rejected(Rejection::AlreadyExists) => Refusal::already_exists(schedule),
        // Temporal forgets what was deleted or has ended.
        EngineError::Rejected(Rejection::Closed) | EngineError::NotFound(_) => {
            Refusal::not_found(format!("schedule {} is not found", status::found(schedule)))
        }
        EngineError::Rejected(Rejection::InvalidSpec(error)) => Refusal::spec(error),
        EngineError::Rejected(Rejection::NeverFires) => Refusal::spec(Rejection::NeverFires),
        EngineError::Rejected(Rejection::RevisionMismatch { .. }) => Refusal::stale_token(),
        EngineError::Rejected(Rejection::LimitReached(what)) => Refusal::new(Code::FailedPrecondition, what),
        error => Fault::from(error).into(),
    }
}

impl From<EngineError> for Refusal {
    fn from(error: EngineError) -> Refusal {
        Fault::from(error).into()
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        let Fault { reason, message, field } = fault;
        let message = if field.is_empty() { message } else { format!("{field}: {message}") };
        match reason {
            reason if *reason == status::BUSY => {
                let cause = enums::ResourceExhaustedCause::SystemOverloaded.into();
                let scope = enums::ResourceExhaustedScope::System.into();
                let detail = details::ResourceExhaustedFailure { cause, scope };
                Refusal::new(Code::ResourceExhausted, message).with(&detail)
            }
            // Clients repeat these with the same request id, which is harmless.
            reason if *reason == status::CONTENTION => Refusal::new(Code::Unavailable, message),
            // They would repeat an internal error too, which mends nothing that is broken for good.
            reason if *reason == status::QUARANTINED => Refusal::new(Code::FailedPrecondition, message),
            reason => Refusal::new(reason.code, message),
        }
    }
}

impl Refuses for Refusal {
    fn code(&self) -> Code {
        self.code
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Status {
        let Refusal { code, message, detail } = refusal;
        let details = punctual_temporal_api::google::rpc::Status {
            code: code as i32,
            message: message.clone(),
            details: detail.into_iter().collect(),
        };
        Status::with_details(code, message, details.encode_to_vec().into())
    }
}
