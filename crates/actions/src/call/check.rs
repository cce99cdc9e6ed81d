//! Everything that can be refused when a call is asked for, long before it is made.

use std::collections::{BTreeMap, HashSet};

use http::{HeaderName, HeaderValue, Method};

use super::{Call, CommandCall, HttpCall, NexusCall};
use crate::context::Context;
use crate::error::CallError;
use crate::limits::{
    ARGUMENT_BYTES_MAX, ARGUMENTS_MAX, CALL_BYTES_MAX, HEADER_BYTES_MAX, HEADERS_MAX, NAME_BYTES_MAX,
    RETRY_STATUSES_MAX, TEMPLATE_BYTES_MAX, TIMEOUT_MS_MAX, URL_BYTES_MAX, VARIABLES_MAX,
};
use crate::rules::{HOW_TO_PERMIT_COMMANDS, Rules};
use crate::template::{Place, Template};
use crate::url::Url;

/// Headers that belong to the connection or to the client.
const CLIENT_HEADERS: [&str; 12] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers whose meaning we promise.
const OUR_HEADERS: [&str; 3] = ["idempotency-key", "operation-timeout", "request-timeout"];
const OUR_HEADER_PREFIXES: [&str; 2] = ["punctual-", "nexus-"];

impl Call {
    /// Refuses what cannot work or is not permitted, with the field at fault. What depends on the moment of the call, such
    /// as the addresses of a name, is checked then.
    pub fn check(&self, rules: &Rules) -> Result<(), CallError> {
        let length = self.to_json().len();
        if length > CALL_BYTES_MAX {
            let reason = format!("expected at most {CALL_BYTES_MAX} bytes, found {length}");
            return Err(CallError::Malformed { reason });
        }
        match self {
            Call::Http(call) => check_http(call, rules),
            Call::Nexus(call) => check_nexus(call, rules),
            Call::Command(call) => check_command(call, rules),
        }
    }
}

fn check_http(call: &HttpCall, rules: &Rules) -> Result<(), CallError> {
    check_url("url", &call.url, rules)?;
    let method = parse_method(&call.method).map_err(|reason| CallError::invalid("method", reason))?;
    check_headers(&call.headers)?;
    if let Some(body) = &call.body {
        if method == Method::GET || method == Method::HEAD {
            return Err(CallError::invalid("body", format!("expected none with method {method}")));
        }
        check_template("body", body, TEMPLATE_BYTES_MAX)?;
    }
    check_timeout("connect_timeout_ms", call.connect_timeout_ms)?;
    check_timeout("timeout_ms", call.timeout_ms)?;
    at_most("retry_statuses", call.retry_statuses.len(), RETRY_STATUSES_MAX)?;
    match call.retry_statuses.iter().find(|status| !(300..=599).contains(*status)) {
        Some(status) => Err(CallError::invalid(
            "retry_statuses",
            format!("expected statuses from 300 to 599, found {status}"),
        )),
        None => Ok(()),
    }
}

fn check_nexus(call: &NexusCall, rules: &Rules) -> Result<(), CallError> {
    if call.endpoint.contains("{{") {
        return Err(CallError::invalid("endpoint", "expected no template"));
    }
    let url = check_url("endpoint", &call.endpoint, rules)?;
    if url.query.is_some() || call.endpoint.contains('#') {
        return Err(CallError::invalid(
            "endpoint",
            "expected no query and no fragment: a path is added to it",
        ));
    }
    for (field, name) in [("service", &call.service), ("operation", &call.operation)] {
        if name.is_empty() || name == "." || name == ".." {
            return Err(CallError::invalid(field, format!("expected a name, found {name:?}")));
        }
        at_most(field, name.len(), NAME_BYTES_MAX)?;
    }
    check_headers(&call.headers)?;
    if let Some(input) = &call.input {
        check_template("input", input, TEMPLATE_BYTES_MAX)?;
    }
    check_timeout("operation_timeout_ms", call.operation_timeout_ms)?;
    check_timeout("timeout_ms", call.timeout_ms)
}

fn check_command(call: &CommandCall, rules: &Rules) -> Result<(), CallError> {
    if !rules.allow_commands {
        let reason = format!("commands are not permitted here; {HOW_TO_PERMIT_COMMANDS}");
        return Err(CallError::Forbidden { reason });
    }
    let program = call.argv.first().map_or("", |program| program.as_str());
    if program.is_empty() {
        return Err(CallError::invalid("argv", "expected a program, found nothing"));
    }
    at_most("argv", call.argv.len(), ARGUMENTS_MAX)?;
    for (index, word) in call.argv.iter().enumerate() {
        let field = format!("argv[{index}]");
        let template = check_template(&field, word, ARGUMENT_BYTES_MAX)?;
        // Which program runs is decided when the call is asked for, not by the input of a run.
        if index == 0 && !template.is_literal() {
            return Err(CallError::invalid(field, "expected a program without templates"));
        }
        no_null(&field, word)?;
    }
    at_most("env", call.env.len(), VARIABLES_MAX)?;
    for (name, value) in &call.env {
        let field = format!("env.{name}");
        if name.is_empty() || name.contains('=') || name.starts_with("PUNCTUAL_") {
            let reason = "expected a name without =, and not beginning with PUNCTUAL_";
            return Err(CallError::invalid(field, reason));
        }
        no_null(&field, name)?;
        no_null(&field, value)?;
        check_template(&field, value, ARGUMENT_BYTES_MAX)?;
    }
    if let Some(cwd) = &call.cwd {
        if !std::path::Path::new(cwd).is_absolute() {
            return Err(CallError::invalid("cwd", format!("expected a path from the root, found {cwd:?}")));
        }
        no_null("cwd", cwd)?;
    }
    check_timeout("timeout_ms", call.timeout_ms)
}

fn check_url(field: &str, text: &str, rules: &Rules) -> Result<Url, CallError> {
    let template = check_template(field, text, URL_BYTES_MAX)?;
    // The host is known when the call is asked for: calls share places by it, and no input leads them elsewhere.
    let host_begins = text.find("://").map_or(0, |colon| colon + 3);
    let host_ends =
        text[host_begins..].find(['/', '?', '#']).map_or(text.len(), |length| host_begins + length);
    if let Some(position) = text[..host_ends].find("{{") {
        return Err(CallError::invalid(
            field,
            format!("byte {position}: expected templates behind the host only"),
        ));
    }
    let sample = template
        .fill(&Context::default(), Place::Url, URL_BYTES_MAX)
        .map_err(|reason| CallError::invalid(field, reason))?;
    let url = Url::parse(&sample).map_err(|reason| CallError::invalid(field, reason))?;
    match url.refusal(rules) {
        Some(reason) => Err(CallError::AddressRefused { field: field.to_owned(), reason }),
        None => Ok(url),
    }
}

/// A method that may be asked for.
pub(crate) fn parse_method(text: &str) -> Result<Method, String> {
    let expected = || format!("expected a method such as POST, found {text:?}");
    if text.is_empty() || text.len() > 32 || text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        return Err(expected());
    }
    let method = Method::from_bytes(text.as_bytes()).map_err(|_| expected())?;
    if method == Method::CONNECT || method == Method::TRACE {
        return Err(expected());
    }
    Ok(method)
}

fn check_headers(headers: &BTreeMap<String, String>) -> Result<(), CallError> {
    at_most("headers", headers.len(), HEADERS_MAX)?;
    let mut seen = HashSet::new();
    for (name, value) in headers {
        let field = format!("headers.{name}");
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| CallError::invalid(&field, format!("expected a header's name, found {name:?}")))?;
        let name = parsed.as_str();
        if CLIENT_HEADERS.contains(&name) {
            return Err(CallError::invalid(field, "is set by the client itself"));
        }
        if OUR_HEADERS.contains(&name) || OUR_HEADER_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
            return Err(CallError::invalid(field, "is set by punctual itself"));
        }
        if !seen.insert(parsed.clone()) {
            return Err(CallError::invalid(field, "expected each header once, found it in two spellings"));
        }
        check_template(&field, value, HEADER_BYTES_MAX)?;
        HeaderValue::from_str(value)
            .map_err(|_| CallError::invalid(field, "expected a value of visible ASCII letters and spaces"))?;
    }
    Ok(())
}

fn check_template<'text>(
    field: &str,
    text: &'text str,
    bytes_max: usize,
) -> Result<Template<'text>, CallError> {
    at_most(field, text.len(), bytes_max)?;
    Template::parse(text).map_err(|reason| CallError::invalid(field, reason))
}

fn check_timeout(field: &str, timeout_ms: Option<u64>) -> Result<(), CallError> {
    match timeout_ms {
        Some(found) if !(1..=TIMEOUT_MS_MAX).contains(&found) => Err(CallError::invalid(
            field,
            format!("expected 1 to {TIMEOUT_MS_MAX} milliseconds, found {found}"),
        )),
        Some(_) | None => Ok(()),
    }
}

fn at_most(field: &str, found: usize, max: usize) -> Result<(), CallError> {
    if found > max {
        return Err(CallError::invalid(field, format!("expected at most {max}, found {found}")));
    }
    Ok(())
}

fn no_null(field: &str, text: &str) -> Result<(), CallError> {
    match text.find('\0') {
        Some(position) => Err(CallError::invalid(field, format!("byte {position}: expected no null byte"))),
        None => Ok(()),
    }
}
