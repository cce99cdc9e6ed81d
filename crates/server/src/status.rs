//! The one table of refusals: what went wrong, as gRPC code, HTTP status and a stable reason.

use prost::Message;
use punctual_api::json::JsonError;
use punctual_api::v1;
use punctual_core::Rejection;
use punctual_engine::EngineError;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

/// One line of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct Reason {
    /// The stable word for programs.
    pub word: &'static str,
    /// The gRPC code.
    pub code: Code,
    /// The HTTP status.
    pub http: u16,
    /// What it means and what to do, for people.
    pub help: &'static str,
}

macro_rules! reasons {
    ($($name:ident = $word:literal, $code:ident, $http:literal, $help:literal;)*) => {
        $(pub(crate) const $name: Reason =
            Reason { word: $word, code: Code::$code, http: $http, help: $help };)*
        /// Every reason, in the order of the reference page.
        pub const REASONS: &[Reason] = &[$($name),*];
    };
}

reasons! {
    MALFORMED = "malformed", InvalidArgument, 400,
        "The text is no JSON, no UTF-8, or nested too deeply. The message says at which line and column.";
    INVALID_FIELD = "invalid_field", InvalidArgument, 400,
        "A field is unknown, has the wrong type, or a value that means nothing. `field` names it.";
    INVALID_REQUEST = "invalid_request", InvalidArgument, 400,
        "The request as a whole makes no sense, such as an id with a line break in it.";
    INVALID_SPEC = "invalid_spec", InvalidArgument, 400,
        "A rule of the spec cannot be read or has a value out of range. `field` names the rule.";
    UNKNOWN_ZONE = "unknown_zone", InvalidArgument, 400,
        "The spec names a time zone that nobody knows, or its data make no sense.";
    UNKNOWN_CALENDAR = "unknown_calendar", InvalidArgument, 400,
        "The spec names a calendar that does not exist.";
    SPEC_TOO_LARGE = "spec_too_large", InvalidArgument, 400,
        "The spec has too many rules or is too costly to evaluate.";
    NEVER_FIRES = "never_fires", InvalidArgument, 400,
        "The spec has rules, but no time of theirs will ever come. Leave all rules out for manual starts only.";
    INVALID_POLICY = "invalid_policy", InvalidArgument, 400,
        "A policy or a range has a value that means nothing.";
    INVALID_PAGE_TOKEN = "invalid_page_token", InvalidArgument, 400,
        "The page token is none that this list gave. Begin again without one.";
    INVALID_MASK = "invalid_mask", InvalidArgument, 400,
        "The update mask names a field that a schedule does not have, or one that an update cannot change.";
    PAYLOAD_TOO_LARGE = "payload_too_large", InvalidArgument, 400,
        "An input, a result or another payload is over its bound. Keep large things elsewhere and hand on where.";
    BODY_TOO_LARGE = "body_too_large", InvalidArgument, 413,
        "The body of the HTTP request is over its bound.";
    BODY_TOO_SLOW = "body_too_slow", DeadlineExceeded, 408,
        "The body of the HTTP request took too long to arrive.";
    URI_TOO_LONG = "uri_too_long", InvalidArgument, 414,
        "The path with its query is over its bound.";
    HEADERS_TOO_LARGE = "headers_too_large", InvalidArgument, 431,
        "The headers of the HTTP request are over their bound.";
    FOREIGN_ORIGIN = "foreign_origin", PermissionDenied, 403,
        "A web page of another site made a browser send this request.";
    INVALID_TOKEN = "invalid_token", Unauthenticated, 401,
        "The token of a callback is forged, belongs to something else, or its time is over.";
    NOT_ALLOWED = "not_allowed", PermissionDenied, 403,
        "The operator does not allow it: a private address, a command. The message names the flag and the setting that would.";
    UNKNOWN_QUEUE = "unknown_queue", FailedPrecondition, 400,
        "A schedule names a queue that was not declared in its namespace. Declare it first.";
    SCHEDULE_CLOSED = "schedule_closed", FailedPrecondition, 409,
        "The schedule is completed or deleted, so nothing about it can be changed.";
    NOT_FOUND = "not_found", NotFound, 404,
        "There is no such schedule, run, queue, backfill or occurrence.";
    UNKNOWN_PATH = "unknown_path", NotFound, 404,
        "There is nothing at this path. `/openapi.json` lists all paths.";
    METHOD_NOT_ALLOWED = "method_not_allowed", Unimplemented, 405,
        "The path exists, but not with this method. `/openapi.json` lists all paths.";
    ALREADY_EXISTS = "already_exists", AlreadyExists, 409,
        "Another request has made something of this name. Repeating a request with its own id is no such case.";
    REVISION_MISMATCH = "revision_mismatch", Aborted, 409,
        "The schedule has changed since the client looked. Describe it again, then decide again.";
    CONTENTION = "contention", Aborted, 409,
        "Others changed the same thing at the same time, again and again. Ask again.";
    LIMIT_REACHED = "limit_reached", ResourceExhausted, 429,
        "A bound of the schedule is reached: too many backfills, a full buffer, an id or a note that is too long.";
    BUSY = "busy", ResourceExhausted, 429,
        "More is asked than can be done. Ask again later.";
    TOO_MANY_WATCHERS = "too_many_watchers", ResourceExhausted, 429,
        "As many watchers as the server allows are there already.";
    UNAVAILABLE = "unavailable", Unavailable, 503,
        "The database does not answer, or another node drives the schedule. Whether the change happened is unknown: ask \
         again with the same request id, which is harmless.";
    STOPPING = "stopping", Unavailable, 503,
        "This node is stopping. Ask again; another node, or this one after its restart, will answer.";
    NOT_SUPPORTED = "not_supported", Unimplemented, 501,
        "The contract has it, this release does not do it yet. `field` names it.";
    QUARANTINED = "quarantined", Internal, 500,
        "The schedule's stored state, or a step of it, is broken. It is kept as it is and does nothing; the log says why.";
    INTERNAL = "internal", Internal, 500,
        "The server made a mistake. Nothing was kept of the request; the log says why.";
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) reason: &'static Reason,
    pub(crate) message: String,
    pub(crate) field: String,
}

impl Fault {
    pub(crate) fn new(reason: &'static Reason, message: impl Into<String>) -> Fault {
        Fault { reason, message: message.into(), field: String::new() }
    }

    /// A field with a value that means nothing.
    pub(crate) fn field(field: impl Into<String>, message: impl Into<String>) -> Fault {
        Fault { field: field.into(), ..Fault::new(&INVALID_FIELD, message) }
    }

    pub(crate) fn at(mut self, field: impl Into<String>) -> Fault {
        self.field = field.into();
        self
    }

    /// The same, with the name of what contains the field in front.
    pub(crate) fn within(mut self, parent: &str) -> Fault {
        self.field = if self.field.is_empty() { parent.into() } else { format!("{parent}.{}", self.field) };
        self
    }

    /// The body of an HTTP answer.
    pub(crate) fn to_wire(&self) -> v1::Error {
        v1::Error {
            code: code_word(self.reason.code).into(),
            reason: self.reason.word.into(),
            message: self.message.clone(),
            field: self.field.clone(),
        }
    }
}

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Fault {
        let reason = match &error {
            EngineError::Rejected(rejection) => return rejected(rejection),
            EngineError::NotFound(_) => &NOT_FOUND,
            EngineError::Invalid(_) => &INVALID_REQUEST,
            EngineError::UnknownQueue(_) => &UNKNOWN_QUEUE,
            EngineError::AlreadyExists(_) => &ALREADY_EXISTS,
            EngineError::Aborted { .. } => &CONTENTION,
            EngineError::Busy(_) => &BUSY,
            EngineError::Stopping => &STOPPING,
            // What the database said may name files and statements: that is for the log alone.
            EngineError::Unavailable(said) => {
                tracing::warn!(%said, "a request could not be answered");
                let message = "the database does not answer at the moment, so it is unknown whether anything was \
                               changed; ask again with the same request id";
                return Fault::new(&UNAVAILABLE, message);
            }
            EngineError::Quarantined(said) => {
                tracing::error!(%said, "a request met something broken");
                return Fault::new(
                    &QUARANTINED,
                    "the stored state is broken and kept as it is; the log says why",
                );
            }
        };
        Fault::new(reason, shortened(&error.to_string()))
    }
}

fn rejected(rejection: &Rejection) -> Fault {
    let reason = match rejection {
        Rejection::NotFound(_) => &NOT_FOUND,
        Rejection::AlreadyExists => &ALREADY_EXISTS,
        Rejection::RevisionMismatch { .. } => &REVISION_MISMATCH,
        Rejection::Closed => &SCHEDULE_CLOSED,
        Rejection::LimitReached(_) => &LIMIT_REACHED,
        Rejection::InvalidSpec(error) => return Fault::from(error.clone()).within("schedule.spec"),
        Rejection::NeverFires => &NEVER_FIRES,
        Rejection::InvalidPolicy(_) => &INVALID_POLICY,
    };
    Fault::new(reason, rejection.to_string())
}

impl From<punctual_spec::Error> for Fault {
    fn from(error: punctual_spec::Error) -> Fault {
        let reason = match () {
            () if error.is_zone() => &UNKNOWN_ZONE,
            () if error.is_unknown_calendar() => &UNKNOWN_CALENDAR,
            () if error.is_limit() => &SPEC_TOO_LARGE,
            () => &INVALID_SPEC,
        };
        let help = error.help().map(|help| format!("; {help}")).unwrap_or_default();
        Fault::new(reason, format!("{error}{help}")).at(error.field())
    }
}

impl From<JsonError> for Fault {
    fn from(error: JsonError) -> Fault {
        let reason = if error.field().is_empty() { &MALFORMED } else { &INVALID_FIELD };
        let place = error.position().map(|(line, column)| format!(" at line {line} column {column}"));
        let message = format!("{}{}", error.message(), place.unwrap_or_default());
        Fault::new(reason, shortened(&message)).at(shortened(error.field()))
    }
}

/// Where the reason of a gRPC status is, for clients that do not decode details.
pub(crate) const REASON_HEADER: &str = "punctual-reason";

impl From<Fault> for Status {
    fn from(fault: Fault) -> Status {
        let wire = fault.to_wire();
        let any = prost_types::Any {
            type_url: "type.googleapis.com/punctual.v1.Error".into(),
            value: wire.encode_to_vec(),
        };
        let details =
            RpcStatus { code: fault.reason.code as i32, message: wire.message.clone(), details: vec![any] };
        let mut status =
            Status::with_details(fault.reason.code, wire.message, details.encode_to_vec().into());
        status.metadata_mut().insert(REASON_HEADER, MetadataValue::from_static(fault.reason.word));
        status
    }
}

/// `google.rpc.Status`, which details of gRPC errors are wrapped in by convention.
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_types::Any>,
}

/// The gRPC code in lower case.
pub(crate) fn code_word(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::Cancelled => "cancelled",
        Code::Unknown => "unknown",
        Code::InvalidArgument => "invalid_argument",
        Code::DeadlineExceeded => "deadline_exceeded",
        Code::NotFound => "not_found",
        Code::AlreadyExists => "already_exists",
        Code::PermissionDenied => "permission_denied",
        Code::ResourceExhausted => "resource_exhausted",
        Code::FailedPrecondition => "failed_precondition",
        Code::Aborted => "aborted",
        Code::OutOfRange => "out_of_range",
        Code::Unimplemented => "unimplemented",
        Code::Internal => "internal",
        Code::Unavailable => "unavailable",
        Code::DataLoss => "data_loss",
        Code::Unauthenticated => "unauthenticated",
    }
}

/// Bytes of a message: what a client sent comes back in it, but never all of a megabyte.
const MESSAGE_BYTES_MAX: usize = 600;

fn shortened(text: &str) -> String {
    if text.len() <= MESSAGE_BYTES_MAX {
        return text.to_owned();
    }
    let end = (0..=MESSAGE_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}… ({} bytes)", &text[..end], text.len())
}

/// What was found, short enough for a message.
pub(crate) fn found(text: &str) -> String {
    let max = crate::limits::FOUND_LETTERS_MAX;
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{:?}… ({} bytes)", &text[..end], text.len()),
        None => format!("{text:?}"),
    }
}
