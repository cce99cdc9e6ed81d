//! The same verbs over HTTP with JSON, and the pages around them.

mod routes;
mod sse;
mod guard;
mod callbacks;

use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Query, RawPathParams};
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use prost::{Message, Name};
use punctual_api::json;

use crate::limits::{BODY_BYTES_MAX, BODY_TIME_MAX};
use crate::status::{BODY_TOO_LARGE, BODY_TOO_SLOW, Fault, MALFORMED};

pub(crate) use routes::router;

/// What a request of HTTP says: path, query and body, decoded but not yet read.
pub(crate) struct Asked {
    path: Vec<(String, String)>,
    query: Vec<(String, String)>,
    body: Bytes,
}

impl Asked {
    /// Takes a request in, the body only up to its bound.
    pub(crate) async fn take(path: &RawPathParams, uri: &Uri, body: Body) -> Result<Asked, Fault> {
        let path = path.iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
        let query = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|error| Fault::new(&MALFORMED, format!("the query makes no sense: {error}")))?;
        let body = tokio::time::timeout(BODY_TIME_MAX, to_bytes(body, BODY_BYTES_MAX)).await;
        let slow = |_| {
            Fault::new(
                &BODY_TOO_SLOW,
                format!("the body did not arrive within {} seconds", BODY_TIME_MAX.as_secs()),
            )
        };
        let large = |_| {
            Fault::new(
                &BODY_TOO_LARGE,
                format!("the body was cut off, or has more than {BODY_BYTES_MAX} bytes"),
            )
        };
        Ok(Asked { path, query: query.0, body: body.map_err(slow)?.map_err(large)? })
    }

    /// Reads the request message.
    pub(crate) fn read<M: Message + Name + Default>(&self) -> Result<M, Fault> {
        let texts = |pairs: &[(String, String)]| pairs.to_vec();
        Ok(json::request(texts(&self.path), texts(&self.query), &self.body)?)
    }
}

impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let body = json::to_json(&self.to_wire()).unwrap_or_default();
        let mut response = json_response(self.reason.http, body);
        if matches!(self.reason.http, 429 | 503) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// An answer in JSON.
pub(crate) fn json_response(status: u16, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = axum::http::StatusCode::from_u16(status).unwrap_or_default();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response.headers_mut().insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

/// Turns a result into an answer.
pub(crate) fn answered(result: Result<String, Fault>) -> Response {
    result.map_or_else(IntoResponse::into_response, |body| json_response(200, body))
}

/// Shared by all handlers.
pub(crate) type Shared = Arc<crate::app::App>;
