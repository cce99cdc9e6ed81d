//! Schemas of messages, enums and fields, collected as they are met.

use std::collections::BTreeMap;

use prost_reflect::{EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Value, json};

use crate::descriptors::{self, PACKAGE};
use crate::json::is_text;

/// The components met so far, by name.
#[derive(Default)]
pub(super) struct Schemas {
    components: BTreeMap<String, Value>,
}

impl Schemas {
    pub(super) fn into_components(self) -> BTreeMap<String, Value> {
        self.components
    }

    /// A reference to a message of this full name.
    pub(super) fn message_named(&mut self, full_name: &str) -> Value {
        descriptors::pool().get_message_by_name(full_name).map_or(json!({}), |message| self.message(&message))
    }

    /// A reference to a message, or what stands for it in JSON.
    pub(super) fn message(&mut self, message: &MessageDescriptor) -> Value {
        if let Some(schema) = well_known(message.full_name()) {
            return schema;
        }
        let name = component(message.full_name());
        if !self.components.contains_key(&name) {
            // A place is kept, so that a message inside of itself ends here.
            self.components.insert(name.clone(), Value::Null);
            let fields: Vec<_> = message.fields().collect();
            let object = self.object(message, &fields);
            self.components.insert(name.clone(), object);
        }
        reference(&name)
    }

    /// An object with some of a message's fields.
    pub(super) fn object(&mut self, message: &MessageDescriptor, fields: &[FieldDescriptor]) -> Value {
        let properties = fields.iter().map(|field| {
            let mut schema = self.field(field);
            described(&mut schema, message, field.path());
            (field.name().to_owned(), schema)
        });
        let properties: serde_json::Map<String, Value> = properties.collect();
        let mut object = json!({ "type": "object", "properties": properties, "additionalProperties": false });
        described(&mut object, message, message.path());
        for oneof in message.oneofs().filter(|oneof| !oneof.is_synthetic()) {
            let names = oneof.fields().map(|field| format!("`{}`", field.name())).collect::<Vec<_>>();
            let comment = object["description"].as_str().unwrap_or_default();
            object["description"] = json!(format!("{comment}\n\nAt most one of {}.", names.join(", ")));
        }
        object
    }

    /// The schema of a field's value.
    pub(super) fn field(&mut self, field: &FieldDescriptor) -> Value {
        if let Kind::Message(entry) = field.kind()
            && field.is_map()
        {
            let values = self.field(&entry.map_entry_value_field());
            return json!({ "type": "object", "additionalProperties": values });
        }
        let schema = match field.kind() {
            Kind::Message(message) => self.message(&message),
            Kind::Enum(words) => self.words(&words),
            Kind::Bool => json!({ "type": "boolean" }),
            Kind::String => json!({ "type": "string" }),
            Kind::Bytes => json!({ "type": "string", "contentEncoding": "base64" }),
            Kind::Float | Kind::Double => json!({ "type": "number" }),
            Kind::Uint32 | Kind::Fixed32 => {
                json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
            }
            Kind::Uint64 | Kind::Fixed64 => json!({ "type": "integer", "format": "int64", "minimum": 0 }),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => json!({ "type": "integer", "format": "int32" }),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => json!({ "type": "integer", "format": "int64" }),
        };
        if field.is_list() { json!({ "type": "array", "items": schema }) } else { schema }
    }

    /// A reference to the words of an enum; "not given" is no word.
    fn words(&mut self, words: &EnumDescriptor) -> Value {
        let name = component(words.full_name());
        let file = words.parent_file();
        let known = || words.values().filter(|word| word.number() != 0);
        let lines = known().map(|word| {
            let comment = descriptors::comment(&file, word.path());
            format!("- `{}`: {comment}", word.name())
        });
        let comment = descriptors::comment(&file, words.path());
        let description = format!("{comment}\n\n{}", lines.collect::<Vec<_>>().join("\n"));
        let names: Vec<String> = known().map(|word| word.name().to_owned()).collect();
        self.components
            .insert(name.clone(), json!({ "type": "string", "enum": names, "description": description }));
        reference(&name)
    }
}

/// Adds the comment of a thing of a message's file, if there is one.
pub(super) fn described(schema: &mut Value, message: &MessageDescriptor, path: &[i32]) {
    let comment = descriptors::comment(&message.parent_file(), path);
    if !comment.is_empty() {
        schema["description"] = json!(comment);
    }
}

/// Whether a field can be a parameter of a query.
pub(super) fn is_simple(field: &FieldDescriptor) -> bool {
    match field.kind() {
        Kind::Message(message) => is_text(&message),
        _ => true,
    }
}

fn component(full_name: &str) -> String {
    full_name.trim_start_matches(PACKAGE).trim_start_matches('.').to_owned()
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// What protobuf's own messages are in JSON.
fn well_known(full_name: &str) -> Option<Value> {
    match full_name {
        "google.protobuf.Timestamp" => Some(json!({ "type": "string", "format": "date-time" })),
        "google.protobuf.Duration" => {
            Some(json!({ "type": "string", "pattern": "^-?[0-9]+(\\.[0-9]{1,9})?s$", "examples": ["90s"] }))
        }
        "google.protobuf.FieldMask" => {
            Some(json!({ "type": "string", "examples": ["spec,policies.overlap"] }))
        }
        "google.protobuf.Empty" => Some(json!({ "type": "object", "maxProperties": 0 })),
        // Any value.
        "google.protobuf.Value" => Some(json!({})),
        _ => None,
    }
}
