//! Watching over HTTP: server-sent events.

use std::convert::Infallible;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use punctual_api::{json, v1};

use super::{Asked, Shared};
use crate::grpc::{self, watch};
use crate::limits::KEEP_ALIVE_PAUSE;
use crate::metrics::Protocol;

/// The events of a schedule or of a namespace; the name of each is its kind, its data the message.
pub(super) async fn watch(app: &Shared, asked: &Asked) -> Response {
    let verb = async { watch::events(app, asked.read()?) };
    let events = match grpc::answer(app, Protocol::Http, watch::RPC, verb).await {
        Ok(events) => events,
        Err(fault) => return fault.into_response(),
    };
    let events = events.map(|event| Ok::<_, Infallible>(sent(&event)));
    let mut response =
        Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE_PAUSE)).into_response();
    // Proxies that buffer would hold events back.
    response.headers_mut().insert("x-accel-buffering", axum::http::HeaderValue::from_static("no"));
    response
}

fn sent(event: &v1::WatchEvent) -> Event {
    let data = json::to_json(event).unwrap_or_else(|error| {
        tracing::error!(%error, "an event cannot be printed");
        "{}".into()
    });
    Event::default().event(event.kind().as_str_name()).data(data)
}
