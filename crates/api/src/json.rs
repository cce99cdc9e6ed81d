//! The contract as JSON: protobuf's own mapping with the field names of the `.proto` files, done by reflection.
//!
//! Fields are in snake case and enums are words in lower case. Unknown fields and words are refused by name. Numbers of 64
//! bits are printed as numbers and read as numbers or text. What has its default is left out, except plain numbers and
//! booleans, and the lists of the outermost message: those are always there.

use std::fmt;

use prost::{Message, Name};
use prost_reflect::{DeserializeOptions, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::Value;
use serde_path_to_error::{Path, Segment, Track};

use crate::descriptors;
use crate::v1;

mod mask;
mod print;
mod request;

pub use print::{to_json, to_value};
pub use request::request;

/// Brackets inside of brackets of a text. Protobuf has a bound too, but counts up to three for each of these.
pub const NESTING_MAX: usize = 32;

/// Levels of a JSON payload, so that it fits into every message that hands it on.
pub const PAYLOAD_NESTING_MAX: usize = 24;

/// Why a text is not the message that was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    message: String,
    field: String,
    position: Option<(usize, usize)>,
}

impl JsonError {
    fn new(field: impl Into<String>, message: impl Into<String>) -> JsonError {
        JsonError { message: message.into(), field: field.into(), position: None }
    }

    /// What was expected and what was found, without field and position.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The field at fault, such as `schedule.spec.crons[0].dialect`; empty if the text as a whole is.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Line and column in the body, counted from one; nothing for path and query.
    pub fn position(&self) -> Option<(usize, usize)> {
        self.position
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)?;
        match self.position {
            Some((line, column)) => write!(f, " at line {line} column {column}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for JsonError {}

/// Reads a message.
///
/// ```
/// use punctual_api::{json, v1};
///
/// let cron: v1::Cron = json::from_json(br#"{ "text": "@daily", "dialect": "unix" }"#)?;
/// assert_eq!(cron.dialect(), v1::dialect::Name::Unix);
///
/// let error = json::from_json::<v1::Cron>(br#"{ "txt": "@daily" }"#).unwrap_err();
/// assert_eq!(error.to_string(), "txt: unknown field of Cron at line 1 column 7");
/// # Ok::<(), json::JsonError>(())
/// ```
pub fn from_json<M: Message + Name + Default>(text: &[u8]) -> Result<M, JsonError> {
    typed(&read(&descriptors::message::<M>(), text)?)
}

/// Refuses a payload that would not fit into every message that hands it on.
///
/// ```
/// use punctual_api::{json, v1};
/// let payload: v1::Payload = json::from_json(br#"{ "json": [[1], { "a": [2] }] }"#)?;
/// json::check_payload(&payload)?;
/// # Ok::<(), json::JsonError>(())
/// ```
pub fn check_payload(payload: &v1::Payload) -> Result<(), JsonError> {
    match &payload.kind {
        Some(v1::payload::Kind::Json(value)) if levels(value) > PAYLOAD_NESTING_MAX => {
            Err(JsonError::new("json", format!("is nested more than {PAYLOAD_NESTING_MAX} levels deep")))
        }
        Some(v1::payload::Kind::Json(_) | v1::payload::Kind::Data(_)) | None => Ok(()),
    }
}

fn levels(value: &prost_types::Value) -> usize {
    use prost_types::value::Kind::{ListValue, StructValue};
    match &value.kind {
        Some(ListValue(list)) => 1 + list.values.iter().map(levels).max().unwrap_or(0),
        Some(StructValue(object)) => 1 + object.fields.values().map(levels).max().unwrap_or(0),
        _ => 0,
    }
}

/// Reads a message of this kind; nothing at all is the empty message.
fn read(descriptor: &MessageDescriptor, text: &[u8]) -> Result<DynamicMessage, JsonError> {
    if text.trim_ascii().is_empty() {
        return Ok(DynamicMessage::new(descriptor.clone()));
    }
    check_nesting(text)?;
    let text = str::from_utf8(text)
        .map_err(|error| JsonError::new("", format!("invalid UTF-8 after {} bytes", error.valid_up_to())))?;
    let masks = mask::take(descriptor, text);
    let mut reader = serde_json::Deserializer::from_str(&masks.rest);
    let mut track = Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut reader, &mut track);
    let message =
        DynamicMessage::deserialize_with_options(descriptor.clone(), tracked, &DeserializeOptions::new());
    let mut message = message.map_err(|error| explained(descriptor, &track.path(), &error))?;
    reader.end().map_err(|error| positioned("", &error))?;
    masks.put(&mut message)?;
    Ok(message)
}

/// Protobuf counts the depth of messages, so what is nested too deeply is refused here too.
fn typed<M: Message + Default>(message: &DynamicMessage) -> Result<M, JsonError> {
    message.transcode_to().map_err(|error| JsonError::new("", format!("does not fit the contract: {error}")))
}

/// Counts brackets outside of strings. What is no JSON is found later.
fn check_nesting(text: &[u8]) -> Result<(), JsonError> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > NESTING_MAX {
            return Err(JsonError::new("", format!("is nested more than {NESTING_MAX} levels deep")));
        }
    }
    Ok(())
}

/// Takes the position out of the reader's message.
fn positioned(field: &str, error: &serde_json::Error) -> JsonError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let message = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
    let position = (line > 0).then_some((line, column));
    JsonError { position, ..JsonError::new(field, message) }
}

/// Says what was expected, from what the contract says about the field.
fn explained(descriptor: &MessageDescriptor, path: &Path, error: &serde_json::Error) -> JsonError {
    let field = shown(path);
    let (parent, kind) = target(descriptor, path);
    // What is no JSON at all is no field's fault: the position says where.
    if error.classify() != serde_json::error::Category::Data {
        return positioned("", error);
    }
    let mut explained = positioned(&field, error);
    let unknown = explained.message.strip_prefix("unrecognized field name '");
    if let Some(name) = unknown.and_then(|rest| rest.strip_suffix('\'')) {
        let last = field.rsplit('.').next() == Some(name);
        let field = match (last, field.is_empty()) {
            (true, _) => field.clone(),
            (false, true) => name.to_owned(),
            (false, false) => format!("{field}.{name}"),
        };
        let message = format!("unknown field of {}", parent.name());
        return JsonError { field, message, ..explained };
    }
    if let Some(expected) = kind.as_ref().map(expected) {
        let found =
            explained.message.split("expected ").next().unwrap_or_default().trim_end_matches([',', ' ']);
        let found = if found.is_empty() { String::new() } else { format!("{found}, ") };
        explained.message = format!("{found}expected {expected}");
    }
    explained
}

fn shown(path: &Path) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => text.push_str(&format!("[{index}]")),
            Segment::Map { key: name } | Segment::Enum { variant: name } => {
                text.push_str(if text.is_empty() { "" } else { "." });
                text.push_str(name);
            }
            Segment::Unknown => text.push('?'),
        }
    }
    text
}

/// The message that a path ends in, and the kind of value it names, as far as the contract knows it; a list has none.
fn target(descriptor: &MessageDescriptor, path: &Path) -> (MessageDescriptor, Option<Kind>) {
    let (mut message, mut kind, mut is_list) = (descriptor.clone(), None, false);
    for segment in path {
        match segment {
            Segment::Map { key } => {
                let field = message.get_field_by_name(key).or_else(|| message.get_field_by_json_name(key));
                is_list = field.as_ref().is_some_and(FieldDescriptor::is_list);
                kind = field.map(|field| field.kind());
            }
            Segment::Seq { .. } => is_list = false,
            Segment::Enum { .. } | Segment::Unknown => {}
        }
        if let Some(Kind::Message(inner)) = &kind {
            message = inner.clone();
        }
    }
    (message, kind.filter(|_| !is_list))
}

/// What a value of this kind looks like.
fn expected(kind: &Kind) -> String {
    match kind {
        Kind::Enum(words) => {
            let words = words.values().filter(|word| word.number() != 0).map(|word| word.name().to_owned());
            format!("one of {}", words.collect::<Vec<_>>().join(", "))
        }
        Kind::Message(message) => match message.full_name() {
            "google.protobuf.Timestamp" => "an instant such as 2026-03-30T07:00:00Z".into(),
            "google.protobuf.Duration" => "seconds such as 90s or 0.5s".into(),
            "google.protobuf.FieldMask" => "fields such as spec,policies.overlap".into(),
            "google.protobuf.Value" => "any value".into(),
            _ => "an object".into(),
        },
        Kind::Bool => "true or false".into(),
        Kind::String => "a text".into(),
        Kind::Bytes => "bytes in base64".into(),
        Kind::Double | Kind::Float => "a number".into(),
        Kind::Uint32 | Kind::Fixed32 => format!("a whole number from 0 to {}", u32::MAX),
        Kind::Uint64 | Kind::Fixed64 => format!("a whole number from 0 to {}", u64::MAX),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            format!("a whole number from {} to {}", i32::MIN, i32::MAX)
        }
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
            format!("a whole number from {} to {}", i64::MIN, i64::MAX)
        }
    }
}

/// Whether the value of a message is written as one text.
pub(crate) fn is_text(message: &MessageDescriptor) -> bool {
    matches!(
        message.full_name(),
        "google.protobuf.Timestamp" | "google.protobuf.Duration" | "google.protobuf.FieldMask"
    )
}

/// Reads one field from a JSON value, outside of a text.
fn read_value(descriptor: &MessageDescriptor, value: &Value) -> Result<DynamicMessage, JsonError> {
    read(descriptor, value.to_string().as_bytes()).map_err(|error| JsonError { position: None, ..error })
}
