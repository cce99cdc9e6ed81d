//! Payloads as bytes: the one place that knows how a payload is kept inside.
//!
//! The bytes are the protobuf form of [`v1::Payload`]. Its first byte is a tag that says whether JSON or plain bytes follow, so
//! that each comes back as what it was; no bytes at all mean that there is no payload.

use std::sync::Arc;

use prost::Message;
use prost_types::value::Kind;
use punctual_actions::Form;
use punctual_api::{json, v1};
use punctual_core::Payload;

use crate::limits::PAYLOAD_BYTES_MAX;
use crate::status::{Fault, PAYLOAD_TOO_LARGE};

/// The bytes of a payload, if one was given.
pub(crate) fn bytes(field: &str, given: Option<&v1::Payload>) -> Result<Option<Payload>, Fault> {
    let Some(payload) = given.filter(|payload| payload.kind.is_some()) else { return Ok(None) };
    let length = payload.encoded_len();
    if length > PAYLOAD_BYTES_MAX {
        let message = format!("has {length} bytes, at most {PAYLOAD_BYTES_MAX} are allowed");
        return Err(Fault::new(&PAYLOAD_TOO_LARGE, message).at(field));
    }
    json::check_payload(payload)
        .map_err(|error| Fault::field(format!("{field}.{}", error.field()), error.message()))?;
    if let Some(v1::payload::Kind::Json(value)) = &payload.kind {
        check(value).map_err(|message| Fault::field(format!("{field}.json"), message))?;
    }
    Ok(Some(payload.encode_to_vec().into()))
}

/// The bytes of a payload, none if there is none.
pub(crate) fn bytes_or_none(field: &str, given: Option<&v1::Payload>) -> Result<Payload, Fault> {
    Ok(bytes(field, given)?.unwrap_or_else(|| Arc::new([])))
}

/// The payload of these bytes. Bytes of another kind, which an embedded engine may have kept, come back as bytes.
pub(crate) fn payload(kept: &[u8]) -> Option<v1::Payload> {
    if kept.is_empty() {
        return None;
    }
    if let Some(payload) = crate::temporal::payloads::seen_by_others(kept) {
        return Some(payload);
    }
    let decoded = v1::Payload::decode(kept).ok().filter(|payload| payload.kind.is_some());
    Some(decoded.unwrap_or_else(|| v1::Payload { kind: Some(v1::payload::Kind::Data(kept.to_vec())) }))
}

/// What a call brought, as it is kept; JSON that a payload cannot hold is kept as bytes.
pub(crate) fn of_call(result: Vec<u8>, form: Form) -> Option<Payload> {
    let as_bytes = |result: Vec<u8>| v1::Payload { kind: Some(v1::payload::Kind::Data(result)) };
    let kept = match form {
        Form::Bytes => as_bytes(result),
        Form::Json | Form::Text => {
            let wrapped = [b"{\"json\":", &result[..], b"}"].concat();
            let read = json::from_json::<v1::Payload>(&wrapped);
            read.ok().filter(|payload| payload.kind.is_some()).unwrap_or_else(|| as_bytes(result))
        }
    };
    bytes("", Some(&kept)).ok().flatten()
}

/// A payload as a call is told it: JSON as text, bytes as they are.
pub(crate) fn plain(kept: &[u8]) -> Option<Vec<u8>> {
    match payload(kept)?.kind? {
        v1::payload::Kind::Data(data) => Some(data),
        v1::payload::Kind::Json(value) => {
            let payload = v1::Payload { kind: Some(v1::payload::Kind::Json(value)) };
            json::to_value(&payload)
                .ok()
                .and_then(|value| value.get("json").map(|json| json.to_string().into_bytes()))
        }
    }
}

/// Refuses what JSON cannot say: it could be kept, but never be shown.
fn check(value: &prost_types::Value) -> Result<(), &'static str> {
    match &value.kind {
        None => Err("a value is missing, expected null, a number, a text, true, false, a list or an object"),
        Some(Kind::NumberValue(number)) if !number.is_finite() => Err("a number is not finite"),
        Some(Kind::NullValue(_) | Kind::NumberValue(_) | Kind::StringValue(_) | Kind::BoolValue(_)) => Ok(()),
        Some(Kind::ListValue(list)) => list.values.iter().try_for_each(check),
        Some(Kind::StructValue(object)) => object.fields.values().try_for_each(check),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_comes_back_as_json_and_bytes_as_bytes() {
        let as_json: v1::Payload = json::from_json(br#"{ "json": { "a": [1, null, "x"] } }"#).unwrap();
        let as_bytes = v1::Payload { kind: Some(v1::payload::Kind::Data(b"{\"a\":1}".to_vec())) };
        for given in [as_json, as_bytes] {
            let kept = bytes("input", Some(&given)).unwrap().unwrap();
            assert_eq!(payload(&kept), Some(given));
        }
        assert_eq!(bytes("input", Some(&v1::Payload::default())).unwrap(), None);
        assert_eq!(payload(&[]), None);
    }

    #[test]
    fn what_could_never_be_shown_is_refused() {
        let number = |number| v1::Payload {
            kind: Some(v1::payload::Kind::Json(prost_types::Value { kind: Some(Kind::NumberValue(number)) })),
        };
        assert_eq!(bytes("input", Some(&number(f64::NAN))).unwrap_err().field, "input.json");
        assert!(bytes("input", Some(&number(1.0))).is_ok());
        let large = v1::Payload { kind: Some(v1::payload::Kind::Data(vec![0; PAYLOAD_BYTES_MAX])) };
        assert_eq!(bytes("input", Some(&large)).unwrap_err().reason.word, "payload_too_large");
    }
}
