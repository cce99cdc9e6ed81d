//! The forms in which state is kept: versioned bytes, apart from the types of `core`.
//!
//! Every record begins with its version. What a release has written, later releases can read: `fixtures/` holds the bytes of
//! each. Definitions are JSON, since people look at them and they grow new fields; what is written at every start is compact.

mod action;
mod bytes;
mod completion;
mod definition;
mod queue;
mod report;
mod run_body;
mod state;

pub use action::{decode_action, encode_action};
pub use completion::{decode_completion, decode_failure, encode_completion, encode_failure};
pub use definition::{decode_schedule, encode_schedule};
pub use queue::{decode_queue, encode_queue};
pub use report::{NodeReport, WorkerSeen, decode_report, encode_report};
pub use run_body::{BodyParts, RunBody, decode_body, encode_body, encode_body_parts};
pub use state::{TreeState, decode_state, encode_state, verdict_number, verdict_of};

/// Why bytes are no record of ours.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Malformed(pub String);

impl Malformed {
    fn new(reason: impl ToString) -> Malformed {
        Malformed(reason.to_string())
    }
}
