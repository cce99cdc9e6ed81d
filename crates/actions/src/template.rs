//! Texts with names in double braces, filled in for one run and escaped for the place where they stand.
//!
//! `{{schedule_id}}` stands for a part of the [`Context`]; `{{{{` is a literal `{{`.

use std::borrow::Cow;

use serde_json::Value;

use crate::context::{Context, as_json};
use crate::url::percent_encode;

/// A name that a template may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Namespace,
    ScheduleId,
    RunId,
    IdempotencyKey,
    NominalTime,
    DueTime,
    Attempt,
    Input,
    LastResult,
    CallbackUrl,
}

const NAMES: [(&str, Name); 10] = [
    ("namespace", Name::Namespace),
    ("schedule_id", Name::ScheduleId),
    ("run_id", Name::RunId),
    ("idempotency_key", Name::IdempotencyKey),
    ("nominal_time", Name::NominalTime),
    ("due_time", Name::DueTime),
    ("attempt", Name::Attempt),
    ("input", Name::Input),
    ("last_result", Name::LastResult),
    ("callback_url", Name::CallbackUrl),
];

/// Where a template stands, and so how texts in it are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A body: texts stand inside of JSON strings, input and last result are JSON themselves.
    Body,
    /// A URL: everything is percent-encoded.
    Url,
    /// A header or a command's word: as it is. Who uses it refuses what cannot stand there.
    Plain,
}

/// A template that has been checked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Template<'text> {
    parts: Vec<Part<'text>>,
}

#[derive(Debug, PartialEq, Eq)]
enum Part<'text> {
    Text(&'text str),
    Name(Name),
}

impl<'text> Template<'text> {
    /// Reads a template, or says at which byte it makes no sense.
    pub(crate) fn parse(text: &'text str) -> Result<Template<'text>, String> {
        let mut parts = Vec::new();
        let mut position = 0;
        while let Some(found) = text[position..].find("{{") {
            let open = position + found;
            parts.push(Part::Text(&text[position..open]));
            if text[open + 2..].starts_with("{{") {
                parts.push(Part::Text("{{"));
                position = open + 4;
                continue;
            }
            let length = text[open + 2..].find("}}");
            let length =
                length.ok_or_else(|| format!("byte {open}: expected }}}} after {{{{, found the end"))?;
            let name = text[open + 2..open + 2 + length].trim();
            let known = NAMES.iter().find(|(known, _)| *known == name);
            let (_, known) = known.ok_or_else(|| {
                let shown: String = name.chars().take(40).collect();
                format!(
                    "byte {open}: expected one of {}, found {shown:?}",
                    NAMES.map(|(name, _)| name).join(", ")
                )
            })?;
            parts.push(Part::Name(*known));
            position = open + 4 + length;
        }
        parts.push(Part::Text(&text[position..]));
        Ok(Template { parts })
    }

    /// Whether nothing has to be filled in.
    pub(crate) fn is_literal(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// The text for one run, unless it has more bytes than this.
    pub(crate) fn fill(&self, context: &Context, place: Place, bytes_max: usize) -> Result<String, String> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Name(name) => text.push_str(&value(*name, context, place)),
            }
            // Looked at after every part: an input of a megabyte may stand here a thousand times.
            if text.len() > bytes_max {
                return Err(format!("expected at most {bytes_max} bytes once filled in, found more"));
            }
        }
        Ok(text)
    }
}

fn value(name: Name, context: &Context, place: Place) -> Cow<'_, str> {
    let text = match name {
        Name::Input | Name::LastResult => {
            let bytes = if name == Name::Input { &context.input } else { &context.last_result };
            let json = as_json(bytes.as_deref());
            return match place {
                Place::Body | Place::Plain => json,
                Place::Url => Cow::Owned(percent_encode(&json)),
            };
        }
        Name::Attempt => return Cow::Owned(context.attempt.to_string()),
        Name::Namespace => context.namespace.as_str(),
        Name::ScheduleId => context.schedule_id.as_str(),
        Name::RunId => context.run_id.as_str(),
        Name::IdempotencyKey => context.idempotency_key.as_str(),
        Name::NominalTime => context.nominal_time.as_deref().unwrap_or_default(),
        Name::DueTime => context.due_time.as_str(),
        Name::CallbackUrl => context.callback_url.as_deref().unwrap_or_default(),
    };
    match place {
        Place::Plain => Cow::Borrowed(text),
        Place::Url => Cow::Owned(percent_encode(text)),
        Place::Body => {
            let quoted = Value::from(text).to_string();
            Cow::Owned(quoted[1..quoted.len() - 1].to_owned())
        }
    }
}

/// For tests and fuzzing: reads a text and fills it in everywhere it could stand.
#[doc(hidden)]
pub fn probe(text: &str, context: &Context) -> Result<[String; 3], String> {
    let template = Template::parse(text)?;
    let fill = |place| template.fill(context, place, crate::limits::REQUEST_BYTES_MAX);
    Ok([fill(Place::Body)?, fill(Place::Url)?, fill(Place::Plain)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> Context {
        Context {
            schedule_id: "a \"b\"/c\n".to_owned(),
            attempt: 2,
            input: Some(br#"{"n": 1.0}"#.to_vec()),
            ..Context::default()
        }
    }

    #[test]
    fn texts_are_escaped_for_where_they_stand() {
        let cases = [
            (r#"{"id":"{{schedule_id}}"}"#, r#"{"id":"a \"b\"/c\n"}"#, r#"{"id":"a%20%22b%22%2Fc%0A"}"#),
            ("{{ attempt }}{{attempt}}", "22", "22"),
            ("{{input}}", r#"{"n": 1.0}"#, "%7B%22n%22%3A%201.0%7D"),
            ("{{last_result}}", "null", "null"),
            ("[{{nominal_time}}]", "[]", "[]"),
            ("{{{{x}} {{{{{{attempt}}", "{{x}} {{2", "{{x}} {{2"),
            (r#"{"a":{"b":{}}}"#, r#"{"a":{"b":{}}}"#, r#"{"a":{"b":{}}}"#),
        ];
        for (text, body, url) in cases {
            let filled = probe(text, &context()).unwrap();
            assert_eq!([filled[0].as_str(), filled[1].as_str()], [body, url]);
        }
    }

    #[test]
    fn faults_say_where() {
        let cases = [
            ("ab{{nope}}", "byte 2: "),
            ("{{attempt}}{{", "byte 11: expected }} after {{, found the end"),
            ("{{{attempt}}", "byte 0: "),
            ("{{}}", "byte 0: "),
            ("ü{{Attempt}}", "byte 2: "),
        ];
        for (text, expected) in cases {
            let fault = Template::parse(text).unwrap_err();
            assert!(fault.starts_with(expected), "{fault}");
        }
    }

    #[test]
    fn what_grows_without_end_is_refused() {
        let context = Context { input: Some(vec![b'1'; 1_000]), ..Context::default() };
        let text = "{{input}}".repeat(100);
        assert!(Template::parse(&text).unwrap().fill(&context, Place::Body, 10_000).is_err());
    }
}
