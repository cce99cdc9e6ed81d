//! One HTTP request, with the redirects that it follows.

use std::fmt::Write;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use jiff::Timestamp;

use super::client::{Answer, Ending, Request};
use super::headers::{self, CALLBACK_TOKEN_HEADER, CALLBACK_URL_HEADER, IDEMPOTENCY_KEY_HEADER};
use super::{Caller, Deadline, failed, redirect, timeout_of};
use crate::call::{HttpCall, parse_method};
use crate::context::Context;
use crate::end::{End, Fault, result_of};
use crate::limits::{REFUSAL_BYTES_MAX, REFUSAL_WAIT, REQUEST_BYTES_MAX, URL_BYTES_MAX};
use crate::retry_after::retry_after;
use crate::stop::StopSignal;
use crate::template::{Place, Template};
use crate::url::Url;

impl Caller {
    pub(super) async fn http(&self, call: &HttpCall, context: &Context, stop: &StopSignal) -> End {
        let mut log = String::new();
        let deadline = Deadline::after(timeout_of(call.timeout_ms, self.rules.timeout));
        let ended = tokio::select! {
            biased;
            ended = self.follow(call, context, deadline, &mut log) => ended,
            () = stop.stopped() => return End::Cancelled,
        };
        match ended {
            Ok(Some((body, content_type))) => {
                let (result, form) = result_of(body, content_type.as_deref());
                End::Done { result, form, log }
            }
            Ok(None) => End::Accepted { token: None, log },
            Err(fault) => failed(fault, log),
        }
    }

    /// The body of a success and what it is called; none if the call was accepted.
    async fn follow(
        &self,
        call: &HttpCall,
        context: &Context,
        deadline: Deadline,
        log: &mut String,
    ) -> Result<Option<(Vec<u8>, Option<String>)>, Fault> {
        let redirects_max = call.redirects_max.unwrap_or(u32::MAX).min(self.rules.redirects_max);
        let connect_timeout = timeout_of(call.connect_timeout_ms, self.rules.connect_timeout);
        let mut request = request(call, context)?;
        let mut redirects = 0;
        loop {
            let answer = self.send(&request, connect_timeout, deadline, log).await?;
            if redirects_max > 0
                && let Some(next) = redirect::next(&request, answer.status, &answer.headers)?
            {
                redirects += 1;
                if redirects > redirects_max {
                    let message = format!("more than {redirects_max} redirects");
                    return Err(Fault::lasting("redirects_exceeded", message));
                }
                request = next;
                continue;
            }
            return match answer.status {
                StatusCode::ACCEPTED => {
                    // Read, so that the connection can be used again.
                    explanation(answer, deadline).await;
                    Ok(None)
                }
                status if status.is_success() => {
                    success(answer, self.rules.response_bytes_max, deadline).await.map(Some)
                }
                _ => Err(refusal(answer, &call.retry_statuses, deadline).await),
            };
        }
    }

    /// One request within the time that is left, with a line in the log.
    pub(super) async fn send(
        &self,
        request: &Request,
        connect_timeout: Duration,
        deadline: Deadline,
        log: &mut String,
    ) -> Result<Answer, Fault> {
        let _ = write!(log, "{} {}", request.method, request.url.shown());
        let sent = deadline.keep(self.client.send(request, connect_timeout)).await.and_then(|answer| answer);
        let _ = match &sent {
            Ok(answer) => writeln!(log, ": {}", answer.status.as_u16()),
            Err(fault) => writeln!(log, ": {}", fault.kind),
        };
        sent
    }
}

fn request(call: &HttpCall, context: &Context) -> Result<Request, Fault> {
    let invalid = |field: &str, reason: String| Fault::lasting("call_invalid", format!("{field}: {reason}"));
    let method = parse_method(&call.method).map_err(|reason| invalid("method", reason))?;
    let url = Template::parse(&call.url)
        .and_then(|template| template.fill(context, Place::Url, URL_BYTES_MAX))
        .and_then(|url| Url::parse(&url))
        .map_err(|reason| invalid("url", reason))?;
    let usually_has_body = method == Method::POST || method == Method::PUT || method == Method::PATCH;
    let body = match &call.body {
        Some(template) => body(template, context).map_err(|reason| invalid("body", reason))?,
        None if usually_has_body => Bytes::from(context.default_body()),
        None => Bytes::new(),
    };
    let mut headers = headers::of(&call.headers, context, !body.is_empty())?;
    headers::set(&mut headers, IDEMPOTENCY_KEY_HEADER, &context.idempotency_key);
    if let Some(callback_url) = &context.callback_url {
        headers::set(&mut headers, CALLBACK_URL_HEADER, callback_url);
    }
    if let Some(callback_token) = &context.callback_token {
        headers::set(&mut headers, CALLBACK_TOKEN_HEADER, callback_token);
    }
    Ok(Request { method, url, headers, body })
}

/// A body from its template.
pub(super) fn body(template: &str, context: &Context) -> Result<Bytes, String> {
    let text = Template::parse(template)?.fill(context, Place::Body, REQUEST_BYTES_MAX)?;
    Ok(Bytes::from(text))
}

/// The whole body of an answer that is a result.
pub(super) async fn success(
    answer: Answer,
    bytes_max: usize,
    deadline: Deadline,
) -> Result<(Vec<u8>, Option<String>), Fault> {
    let content_type = answer.content_type();
    let body = deadline.keep(answer.read(bytes_max)).await?;
    match body.ending {
        Ending::Whole => Ok((body.bytes, content_type)),
        // The other side did what it was asked for, and would say the same again.
        Ending::Cut => {
            Err(Fault::lasting("too_large", format!("the answer has more than {bytes_max} bytes")))
        }
        Ending::Lost(reason) => {
            let message = format!("after {} bytes of the answer: {reason}", body.bytes.len());
            Err(Fault::passing("connection_lost", message))
        }
    }
}

/// What there is in time of a body that only explains: what the status says holds without it.
pub(super) async fn explanation(answer: Answer, deadline: Deadline) -> Vec<u8> {
    let read = deadline.keep(answer.read(REFUSAL_BYTES_MAX));
    match tokio::time::timeout(REFUSAL_WAIT, read).await {
        Ok(Ok(body)) => body.bytes,
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}

async fn refusal(answer: Answer, retry_statuses: &[u16], deadline: Deadline) -> Fault {
    let status = answer.status.as_u16();
    let retryable = match retry_statuses {
        [] => matches!(status, 408 | 425 | 429 | 500..=599),
        named => named.contains(&status),
    };
    let wait = if retryable { retry_after(&answer.headers, Timestamp::now()) } else { None };
    let body = explanation(answer, deadline).await;
    let mut fault =
        Fault::new(format!("http_{status}"), retryable, format!("the answer has status {status}"));
    fault.retry_after = wait;
    fault.with_details(&body)
}
