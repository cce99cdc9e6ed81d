//! What a run was made with and keeps to its end: its action, its schedule's name, and what came before it.

use std::sync::Arc;

use punctual_core::{LastCompletion, RunAction};

use super::Malformed;
use super::action::{read_action, write_action};
use super::bytes::{Reader, Writer};
use super::completion::{read_completion, write_completion};
use crate::Bytes;

/// Version 2 has an action of version 2.
const VERSION: u8 = 2;

/// What a run was made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunBody {
    /// The namespace of its queue.
    pub namespace: Arc<str>,
    /// The schedule that it is for; empty for a run on its own.
    pub schedule: Arc<str>,
    /// Its name for people: the base and the nominal time.
    pub name: Arc<str>,
    /// What it is to do.
    pub action: RunAction,
    /// What it is told about the runs before it.
    pub last: LastCompletion,
}

/// What a run is made with, borrowed from its schedule: one is made at every start, so nothing is copied for it.
#[derive(Clone, Copy, Debug)]
pub struct BodyParts<'a> {
    /// The namespace of its queue.
    pub namespace: &'a str,
    /// The schedule that it is for.
    pub schedule: &'a str,
    /// Its name for people.
    pub name: &'a str,
    /// What it is to do.
    pub action: &'a RunAction,
    /// Input of its own, instead of the action's.
    pub input: Option<&'a [u8]>,
    /// What it is told about the runs before it.
    pub last: Option<&'a LastCompletion>,
}

/// The record of what a run was made with.
pub fn encode_body(body: &RunBody) -> Bytes {
    encode_body_parts(BodyParts {
        namespace: &body.namespace,
        schedule: &body.schedule,
        name: &body.name,
        action: &body.action,
        input: None,
        last: Some(&body.last),
    })
}

/// The same, from borrowed parts.
pub fn encode_body_parts(parts: BodyParts<'_>) -> Bytes {
    let mut to = Writer::with_version(VERSION);
    for text in [parts.namespace, parts.schedule, parts.name] {
        to.bytes(text.as_bytes());
    }
    write_action(&mut to, parts.action, parts.input);
    write_completion(&mut to, parts.last.unwrap_or(&LastCompletion::default()));
    to.0.into()
}

/// Reads what a run was made with.
pub fn decode_body(bytes: &[u8]) -> Result<RunBody, Malformed> {
    let (mut from, version) = Reader::with_versions(bytes, 1..=VERSION)?;
    let (namespace, schedule, name) = (from.text()?.into(), from.text()?.into(), from.text()?.into());
    let (action, last) = (read_action(&mut from, version)?, read_completion(&mut from)?);
    from.end()?;
    Ok(RunBody { namespace, schedule, name, action, last })
}
