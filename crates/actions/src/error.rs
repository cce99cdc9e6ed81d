//! Why a call is refused before it is made.

/// Why a call is refused before it is made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Not a call at all.
    #[error("call: {reason}")]
    Malformed {
        /// What was expected, and what was found.
        reason: String,
    },
    /// A field makes no sense, here or anywhere.
    #[error("{field}: {reason}")]
    Invalid {
        /// Which field: `url`, `headers.Accept`, `argv[1]`.
        field: String,
        /// What was expected, and what was found.
        reason: String,
    },
    /// An address that the rules of this server keep calls away from.
    #[error("{field}: {reason}")]
    AddressRefused {
        /// Which field.
        field: String,
        /// Which address, and what the operator can do.
        reason: String,
    },
    /// A kind of call that the rules of this server do not permit.
    #[error("{reason}")]
    Forbidden {
        /// What is not permitted, and what the operator can do.
        reason: String,
    },
    /// The rules themselves cannot be followed.
    #[error("rules: {reason}")]
    Rules {
        /// What was expected, and what was found.
        reason: String,
    },
}

impl CallError {
    /// A stable word for it, as in [`Fault::kind`](crate::Fault::kind).
    pub fn kind(&self) -> &'static str {
        match self {
            CallError::Malformed { .. } | CallError::Invalid { .. } => "call_invalid",
            CallError::AddressRefused { .. } => "address_refused",
            CallError::Forbidden { .. } => "call_forbidden",
            CallError::Rules { .. } => "rules_invalid",
        }
    }

    pub(crate) fn invalid(field: impl Into<String>, reason: impl Into<String>) -> CallError {
        CallError::Invalid { field: field.into(), reason: reason.into() }
    }
}
