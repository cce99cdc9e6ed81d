//! Small things that are kept by name, for those who stand around the engine.

use crate::Bytes;

/// Bytes of one document: it is read and written as a whole.
pub const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;

/// A document as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// How often it was written; the first writing makes it 1.
    pub version: u64,
    /// What it says.
    pub bytes: Bytes,
}
