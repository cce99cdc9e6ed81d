//! Hands a request on as it came, and its answer back: metadata, messages and trailers unread.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderValue, Uri, Version, header};
use axum::response::Response;
use futures_util::future::BoxFuture;
use hyper::body::{Frame, SizeHint};
use hyper_util::client::legacy::Error;
use tonic::{Code, Status};

use super::Upstream;
use crate::app::App;
use crate::metrics::Protocol;

/// The name under which all forwarded requests are counted: which methods a cluster has is not ours to know.
pub(crate) const FORWARDED: &str = "temporal/forwarded";

/// Hands a request on to the cluster behind this server.
pub(crate) async fn forward(app: &std::sync::Arc<App>, request: Request) -> Response {
    let begun = Instant::now();
    let Some(upstream) = &app.upstream else {
        return Status::unimplemented("there is no Temporal cluster behind this server").into_http();
    };
    let answer = match handed_on(upstream, request) {
        Ok((request, patience)) => tokio::select! {
            answer = upstream.client.request(request) => answer.map_err(|error| away(upstream, &error)),
            () = tokio::time::sleep(patience.unwrap_or(Duration::MAX)), if patience.is_some() => {
                Err(Status::deadline_exceeded(format!(
                    "the Temporal cluster at {} did not answer in time", upstream.authority
                )))
            }
            () = app.stop() => Err(Status::unavailable("the server is stopping")),
        },
        Err(status) => Err(status),
    };
    let code = match &answer {
        // A refusal without a message has its status here; how a message ends is known when it has been handed on.
        Ok(answer) => answer.headers().get("grpc-status").map_or(Code::Ok, code),
        Err(status) => status.code(),
    };
    app.requests.finished(Protocol::Grpc, FORWARDED, code, begun.elapsed());
    match answer {
        Ok(answer) => {
            let app = app.clone();
            let stop = Box::pin(async move { app.stop().await });
            answer.map(|body| Body::new(Rest { body: Some(Body::new(body)), stop }))
        }
        Err(status) => status.into_http(),
    }
}

/// The same request for the cluster, and how long the client waits for its answer.
fn handed_on(upstream: &Upstream, request: Request) -> Result<(Request, Option<Duration>), Status> {
    let (mut head, body) = request.into_parts();
    let path = head.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    let uri = Uri::builder().scheme(upstream.scheme.clone()).authority(upstream.authority.clone());
    head.uri = uri
        .path_and_query(path)
        .build()
        .map_err(|error| Status::invalid_argument(format!("the path makes no sense: {error}")))?;
    head.version = Version::HTTP_2;
    head.headers.remove(header::HOST);
    let patience = patience(&head.headers);
    Ok((Request::from_parts(head, body), patience))
}

/// What `grpc-timeout` says: up to eight digits and a unit.
pub(super) fn patience(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3_600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

fn code(status: &HeaderValue) -> Code {
    Code::from_bytes(status.as_bytes())
}

fn away(upstream: &Upstream, error: &Error) -> Status {
    let mut reason = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        reason = cause.to_string();
        source = cause.source();
    }
    Status::unavailable(format!("the Temporal cluster at {} cannot be reached: {reason}", upstream.authority))
}

/// The rest of an answer. If the cluster goes away in the middle of it, the client hears that it may try again.
struct Rest {
    /// Nothing once it has ended.
    body: Option<Body>,
    stop: BoxFuture<'static, ()>,
}

impl HttpBody for Rest {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let reason = match Pin::new(body).poll_frame(context) {
            Poll::Ready(Some(Err(error))) => format!("the Temporal cluster went away: {error}"),
            Poll::Ready(frame) => return Poll::Ready(frame),
            Poll::Pending => match self.stop.as_mut().poll(context) {
                Poll::Ready(()) => "the server is stopping".to_owned(),
                Poll::Pending => return Poll::Pending,
            },
        };
        self.body = None;
        let mut trailers = HeaderMap::new();
        let told = Status::unavailable(reason).add_header(&mut trailers);
        Poll::Ready(told.is_ok().then(|| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}
