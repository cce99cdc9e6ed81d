//! Where whoever took a call on says how it ended: `POST /v1/callbacks/{token}`.
//!
//! The token is all that is needed: it is signed, names one run, and runs out. Who repeats it changes nothing.

use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use punctual_actions::Form;
use punctual_core::Failure;
use punctual_engine::{CallbackEnd, Recorded};
use punctual_store::RunKey;
use serde_json::{Value, json};

use super::Shared;
use crate::calls::CALLBACK;
use crate::convert::payload;
use crate::limits::PAYLOAD_BYTES_MAX;
use crate::status::{Fault, INVALID_FIELD, INVALID_TOKEN, MALFORMED, PAYLOAD_TOO_LARGE, found};

/// How a run ended, as one of these words; succeeded if it is not there.
const OUTCOME_HEADER: &str = "punctual-outcome";

/// The same in the words of Nexus.
const NEXUS_STATE_HEADER: &str = "nexus-operation-state";

pub(crate) async fn take(app: Shared, token: Path<String>, headers: HeaderMap, body: Body) -> Response {
    match heard(&app, &token, &headers, body).await {
        Ok(state) => (
            StatusCode::OK,
            [(header::CONTENT_TYPE, "application/json")],
            json!({ "state": state }).to_string(),
        )
            .into_response(),
        Err(fault) => fault.into_response(),
    }
}

async fn heard(app: &Shared, token: &str, headers: &HeaderMap, body: Body) -> Result<&'static str, Fault> {
    let now = app.engine.now().as_second();
    // The same words for every token that does not count: whoever guesses learns nothing.
    let claim = app.calls.verify(token, CALLBACK, now);
    let claim = claim.ok_or_else(|| Fault::new(&INVALID_TOKEN, "the callback's token does not count"))?;
    let body = axum::body::to_bytes(body, PAYLOAD_BYTES_MAX - 1024).await.map_err(|_| {
        Fault::new(
            &PAYLOAD_TOO_LARGE,
            format!("the body is cut off or has more than {PAYLOAD_BYTES_MAX} bytes"),
        )
    })?;
    let end = end(headers, &body)?;
    let recorded = app.engine.callback(&claim.namespace, RunKey(claim.run), end).await?;
    Ok(match recorded {
        Recorded::Closed => "recorded",
        Recorded::Retried { .. } => "retried",
        Recorded::Stale => "stale",
    })
}

fn end(
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Result<Option<punctual_store::Bytes>, CallbackEnd>, Fault> {
    let word = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?").to_ascii_lowercase());
    let outcome = word(OUTCOME_HEADER).or_else(|| word(NEXUS_STATE_HEADER));
    match outcome.as_deref() {
        None | Some("succeeded" | "successful") => Ok(Ok(result(headers, body))),
        Some("cancelled" | "canceled") => Ok(Err(CallbackEnd::Cancelled)),
        Some("failed") => failure(body).map(|failure| Err(CallbackEnd::Failed(failure))),
        Some(other) => {
            let message = format!("expected succeeded, failed or cancelled, found {}", found(other));
            Err(Fault::new(&INVALID_FIELD, message).at(OUTCOME_HEADER))
        }
    }
}

fn result(headers: &HeaderMap, body: &Bytes) -> Option<punctual_store::Bytes> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if body.is_empty() {
        return None;
    }
    let form = match () {
        () if serde_json::from_slice::<Value>(body).is_ok() => Form::Json,
        () if !kind.starts_with("application/octet-stream") && std::str::from_utf8(body).is_ok() => {
            let text = Value::from(String::from_utf8_lossy(body).into_owned()).to_string();
            return payload::of_call(text.into_bytes(), Form::Json);
        }
        () => Form::Bytes,
    };
    payload::of_call(body.to_vec(), form)
}

/// Every part may be missing: `{"kind": …, "message": …, "details": …, "retryable": …}`.
fn failure(body: &Bytes) -> Result<Failure, Fault> {
    let said = match serde_json::from_slice::<Value>(body) {
        Ok(said) => said,
        Err(_) if body.is_empty() => Value::Null,
        Err(error) => return Err(Fault::new(&MALFORMED, format!("the failure is no JSON: {error}"))),
    };
    let text = |name: &str| said[name].as_str().map(str::to_owned);
    let mut failure =
        Failure::new(&text("kind").unwrap_or("callback".into()), &text("message").unwrap_or_default());
    failure.details = said
        .get("details")
        .and_then(|details| payload::of_call(details.to_string().into_bytes(), Form::Json));
    // Whoever did the work knows that it failed: it is over, unless it says that trying again may help.
    failure.retryable = said["retryable"].as_bool().unwrap_or(false);
    Ok(failure)
}
