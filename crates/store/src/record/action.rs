//! What a run on a queue is to do, as bytes: the payload of a queue action, and the larger part of a run's body.

use std::sync::Arc;

use punctual_core::{RetryPolicy, RunAction, Timeouts};

use super::Malformed;
use super::bytes::{Reader, Writer};
use crate::Bytes;

/// Version 2 has priority, key and call.
const VERSION: u8 = 2;

/// The record of an action.
pub fn encode_action(action: &RunAction) -> Bytes {
    let mut to = Writer::with_version(VERSION);
    write_action(&mut to, action, None);
    to.0.into()
}

/// Reads the record of an action.
pub fn decode_action(bytes: &[u8]) -> Result<RunAction, Malformed> {
    let (mut from, version) = Reader::with_versions(bytes, 1..=VERSION)?;
    let action = read_action(&mut from, version)?;
    from.end()?;
    Ok(action)
}

pub(super) fn write_action(to: &mut Writer, action: &RunAction, input_instead: Option<&[u8]>) {
    let RunAction { queue, handler, input, retry, timeouts, priority, key, call } = action;
    to.bytes(queue.as_bytes());
    to.bytes(handler.as_bytes());
    to.bytes(input_instead.unwrap_or(input));
    to.number(retry.attempts_max.into());
    to.duration(retry.backoff_first);
    to.number(retry.backoff_percent.into());
    to.duration(retry.backoff_max);
    to.list(retry.non_retryable.iter(), |to, kind| to.bytes(kind.as_bytes()));
    for length in [timeouts.start_to_close, timeouts.schedule_to_close, timeouts.heartbeat] {
        to.optional(length, Writer::duration);
    }
    to.signed((*priority).into());
    to.bytes(key.as_bytes());
    to.optional(call.as_deref(), Writer::bytes);
}

/// Reads an action as a record of this version has it; body and action records have the same versions.
pub(super) fn read_action(from: &mut Reader<'_>, version: u8) -> Result<RunAction, Malformed> {
    let (queue, handler) = (from.text()?.into(), from.text()?.into());
    let input = from.bytes()?.into();
    let retry = RetryPolicy {
        attempts_max: from.small()?,
        backoff_first: from.duration()?,
        backoff_percent: from.small()?,
        backoff_max: from.duration()?,
        non_retryable: from.list(|from| from.text().map(Arc::from))?,
    };
    let timeouts = Timeouts {
        start_to_close: from.optional(Reader::duration)?,
        schedule_to_close: from.optional(Reader::duration)?,
        heartbeat: from.optional(Reader::duration)?,
    };
    let action = RunAction { queue, handler, input, retry, timeouts, ..RunAction::default() };
    if version < 2 {
        return Ok(action);
    }
    let priority = i16::try_from(from.signed()?).map_err(Malformed::new)?;
    let key = from.text()?.into();
    let call = from.optional(|from| from.bytes().map(Arc::from))?;
    Ok(RunAction { priority, key, call, ..action })
}
