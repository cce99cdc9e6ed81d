//! One request message from the path, the query and the body of an HTTP request.

use prost::{Message, Name};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};
use serde_json::json;

use super::{JsonError, is_text, read, read_value, typed};
use crate::descriptors;

/// Merges path, query and body, all of them decoded, into the request message.
///
/// Fields of the path may stand in the body too, if they say the same; those of the query may not. A name of the query
/// may be dotted, for fields of fields, and may be repeated for lists.
///
/// ```
/// use punctual_api::{json, v1};
///
/// let path = [("namespace", "default"), ("schedule_id", "nightly")];
/// let body = br#"{ "note": "holidays" }"#;
/// let pause: v1::PauseScheduleRequest = json::request(path, [("request_id", "r1")], body)?;
/// assert_eq!((pause.schedule_id.as_str(), pause.note.as_str()), ("nightly", "holidays"));
/// # Ok::<(), json::JsonError>(())
/// ```
pub fn request<M: Message + Name + Default>(
    path: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<str>)>,
    query: impl IntoIterator<Item = (impl AsRef<str>, impl AsRef<str>)>,
    body: &[u8],
) -> Result<M, JsonError> {
    let mut message = read(&descriptors::message::<M>(), body)?;
    let mut grouped: Vec<(String, Vec<String>)> = Vec::new();
    for (name, text) in query {
        let (name, text) = (name.as_ref(), text.as_ref().to_owned());
        match grouped.iter_mut().find(|(known, _)| known == name) {
            Some((_, texts)) => texts.push(text),
            None => grouped.push((name.to_owned(), vec![text])),
        }
    }
    for (name, texts) in grouped {
        set(&mut message, &name, &name, &texts, Rule::Absent)?;
    }
    for (name, text) in path {
        set(&mut message, name.as_ref(), name.as_ref(), &[text.as_ref().to_owned()], Rule::Equal)?;
    }
    typed(&message)
}

/// What a field may be before it is set.
#[derive(Clone, Copy)]
enum Rule {
    Absent,
    Equal,
}

/// Sets the field of a dotted name; `rest` is the part of the name below this message.
fn set(
    message: &mut DynamicMessage,
    name: &str,
    rest: &str,
    texts: &[String],
    rule: Rule,
) -> Result<(), JsonError> {
    let (first, below) = rest.split_once('.').map_or((rest, None), |(first, below)| (first, Some(below)));
    let descriptor = prost_reflect::ReflectMessage::descriptor(message);
    let field = descriptor.get_field_by_name(first);
    let field =
        field.ok_or_else(|| JsonError::new(name, format!("unknown field of {}", descriptor.name())))?;
    if let Some(below) = below {
        let inner = message.get_field_mut(&field).as_message_mut();
        let inner = inner.ok_or_else(|| JsonError::new(name, format!("{first} has no fields")))?;
        return set(inner, name, below, texts, rule);
    }
    let value = value(&descriptor, &field, name, texts)?;
    if message.has_field(&field) {
        match rule {
            Rule::Equal if *message.get_field(&field) == value => {}
            Rule::Equal => return Err(JsonError::new(name, "differs between the path and the rest")),
            Rule::Absent => return Err(JsonError::new(name, "is given in the query and in the body")),
        }
    }
    message.set_field(&field, value);
    Ok(())
}

/// Reads texts as the body would: there, too, numbers may be text.
fn value(
    parent: &MessageDescriptor,
    field: &FieldDescriptor,
    name: &str,
    texts: &[String],
) -> Result<Value, JsonError> {
    let read_one = |text: &String| match field.kind() {
        Kind::Bool => match text.as_str() {
            "true" => Ok(json!(true)),
            "false" => Ok(json!(false)),
            other => Err(JsonError::new(name, format!("`{other}` is no boolean, expected true or false"))),
        },
        Kind::Message(inner) if !is_text(&inner) => {
            Err(JsonError::new(name, format!("a {} cannot be given as one text", inner.name())))
        }
        _ => Ok(json!(text)),
    };
    let values = texts.iter().map(read_one).collect::<Result<Vec<_>, _>>()?;
    let value = match (field.is_list(), &values[..]) {
        (true, _) => json!(values),
        (false, [only]) => only.clone(),
        (false, _) => return Err(JsonError::new(name, "is given more than once")),
    };
    let message = read_value(parent, &json!({ field.name(): value }))
        .map_err(|error| JsonError { field: name.to_owned(), ..error })?;
    Ok(message.get_field(field).into_owned())
}
