//! Payloads of Temporal beside payloads of ours: the one place that knows both.
//!
//! What came from a Temporal client is kept as it came, behind a byte that no payload of ours begins with. Workers of ours see
//! it as JSON where it is JSON; workers of Temporal see payloads of ours as the payloads that they would have sent.

use prost::Message;
use punctual_api::{json, v1};
use punctual_core::Payload;
use serde_json::value::RawValue;

use super::wire::common::{Payload as Wire, Payloads};

/// No protobuf message begins with it: zero is no number of a field.
const MARK: u8 = 0;

const ENCODING: &str = "encoding";
const JSON: &[u8] = b"json/plain";
const BINARY: &[u8] = b"binary/plain";

/// Payloads as they are kept; no bytes if there are none.
pub(crate) fn keep(payloads: &Payloads) -> Payload {
    if payloads.payloads.is_empty() {
        return Payload::from([]);
    }
    let mut bytes = vec![MARK];
    bytes.extend(payloads.encode_to_vec());
    bytes.into()
}

/// What is kept, as Temporal's clients and workers read it.
pub(crate) fn read(kept: &[u8]) -> Payloads {
    if let Some((&MARK, bytes)) = kept.split_first() {
        return Payloads::decode(bytes).unwrap_or_default();
    }
    let payload = match crate::convert::payload::payload(kept).and_then(|payload| payload.kind) {
        None => return Payloads::default(),
        Some(v1::payload::Kind::Data(data)) => encoded(BINARY, data),
        Some(v1::payload::Kind::Json(_)) => {
            encoded(JSON, crate::convert::payload::plain(kept).unwrap_or_default())
        }
    };
    Payloads { payloads: vec![payload] }
}

fn encoded(encoding: &[u8], data: Vec<u8>) -> Wire {
    let metadata = [(ENCODING.to_owned(), encoding.to_vec())].into();
    Wire { metadata, data: data.into(), ..Wire::default() }
}

/// What a Temporal client sent, as our own workers see it; nothing if it is a payload of ours.
///
/// One argument in JSON is that JSON, several are a list, and what is not JSON is the bytes that came.
pub(crate) fn seen_by_others(kept: &[u8]) -> Option<v1::Payload> {
    let (&MARK, bytes) = kept.split_first()? else { return None };
    let data = |bytes: &[u8]| v1::Payload { kind: Some(v1::payload::Kind::Data(bytes.to_vec())) };
    let Ok(payloads) = Payloads::decode(bytes) else { return Some(data(bytes)) };
    let texts: Option<Vec<&str>> = payloads.payloads.iter().map(as_json).collect();
    let joined = texts.map(|texts| match texts.as_slice() {
        [one] => (*one).to_owned(),
        several => format!("[{}]", several.join(",")),
    });
    let read = joined.and_then(|text| json::from_json(format!("{{\"json\":{text}}}").as_bytes()).ok());
    Some(read.unwrap_or_else(|| match payloads.payloads.as_slice() {
        [one] if one.metadata.get(ENCODING).is_some_and(|encoding| encoding == BINARY) => data(&one.data),
        _ => data(bytes),
    }))
}

fn as_json(payload: &Wire) -> Option<&str> {
    match payload.metadata.get(ENCODING)?.as_slice() {
        b"json/plain" => {
            let text = std::str::from_utf8(&payload.data).ok()?;
            serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get)
        }
        b"binary/null" => Some("null"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(payloads: Vec<Wire>) -> Payload {
        keep(&Payloads { payloads })
    }

    fn shown(kept: &[u8]) -> String {
        crate::convert::payload::plain(kept)
            .map(|plain| String::from_utf8_lossy(&plain).into())
            .unwrap_or_default()
    }

    #[test]
    fn payloads_come_back_byte_for_byte() {
        let odd = Wire {
            metadata: [("encoding".into(), b"odd".to_vec())].into(),
            data: vec![0, 255].into(),
            ..Wire::default()
        };
        let payloads = Payloads { payloads: vec![encoded(JSON, b"{}".to_vec()), odd] };
        assert_eq!(read(&keep(&payloads)), payloads);
        assert!(keep(&Payloads::default()).is_empty());
    }

    #[test]
    fn our_workers_see_json_as_json() {
        let json = |text: &str| encoded(JSON, text.as_bytes().to_vec());
        assert_eq!(shown(&of(vec![json(r#"{"a": 1}"#)])), r#"{"a":1}"#);
        assert_eq!(shown(&of(vec![json("1"), json("\"two\"")])), r#"[1,"two"]"#);
        let null =
            Wire { metadata: [("encoding".into(), b"binary/null".to_vec())].into(), ..Wire::default() };
        assert_eq!(shown(&of(vec![null])), "null");
        assert_eq!(shown(&of(vec![encoded(BINARY, b"raw".to_vec())])), "raw");
        assert_eq!(shown(&of(vec![json("no json")])).as_bytes()[0], 10, "the bytes that came");
    }

    #[test]
    fn their_workers_see_ours_as_theirs() {
        let ours: v1::Payload = json::from_json(br#"{ "json": { "a": 1 } }"#).unwrap();
        let kept = crate::convert::payload::bytes("input", Some(&ours)).unwrap().unwrap();
        assert_eq!(read(&kept).payloads, [encoded(JSON, br#"{"a":1}"#.to_vec())]);
        assert_eq!(read(&[]), Payloads::default());
    }
}
