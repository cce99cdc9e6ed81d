//! What is checked before any handler: sizes, and who made a browser send this.

use axum::extract::Request;
use axum::http::{HeaderMap, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::limits::{HEADER_BYTES_MAX, URI_BYTES_MAX};
use crate::status::{FOREIGN_ORIGIN, Fault, HEADERS_TOO_LARGE, URI_TOO_LONG, found};

/// Lets a request pass, or refuses it.
pub(super) async fn check(request: Request, next: Next) -> Response {
    match refusal(request.uri(), request.headers()) {
        Some(fault) => fault.into_response(),
        None => next.run(request).await,
    }
}

fn refusal(uri: &Uri, headers: &HeaderMap) -> Option<Fault> {
    let length = uri.path_and_query().map_or(0, |path| path.as_str().len());
    if length > URI_BYTES_MAX {
        let message =
            format!("the path and its query have {length} bytes, at most {URI_BYTES_MAX} are allowed");
        return Some(Fault::new(&URI_TOO_LONG, message));
    }
    let size: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if size > HEADER_BYTES_MAX {
        let message = format!("the headers have {size} bytes, at most {HEADER_BYTES_MAX} are allowed");
        return Some(Fault::new(&HEADERS_TOO_LARGE, message));
    }
    // Browsers say which page a request comes from. Without authentication any page could change schedules.
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let (origin, host) =
        (headers.get(header::ORIGIN)?, text(header::HOST).or(uri.authority().map(|it| it.as_str())));
    let origin = origin.to_str().unwrap_or("something unreadable");
    let from = origin.split_once("://").map(|(_, from)| from);
    let same = from.is_some() && from == host;
    let message = format!("the request comes from a page of {}, expected one of this server", found(origin));
    (!same).then(|| Fault::new(&FOREIGN_ORIGIN, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_other_sites_are_refused() {
        let reason = |origin: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "127.0.0.1:7233".parse().unwrap());
            headers.insert(header::ORIGIN, origin.parse().unwrap());
            refusal(&Uri::from_static("/v1/info"), &headers).map(|fault| fault.reason.word)
        };
        assert_eq!(reason("http://127.0.0.1:7233"), None);
        for origin in ["null", "http://evil.example", "http://127.0.0.1:80", "127.0.0.1:7233"] {
            assert_eq!(reason(origin), Some("foreign_origin"), "{origin}");
        }
        assert_eq!(refusal(&Uri::from_static("/v1/info"), &HeaderMap::new()), None);
    }
}
