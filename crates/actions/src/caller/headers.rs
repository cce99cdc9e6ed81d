//! The headers of a request: those of the call, and those that say which run it is for.

use std::collections::BTreeMap;

use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::context::Context;
use crate::end::Fault;
use crate::limits::HEADER_BYTES_MAX;
use crate::template::{Place, Template};

/// The same for every attempt of a run, so that the other side can tell a repetition.
pub const IDEMPOTENCY_KEY_HEADER: &str = "idempotency-key";

/// Where the end of an accepted call is to be reported.
pub const CALLBACK_URL_HEADER: &str = "punctual-callback-url";

/// What a report must bring along; a Nexus operation returns it under this name by itself.
pub const CALLBACK_TOKEN_HEADER: &str = "punctual-callback-token";

/// Headers that a redirect to another origin keeps: they are no secrets. Everything else may be one, whatever its name.
pub(super) const KEPT_ACROSS_ORIGINS: [&str; 9] = [
    "accept",
    "accept-language",
    "content-type",
    "user-agent",
    IDEMPOTENCY_KEY_HEADER,
    "punctual-attempt",
    "punctual-nominal-time",
    "punctual-run-id",
    "punctual-schedule-id",
];

const AGENT: &str = concat!("punctual/", env!("CARGO_PKG_VERSION"));

/// The headers of the call, filled in, and those that say which run it is for.
pub(super) fn of(
    templates: &BTreeMap<String, String>,
    context: &Context,
    has_body: bool,
) -> Result<HeaderMap, Fault> {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    if has_body {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    for (name, template) in templates {
        let refused = |reason: String| Fault::lasting("call_invalid", format!("headers.{name}: {reason}"));
        let value = Template::parse(template)
            .and_then(|template| template.fill(context, Place::Plain, HEADER_BYTES_MAX))
            .map_err(refused)?;
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| refused(error.to_string()))?;
        let value = HeaderValue::from_bytes(value.as_bytes())
            .map_err(|_| refused("expected no control characters once filled in".to_owned()))?;
        headers.insert(name, value);
    }
    set(&mut headers, "punctual-run-id", &context.run_id);
    set(&mut headers, "punctual-schedule-id", &context.schedule_id);
    set(&mut headers, "punctual-attempt", &context.attempt.to_string());
    if let Some(nominal_time) = &context.nominal_time {
        set(&mut headers, "punctual-nominal-time", nominal_time);
    }
    Ok(headers)
}

/// Sets a header of ours. What cannot stand in one, as in the id of a schedule, is percent-encoded.
pub(super) fn set(headers: &mut HeaderMap, name: &'static str, value: &str) {
    let mut shown = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_graphic() || byte == b' ' {
            shown.push(byte as char);
        } else {
            shown.push_str(&format!("%{byte:02X}"));
        }
    }
    let value =
        HeaderValue::from_str(&shown).expect("visible ASCII letters and spaces may stand in a header");
    headers.insert(HeaderName::from_static(name), value);
}
