//! Payloads: JSON that people give and read.

use std::fs::File;
use std::io::{self, Read};

use anyhow::{Context, Result, ensure};
use punctual_api::{json, v1};
use serde_json::Value;

use crate::fault;
use crate::limits::INPUT_BYTES_MAX;

/// Whole numbers beyond this are not exact as doubles, and the wire has no others.
const EXACT_MAX: u64 = 1 << 53;

/// The bytes that the value of an option means: itself, `@file`, or `-` for stdin.
pub fn bytes_of(option: &str, text: &str) -> Result<Vec<u8>> {
    let read = |source: &mut dyn Read| -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        source.take(INPUT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
        ensure!(bytes.len() <= INPUT_BYTES_MAX, "input has more than {INPUT_BYTES_MAX} bytes");
        Ok(bytes)
    };
    Ok(match (text, text.strip_prefix('@')) {
        ("-", _) => read(&mut io::stdin().lock()).with_context(|| format!("{option} -"))?,
        (_, Some(path)) => {
            let place = || format!("{option} {text}");
            read(&mut File::open(path).with_context(place)?).with_context(place)?
        }
        (_, None) => text.as_bytes().to_vec(),
    })
}

/// Reads the value of an option: JSON, `@file`, or `-` for stdin.
pub fn from_option(option: &str, text: &str) -> Result<v1::Payload> {
    let bytes = bytes_of(option, text)?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
        fault::new(
            format!("{option} is not JSON: {error}"),
            "write it as '{\"customer\": 7}', as @file, or as - to read stdin",
        )
    })?;
    from_value(&value).with_context(|| option.to_owned())
}

/// A payload with a JSON value, if the wire can carry it exactly.
pub fn from_value(value: &Value) -> Result<v1::Payload> {
    ensure!(
        is_exact(value),
        fault::new(
            "a whole number beyond 9007199254740992 would be rounded on its way",
            "write it as text, in quotes"
        )
    );
    let payload: v1::Payload = json::from_json(format!("{{\"json\":{value}}}").as_bytes())?;
    json::check_payload(&payload)?;
    Ok(payload)
}

fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(size), _) => size <= EXACT_MAX,
            (None, Some(size)) => size.unsigned_abs() <= EXACT_MAX,
            (None, None) => true,
        },
        Value::Array(values) => values.iter().all(is_exact),
        Value::Object(values) => values.values().all(is_exact),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

/// The value inside of a payload; bytes have none.
pub fn to_value(payload: &v1::Payload) -> Option<Value> {
    match payload.kind {
        Some(v1::payload::Kind::Json(_)) => {
            json::to_value(payload).ok().and_then(|mut value| value.get_mut("json").map(Value::take))
        }
        Some(v1::payload::Kind::Data(_)) | None => None,
    }
}

/// The bytes that a command reads on stdin.
pub fn to_bytes(payload: Option<&v1::Payload>) -> Vec<u8> {
    match payload.and_then(|payload| payload.kind.as_ref()) {
        Some(v1::payload::Kind::Data(bytes)) => bytes.clone(),
        Some(v1::payload::Kind::Json(_)) => {
            payload.and_then(to_value).map(|value| value.to_string().into_bytes()).unwrap_or_default()
        }
        None => Vec::new(),
    }
}

/// A payload on one line, cut where it gets long.
pub fn text(payload: &v1::Payload) -> String {
    const CHARS_MAX: usize = 200;
    let text = match &payload.kind {
        Some(v1::payload::Kind::Data(bytes)) => return format!("{} bytes", bytes.len()),
        Some(v1::payload::Kind::Json(_)) => to_value(payload).unwrap_or_default().to_string(),
        None => return String::new(),
    };
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_comes_back_as_it_was() {
        for text in ["null", "[1,2.5,\"a\"]", "{\"a\":{\"b\":[]}}", "9007199254740992", "\"x\"", "-1"] {
            let payload = from_option("--input", text).unwrap();
            assert_eq!(String::from_utf8(to_bytes(Some(&payload))).unwrap(), text);
        }
        assert_eq!(to_bytes(None), b"");
    }

    #[test]
    fn what_would_change_on_the_way_is_refused() {
        for text in ["9007199254740993", "[-9007199254740993]", "{a: 1}", "", "{\"a\":1} x", "@missing.json"]
        {
            assert!(from_option("--input", text).is_err(), "{text}");
        }
        let deep = format!("{}{}", "[".repeat(25), "]".repeat(25));
        assert!(from_option("--input", &deep).is_err());
    }
}
