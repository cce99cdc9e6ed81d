//! What the next run is told about those before it, and why an attempt failed.

use punctual_core::{Failure, LastCompletion};

use super::Malformed;
use super::bytes::{Reader, Writer};
use crate::Bytes;

const VERSION: u8 = 1;

/// The record of a schedule's last completion; nothing if there is nothing to tell.
pub fn encode_completion(completion: Option<&LastCompletion>) -> Option<Bytes> {
    completion.map(|completion| {
        let mut to = Writer::with_version(VERSION);
        write_completion(&mut to, completion);
        to.0.into()
    })
}

/// Reads the record of a last completion.
pub fn decode_completion(bytes: Option<&[u8]>) -> Result<LastCompletion, Malformed> {
    let Some(bytes) = bytes else { return Ok(LastCompletion::default()) };
    let mut from = Reader::with_version(bytes, VERSION)?;
    let completion = read_completion(&mut from)?;
    from.end()?;
    Ok(completion)
}

pub(super) fn write_completion(to: &mut Writer, completion: &LastCompletion) {
    to.optional(completion.result.as_deref(), Writer::bytes);
    to.optional(completion.failure.as_deref(), Writer::bytes);
}

pub(super) fn read_completion(from: &mut Reader<'_>) -> Result<LastCompletion, Malformed> {
    let result = from.optional(|from| Ok(from.bytes()?.into()))?;
    let failure = from.optional(|from| Ok(from.bytes()?.into()))?;
    Ok(LastCompletion { result, failure })
}

/// The record of a failure.
pub fn encode_failure(failure: &Failure) -> Bytes {
    let mut to = Writer::with_version(VERSION);
    to.bytes(failure.kind.as_bytes());
    to.bytes(failure.message.as_bytes());
    to.optional(failure.details.as_deref(), Writer::bytes);
    to.number(failure.retryable.into());
    to.0.into()
}

/// Reads the record of a failure.
pub fn decode_failure(bytes: &[u8]) -> Result<Failure, Malformed> {
    let mut from = Reader::with_version(bytes, VERSION)?;
    let (kind, message) = (from.text()?.into(), from.text()?.into());
    let details = from.optional(|from| Ok(from.bytes()?.into()))?;
    let retryable = from.flag()?;
    from.end()?;
    Ok(Failure { kind, message, details, retryable })
}
