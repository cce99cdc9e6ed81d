//! Why a command was refused. Nothing of a refused command is kept.

use std::fmt;

use crate::id::Revision;

/// Why a command was refused.
#[derive(Clone, Debug, PartialEq)]
pub enum Rejection {
    /// There is no such thing in this schedule.
    NotFound(&'static str),
    /// Another request has made it already.
    AlreadyExists,
    /// The schedule has changed since the client looked.
    RevisionMismatch {
        /// The schedule's revision.
        found: Revision,
        /// The one that the client saw.
        expected: Revision,
    },
    /// The schedule is completed or deleted.
    Closed,
    /// A bound of `limits.rs` is reached.
    LimitReached(&'static str),
    /// The spec does not compile.
    InvalidSpec(punctual_spec::Error),
    /// The spec has sources, but no time of theirs will ever come.
    NeverFires,
    /// A policy has a value that means nothing.
    InvalidPolicy(&'static str),
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::NotFound(what) => write!(f, "{what} is not found"),
            Rejection::AlreadyExists => f.write_str("the schedule exists already"),
            Rejection::RevisionMismatch { found, expected } => {
                write!(f, "revision is {}, request expected {}", found.0, expected.0)
            }
            Rejection::Closed => f.write_str("the schedule is closed"),
            Rejection::LimitReached(which) => f.write_str(which),
            Rejection::InvalidSpec(error) => write!(f, "invalid schedule spec: {error}"),
            Rejection::NeverFires => f.write_str("the spec never fires"),
            Rejection::InvalidPolicy(which) => f.write_str(which),
        }
    }
}

impl std::error::Error for Rejection {}
