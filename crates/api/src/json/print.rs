//! Messages to JSON.

use prost::{Message, Name};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, SerializeOptions};
use serde_json::{Map, Value};

use super::{JsonError, mask};
use crate::descriptors;

/// Whole numbers up to this are exact as doubles.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Prints a message. It fails only for a message that the contract does not allow: a time out of range, a number that is
/// none, a payload that is nested too deeply.
///
/// ```
/// use punctual_api::{json, v1};
/// let counters = v1::Counters { started: 7, ..Default::default() };
/// assert!(json::to_json(&counters)?.contains(r#""started":7"#));
/// # Ok::<(), json::JsonError>(())
/// ```
pub fn to_json<M: Message + Name>(message: &M) -> Result<String, JsonError> {
    to_value(message).map(|value| value.to_string())
}

/// The same as a value.
///
/// ```
/// use punctual_api::{json, v1};
/// let cron = v1::Cron { text: "@daily".into(), dialect: v1::dialect::Name::Unix.into() };
/// assert_eq!(json::to_value(&cron)?, serde_json::json!({ "text": "@daily", "dialect": "unix" }));
/// # Ok::<(), json::JsonError>(())
/// ```
pub fn to_value<M: Message + Name>(message: &M) -> Result<Value, JsonError> {
    let descriptor = descriptors::message::<M>();
    let fault = |error: String| JsonError::new("", error);
    let dynamic = DynamicMessage::decode(descriptor.clone(), &message.encode_to_vec()[..])
        .map_err(|error| fault(error.to_string()))?;
    let options = SerializeOptions::new().use_proto_field_name(true).stringify_64_bit_integers(false);
    let mut value = dynamic
        .serialize_with_options(serde_json::value::Serializer, &options)
        .map_err(|error| fault(error.to_string()))?;
    finish(&descriptor, &mut value);
    if let Some(object) = value.as_object_mut() {
        for field in descriptor.fields().filter(FieldDescriptor::is_list) {
            object.entry(field.name()).or_insert_with(|| Value::Array(Vec::new()));
        }
    }
    Ok(value)
}

/// Adds plain zeros, and writes whole numbers and masks as people do.
fn finish(descriptor: &MessageDescriptor, value: &mut Value) {
    match (descriptor.full_name(), value) {
        ("google.protobuf.Value" | "google.protobuf.Struct" | "google.protobuf.ListValue", value) => {
            whole(value);
        }
        ("google.protobuf.FieldMask", Value::String(paths)) => *paths = mask::snake(paths),
        (name, Value::Object(object)) if !name.starts_with("google.protobuf.") => {
            for field in descriptor.fields() {
                finish_field(&field, object);
            }
        }
        _ => {}
    }
}

fn finish_field(field: &FieldDescriptor, object: &mut Map<String, Value>) {
    match (object.get_mut(field.name()), field.kind()) {
        (Some(Value::Array(items)), Kind::Message(inner)) if field.is_list() => {
            items.iter_mut().for_each(|item| finish(&inner, item));
        }
        // The maps of the contract hold texts and numbers, which need no finish.
        (Some(_), Kind::Message(_)) if field.is_map() => {}
        (Some(value), Kind::Message(inner)) => finish(&inner, value),
        (None, kind) if !field.supports_presence() && !field.is_list() => {
            let zero = match kind {
                Kind::Bool => Value::Bool(false),
                Kind::String | Kind::Bytes | Kind::Enum(_) | Kind::Message(_) => return,
                _ => Value::from(0),
            };
            object.insert(field.name().to_owned(), zero);
        }
        _ => {}
    }
}

/// Doubles that are whole numbers lose their `.0`.
fn whole(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|double| double.fract() == 0.0 && double.abs() <= EXACT_MAX);
            if let Some(whole) = whole.filter(|_| number.is_f64()) {
                *value = Value::from(whole as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole),
        Value::Object(object) => object.values_mut().for_each(whole),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}
