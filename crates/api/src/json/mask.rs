//! Field masks in snake case: protobuf's own mapping knows them in camel case only.

use std::collections::BTreeMap;

use prost::Message;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};
use serde_json::value::RawValue;

use super::JsonError;

/// The masks of a text, and the text without them: blanks keep every other position where it was.
pub(super) struct Masks {
    pub(super) rest: String,
    found: Vec<(FieldDescriptor, String)>,
}

/// Takes the masks of the outermost message out of its text. A text that is no JSON stays as it is.
pub(super) fn take(descriptor: &MessageDescriptor, text: &str) -> Masks {
    let mut masks = Masks { rest: text.to_owned(), found: Vec::new() };
    let fields: Vec<_> = descriptor.fields().filter(is_mask).collect();
    if fields.is_empty() {
        return masks;
    }
    let Ok(parts) = serde_json::from_str::<BTreeMap<String, &RawValue>>(text) else { return masks };
    for field in fields {
        let Some(raw) = parts.get(field.name()) else { continue };
        let Ok(mask) = serde_json::from_str::<String>(raw.get()) else { continue };
        let start = raw.get().as_ptr() as usize - text.as_ptr() as usize;
        let blank = format!("\"\"{}", " ".repeat(raw.get().len() - 2));
        masks.rest.replace_range(start..start + raw.get().len(), &blank);
        masks.found.push((field, mask));
    }
    masks
}

impl Masks {
    /// Puts the masks into the message.
    pub(super) fn put(self, message: &mut DynamicMessage) -> Result<(), JsonError> {
        for (field, text) in self.found {
            let Kind::Message(descriptor) = field.kind() else { continue };
            let paths = text.split(',').map(str::trim).filter(|path| !path.is_empty()).map(snake).collect();
            let mask = prost_types::FieldMask { paths }.encode_to_vec();
            let mask = DynamicMessage::decode(descriptor, &mask[..])
                .map_err(|error| JsonError::new(field.name(), error.to_string()))?;
            message.set_field(&field, Value::Message(mask));
        }
        Ok(())
    }
}

fn is_mask(field: &FieldDescriptor) -> bool {
    let is_mask =
        |kind: Kind| kind.as_message().is_some_and(|m| m.full_name() == "google.protobuf.FieldMask");
    !field.is_list() && is_mask(field.kind())
}

/// The same path in snake case, which it may be already.
pub(super) fn snake(path: &str) -> String {
    let mut snake = String::with_capacity(path.len());
    for letter in path.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
