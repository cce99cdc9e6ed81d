//! Where a redirect leads, and what goes along.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, Method, StatusCode};

use super::client::Request;
use super::headers::KEPT_ACROSS_ORIGINS;
use crate::end::Fault;
use crate::url::Scheme;

/// The request that follows, if this answer is a redirect.
///
/// 307 and 308 repeat method and body. 303 says that the request was done and the answer is elsewhere, so that is fetched. 301
/// and 302 are followed for `GET` and `HEAD` only: browsers would turn a `POST` into a `GET`, and a run would count as
/// succeeded though nothing was done.
pub(super) fn next(
    request: &Request,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<Option<Request>, Fault> {
    let is_safe = request.method == Method::GET || request.method == Method::HEAD;
    let is_repeated = match status {
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER => is_safe,
        _ => return Ok(None),
    };
    let Some(location) = headers.get(LOCATION) else { return Ok(None) };
    let refused = |reason: String| Fault::lasting("redirect_refused", format!("status {status}: {reason}"));
    if !is_repeated && status != StatusCode::SEE_OTHER {
        return Err(refused(format!("would turn {} into GET; call the new address itself", request.method)));
    }
    let location = location.to_str().map_err(|_| refused("location is not a url".to_owned()))?;
    let url = request.url.join(location).map_err(|reason| refused(format!("location: {reason}")))?;
    if request.url.scheme == Scheme::Https && url.scheme == Scheme::Http {
        return Err(refused(format!("leads from https to {}", url.origin())));
    }
    let mut next = Request { url, ..request.clone() };
    if next.url.origin() != request.url.origin() {
        let names: Vec<_> = next.headers.keys().cloned().collect();
        for name in names.iter().filter(|name| !KEPT_ACROSS_ORIGINS.contains(&name.as_str())) {
            next.headers.remove(name);
        }
    }
    if !is_repeated {
        next.method = Method::GET;
        next.body = Bytes::new();
        for name in [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION] {
            next.headers.remove(name);
        }
    }
    Ok(Some(next))
}
