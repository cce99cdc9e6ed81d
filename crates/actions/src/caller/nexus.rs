//! One operation of a Nexus service: started, answered at once or accepted, cancelled.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::client::{Answer, Request};
use super::http::{body, explanation, success};
use super::{Caller, Deadline, failed, headers, timeout_of};
use crate::call::NexusCall;
use crate::context::{Context, as_json};
use crate::end::{End, Fault, result_of};
use crate::retry_after::retry_after;
use crate::stop::StopSignal;
use crate::url::{Url, percent_encode};

/// Returned with the callback under the name behind the prefix, [`headers::CALLBACK_TOKEN_HEADER`].
const CALLBACK_TOKEN_HEADER: &str = "nexus-callback-punctual-callback-token";

/// Types of the protocol's errors: the status that stands for each, and whether another attempt may help.
const HANDLER_ERRORS: [(&str, u16, bool); 11] = [
    ("BAD_REQUEST", 400, false),
    ("UNAUTHENTICATED", 401, false),
    ("UNAUTHORIZED", 403, false),
    ("NOT_FOUND", 404, false),
    ("CONFLICT", 409, false),
    ("NOT_IMPLEMENTED", 501, false),
    ("REQUEST_TIMEOUT", 408, true),
    ("RESOURCE_EXHAUSTED", 429, true),
    ("INTERNAL", 500, true),
    ("UNAVAILABLE", 503, true),
    ("UPSTREAM_TIMEOUT", 520, true),
];

/// What the protocol calls a failure. Everything in it is optional.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Failure {
    message: String,
    metadata: BTreeMap<String, Value>,
    details: Value,
}

impl Caller {
    pub(super) async fn nexus(&self, call: &NexusCall, context: &Context, stop: &StopSignal) -> End {
        let mut log = String::new();
        let ended = {
            let start = self.start(call, context, &mut log);
            tokio::pin!(start);
            tokio::select! {
                biased;
                ended = &mut start => ended,
                // The operation may have begun: only its token can stop it, so that is still waited for.
                () = stop.stopped() => match tokio::time::timeout(self.rules.stop_grace, start).await {
                    Ok(ended) => ended,
                    Err(_) => return End::Cancelled,
                },
            }
        };
        match ended {
            Ok(Started::Finished { result, content_type }) => {
                let (result, form) = result_of(result, content_type.as_deref());
                End::Done { result, form, log }
            }
            Ok(Started::Running { token: Some(token) }) if stop.is_stopped() => {
                // Nobody waits for its end any more; if this fails, the operation goes on for nothing.
                let _ = tokio::time::timeout(self.rules.stop_grace, self.cancel(call, context, &token)).await;
                End::Cancelled
            }
            Ok(Started::Running { token }) => End::Accepted { token, log },
            Ok(Started::Cancelled) => End::Cancelled,
            Err(_) if stop.is_stopped() => End::Cancelled,
            Err(fault) => failed(fault, log),
        }
    }

    async fn start(&self, call: &NexusCall, context: &Context, log: &mut String) -> Result<Started, Fault> {
        let deadline = Deadline::after(timeout_of(call.timeout_ms, self.rules.timeout));
        let request = request(call, context, deadline.timeout())?;
        let answer = self.send(&request, self.rules.connect_timeout, deadline, log).await?;
        match answer.status {
            StatusCode::OK => {
                let (result, content_type) = success(answer, self.rules.response_bytes_max, deadline).await?;
                Ok(Started::Finished { result, content_type })
            }
            StatusCode::CREATED => {
                let (body, _) = success(answer, self.rules.response_bytes_max, deadline).await?;
                Ok(Started::Running { token: token_in(&body) })
            }
            StatusCode::FAILED_DEPENDENCY => operation_error(answer, deadline).await,
            _ => Err(handler_error(answer, deadline).await),
        }
    }

    pub(super) async fn cancel(&self, call: &NexusCall, context: &Context, token: &str) -> Result<(), Fault> {
        let mut headers = headers::of(&call.headers, context, false)?;
        headers::set(&mut headers, "nexus-operation-token", token);
        let url = Url::parse(&format!("{}/cancel", operation_url(call)));
        let url = url.map_err(|reason| Fault::lasting("call_invalid", format!("endpoint: {reason}")))?;
        let request = Request { method: Method::POST, url, headers, body: Bytes::new() };
        let deadline = Deadline::after(timeout_of(call.timeout_ms, self.rules.timeout));
        let answer = self.send(&request, self.rules.connect_timeout, deadline, &mut String::new()).await?;
        if answer.status.is_success() { Ok(()) } else { Err(handler_error(answer, deadline).await) }
    }
}

/// What became of a start.
enum Started {
    Finished { result: Vec<u8>, content_type: Option<String> },
    Running { token: Option<String> },
    Cancelled,
}

fn request(call: &NexusCall, context: &Context, timeout: Duration) -> Result<Request, Fault> {
    let invalid = |field: &str, reason: String| Fault::lasting("call_invalid", format!("{field}: {reason}"));
    let callback = context.callback_url.iter().map(|url| format!("?callback={}", percent_encode(url)));
    let url = Url::parse(&format!("{}{}", operation_url(call), callback.collect::<String>()));
    let body = match (&call.input, &context.input) {
        (Some(template), _) => body(template, context).map_err(|reason| invalid("input", reason))?,
        (None, Some(input)) => Bytes::from(as_json(Some(input)).into_owned()),
        (None, None) => Bytes::new(),
    };
    let mut headers = headers::of(&call.headers, context, !body.is_empty())?;
    headers::set(&mut headers, "nexus-request-id", &context.idempotency_key);
    headers::set(&mut headers, "request-timeout", &format!("{}ms", timeout.as_millis()));
    if let Some(operation_timeout_ms) = call.operation_timeout_ms {
        headers::set(&mut headers, "operation-timeout", &format!("{operation_timeout_ms}ms"));
    }
    if let Some(token) = context.callback_token.as_ref().filter(|_| context.callback_url.is_some()) {
        headers::set(&mut headers, CALLBACK_TOKEN_HEADER, token);
    }
    let url = url.map_err(|reason| invalid("endpoint", reason))?;
    Ok(Request { method: Method::POST, url, headers, body })
}

fn operation_url(call: &NexusCall) -> String {
    let (service, operation) = (percent_encode(&call.service), percent_encode(&call.operation));
    format!("{}/{service}/{operation}", call.endpoint.trim_end_matches('/'))
}

/// The token of an accepted operation; older servers call it id.
fn token_in(body: &[u8]) -> Option<String> {
    let info: Value = serde_json::from_slice(body).ok()?;
    let token = info.get("token").or_else(|| info.get("id"))?;
    token.as_str().filter(|token| !token.is_empty()).map(str::to_owned)
}

/// The operation itself failed or was cancelled: the service has spoken, and another attempt would be another operation.
async fn operation_error(answer: Answer, deadline: Deadline) -> Result<Started, Fault> {
    let header =
        answer.headers.get("nexus-operation-state").and_then(|state| state.to_str().ok()).map(str::to_owned);
    let body = explanation(answer, deadline).await;
    let failure: Failure = serde_json::from_slice(&body).unwrap_or_default();
    let state = failure.details.get("state").and_then(Value::as_str).or(header.as_deref());
    if matches!(state, Some("canceled" | "cancelled")) {
        return Ok(Started::Cancelled);
    }
    let message =
        if failure.message.is_empty() { "the operation failed".to_owned() } else { failure.message };
    Err(Fault::lasting("nexus_failed", message).with_details(&body))
}

/// The service did not take the request on.
async fn handler_error(answer: Answer, deadline: Deadline) -> Fault {
    let status = answer.status.as_u16();
    let header =
        answer.headers.get("nexus-request-retryable").and_then(|value| value.to_str().ok()?.parse().ok());
    let wait = retry_after(&answer.headers, Timestamp::now());
    let body = explanation(answer, deadline).await;
    let failure: Failure = serde_json::from_slice(&body).unwrap_or_default();
    let is_typed = failure.metadata.get("type").is_none_or(|name| name == "nexus.HandlerError");
    let named = failure.details.get("type").and_then(Value::as_str).filter(|_| is_typed);
    let known =
        HANDLER_ERRORS.iter().find(|(name, of, _)| named.map_or(*of == status, |named| named == *name));
    // An error that nobody knows counts as passing, unless the answer is no error at all.
    let (kind, usually) = match known {
        Some((name, _, retryable)) => (format!("nexus_{}", name.to_ascii_lowercase()), *retryable),
        None => (format!("nexus_http_{status}"), status >= 400),
    };
    let own = failure.details.get("retryableOverride").and_then(Value::as_bool).filter(|_| is_typed);
    let retryable = own.or(header).unwrap_or(usually);
    let message = if failure.message.is_empty() {
        format!("expected status 200, 201 or 424, found {status}")
    } else {
        failure.message
    };
    let mut fault = Fault::new(kind, retryable, message).with_details(&body);
    fault.retry_after = wait.filter(|_| retryable);
    fault
}
