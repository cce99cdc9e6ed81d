//! How one attempt of a call ended.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::context::is_json;
use crate::limits::{DETAILS_BYTES_MAX, MESSAGE_BYTES_MAX};

/// How one attempt of a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It did what it was asked for: a status of the 200s other than 202, Nexus 200, exit code 0.
    Done {
        /// What came back.
        result: Vec<u8>,
        /// What kind of bytes that is.
        form: Form,
        /// What happened, for people.
        log: String,
    },
    /// It was taken on, status 202 or Nexus 201: its end comes by the callback.
    Accepted {
        /// What a Nexus operation is cancelled by.
        token: Option<String>,
        /// What happened, for people.
        log: String,
    },
    /// It failed.
    Failed {
        /// Why, and whether another attempt may help.
        fault: Fault,
        /// What happened, for people.
        log: String,
    },
    /// It was stopped before its end, or the other side says that it was cancelled.
    Cancelled,
}

/// What kind of bytes a result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// JSON, as it came; `null` if nothing came.
    Json,
    /// Text, which became a JSON string.
    Text,
    /// Anything else, as it came.
    Bytes,
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// A stable word for it, such as `http_503`, `connect_failed`, `timed_out`, `exit_1`.
    pub kind: String,
    /// What happened, for people.
    pub message: String,
    /// What the other side said, as JSON: its own JSON if that is short, else a string with its beginning.
    pub details: Option<Vec<u8>>,
    /// Whether another attempt may help.
    pub retryable: bool,
    /// How long the other side asks to wait before.
    pub retry_after: Option<Duration>,
}

impl Fault {
    pub(crate) fn new(kind: impl Into<String>, retryable: bool, message: impl Into<String>) -> Fault {
        let mut message: String = message.into();
        cut(&mut message, MESSAGE_BYTES_MAX);
        Fault { kind: kind.into(), message, details: None, retryable, retry_after: None }
    }

    /// Another attempt may help.
    pub(crate) fn passing(kind: impl Into<String>, message: impl Into<String>) -> Fault {
        Fault::new(kind, true, message)
    }

    /// Another attempt would fail in the same way.
    pub(crate) fn lasting(kind: impl Into<String>, message: impl Into<String>) -> Fault {
        Fault::new(kind, false, message)
    }

    pub(crate) fn with_details(mut self, body: &[u8]) -> Fault {
        self.details = details(body);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.kind, self.message)
    }
}

impl std::error::Error for Fault {}

/// What a body is, from what its sender calls it and from its bytes.
pub(crate) fn result_of(body: Vec<u8>, content_type: Option<&str>) -> (Vec<u8>, Form) {
    let kind =
        content_type.and_then(|kind| kind.split(';').next()).map(|kind| kind.trim().to_ascii_lowercase());
    let kind = kind.as_deref().unwrap_or_default();
    let may_be_json = kind.is_empty() || kind.ends_with("/json") || kind.ends_with("+json");
    if body.is_empty() {
        return (b"null".to_vec(), Form::Json);
    }
    if may_be_json && is_json(&body) {
        return (body, Form::Json);
    }
    if kind == "application/octet-stream" {
        return (body, Form::Bytes);
    }
    match String::from_utf8(body) {
        Ok(text) => (Value::from(text).to_string().into_bytes(), Form::Text),
        Err(error) => (error.into_bytes(), Form::Bytes),
    }
}

/// What is kept of a refusal's body.
fn details(body: &[u8]) -> Option<Vec<u8>> {
    if body.is_empty() {
        return None;
    }
    if body.len() <= DETAILS_BYTES_MAX && is_json(body) {
        return Some(body.to_vec());
    }
    let mut text = String::from_utf8_lossy(&body[..body.len().min(DETAILS_BYTES_MAX)]).into_owned();
    cut(&mut text, DETAILS_BYTES_MAX);
    Some(Value::from(text).to_string().into_bytes())
}

/// Cuts a text to at most this many bytes, between letters.
fn cut(text: &mut String, bytes_max: usize) {
    text.truncate(text.floor_char_boundary(bytes_max));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_told_apart() {
        type Case<'a> = (&'a [u8], Option<&'a str>, &'a [u8], Form);
        let cases: [Case<'_>; 9] = [
            (b"{\"a\": 1}", Some("application/json; charset=utf-8"), b"{\"a\": 1}", Form::Json),
            (b"[1]", Some("application/problem+json"), b"[1]", Form::Json),
            (b"[1]", None, b"[1]", Form::Json),
            (b"[1]", Some("text/plain"), b"\"[1]\"", Form::Text),
            (b"{oops", Some("application/json"), b"\"{oops\"", Form::Text),
            (b"hello", None, b"\"hello\"", Form::Text),
            (b"hello", Some("application/octet-stream"), b"hello", Form::Bytes),
            (b"\xff\x00", Some("text/plain"), b"\xff\x00", Form::Bytes),
            (b"", None, b"null", Form::Json),
        ];
        for (body, content_type, result, form) in cases {
            assert_eq!(result_of(body.to_vec(), content_type), (result.to_vec(), form), "{content_type:?}");
        }
    }

    #[test]
    fn details_are_json_and_short() {
        assert_eq!(details(b""), None);
        assert_eq!(details(b"{\"a\":1}").as_deref(), Some(&b"{\"a\":1}"[..]));
        let long = details("ü\"".repeat(20_000).as_bytes()).unwrap();
        assert!(is_json(&long) && long.len() < 2 * DETAILS_BYTES_MAX);
    }
}
