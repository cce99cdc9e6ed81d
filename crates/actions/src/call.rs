//! What an outside call is to do; stored as JSON with its run.

mod check;

pub(crate) use check::parse_method;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::CallError;
use crate::limits::CALL_BYTES_MAX;
use crate::url::Url;

/// What an outside call is to do.
///
/// Texts marked as templates may name parts of the [`Context`](crate::Context) in double braces: `{{namespace}}`,
/// `{{schedule_id}}`, `{{run_id}}`, `{{idempotency_key}}`, `{{nominal_time}}`, `{{due_time}}`, `{{attempt}}`, `{{input}}`,
/// `{{last_result}}`, `{{callback_url}}`. `{{{{` is a literal `{{`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Call {
    /// One HTTP request.
    Http(HttpCall),
    /// One operation of a Nexus service.
    Nexus(NexusCall),
    /// One command of the server's machine.
    Command(CommandCall),
}

/// One HTTP request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpCall {
    /// Where to; a template behind the host.
    pub url: String,
    /// `POST` if not given.
    #[serde(default = "post")]
    pub method: String,
    /// Headers by name; values are templates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body, a template in which texts are escaped for JSON strings. If not given, methods with a body send an object with
    /// all that the context knows, except for the callback's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// How long the connection may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_timeout_ms: Option<u64>,
    /// How long all of it may take: connection, redirects and body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Statuses that are worth another attempt; if empty, 408, 425, 429 and all from 500.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retry_statuses: Vec<u16>,
    /// Redirects to follow, at most as many as the rules permit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirects_max: Option<u32>,
}

/// One operation of a Nexus service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NexusCall {
    /// The base URL, to which service and operation are added.
    pub endpoint: String,
    /// The service.
    pub service: String,
    /// The operation.
    pub operation: String,
    /// Headers by name; values are templates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The operation's input, a template as in [`HttpCall::body`]; the run's input if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// How long the operation may take until its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_timeout_ms: Option<u64>,
    /// How long the request that starts it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// One command of the server's machine, started without a shell. Nothing that it starts outlives the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandCall {
    /// The program, then its arguments, which are templates.
    pub argv: Vec<String>,
    /// Variables for it; values are templates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The folder it starts in, from the root; the server's if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// How long it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Bytes of stdout that are kept as the result, at most as many as the rules permit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes_max: Option<usize>,
}

impl Call {
    /// What calls to the same target share: scheme, host and port, or `command:` and the program.
    pub fn target(&self) -> String {
        let origin = |text: &str| {
            // The text of a template that was checked is literal up to the end of the host.
            let end = text.find("{{").unwrap_or(text.len());
            Url::parse(&text[..end]).map_or_else(|_| text.chars().take(200).collect(), |url| url.origin())
        };
        match self {
            Call::Http(call) => origin(&call.url),
            Call::Nexus(call) => origin(&call.endpoint),
            Call::Command(call) => {
                let program: String =
                    call.argv.first().map_or("", |program| program).chars().take(200).collect();
                format!("command:{program}")
            }
        }
    }

    /// The call as it is stored.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a call has text keys only, so it is always JSON")
    }

    /// A stored call, or one that a user wrote.
    pub fn from_json(bytes: &[u8]) -> Result<Call, CallError> {
        if bytes.len() > CALL_BYTES_MAX {
            let reason = format!("expected at most {CALL_BYTES_MAX} bytes, found {}", bytes.len());
            return Err(CallError::Malformed { reason });
        }
        serde_json::from_slice(bytes).map_err(|error| CallError::Malformed { reason: error.to_string() })
    }
}

impl HttpCall {
    /// A `POST` to this URL, with everything else as usual.
    pub fn new(url: impl Into<String>) -> HttpCall {
        HttpCall {
            url: url.into(),
            method: post(),
            headers: BTreeMap::new(),
            body: None,
            connect_timeout_ms: None,
            timeout_ms: None,
            retry_statuses: Vec::new(),
            redirects_max: None,
        }
    }
}

impl NexusCall {
    /// This operation with the run's input, with everything else as usual.
    pub fn new(
        endpoint: impl Into<String>,
        service: impl Into<String>,
        operation: impl Into<String>,
    ) -> NexusCall {
        NexusCall {
            endpoint: endpoint.into(),
            service: service.into(),
            operation: operation.into(),
            headers: BTreeMap::new(),
            input: None,
            operation_timeout_ms: None,
            timeout_ms: None,
        }
    }
}

impl CommandCall {
    /// This program with these arguments, with everything else as usual.
    pub fn new(argv: impl IntoIterator<Item = impl Into<String>>) -> CommandCall {
        CommandCall {
            argv: argv.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            cwd: None,
            timeout_ms: None,
            output_bytes_max: None,
        }
    }
}

fn post() -> String {
    "POST".to_owned()
}
