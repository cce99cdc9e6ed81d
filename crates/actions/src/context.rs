//! What a call knows about its run.

use std::borrow::Cow;

use serde_json::Value;

use crate::base64url;

/// What a call knows about its run; its parts fill templates and headers.
///
/// It has no `Debug`: the callback's token is a secret.
#[derive(Clone, Default)]
pub struct Context {
    /// The namespace of the schedule.
    pub namespace: String,
    /// The schedule.
    pub schedule_id: String,
    /// The run.
    pub run_id: String,
    /// The same for every attempt of this run, and for no other run.
    pub idempotency_key: String,
    /// The occurrence before jitter, in RFC 3339; none for a run that was triggered.
    pub nominal_time: Option<String>,
    /// When the run should start, in RFC 3339.
    pub due_time: String,
    /// Which try this is, counted from one.
    pub attempt: u32,
    /// The input of the run: JSON, else text or bytes, which become a JSON string (bytes as base64url).
    pub input: Option<Vec<u8>>,
    /// The result of the schedule's last completed run, in the same form.
    pub last_result: Option<Vec<u8>>,
    /// Where the end of an accepted call is to be reported.
    pub callback_url: Option<String>,
    /// What proves that a report at [`Context::callback_url`] is for this run. It is sent in a header only.
    pub callback_token: Option<String>,
}

impl Context {
    /// The body of a request that has no template of its own.
    pub(crate) fn default_body(&self) -> String {
        let text = |text: &str| Value::from(text).to_string();
        let maybe = |text: &Option<String>| text.as_deref().map_or(Value::Null, Value::from).to_string();
        // Input and last result are inserted as they are: a number keeps all its digits.
        format!(
            "{{\"namespace\":{},\"schedule_id\":{},\"run_id\":{},\"nominal_time\":{},\"due_time\":{},\"attempt\":{},\
             \"idempotency_key\":{},\"input\":{},\"last_result\":{},\"callback_url\":{}}}",
            text(&self.namespace),
            text(&self.schedule_id),
            text(&self.run_id),
            maybe(&self.nominal_time),
            text(&self.due_time),
            self.attempt,
            text(&self.idempotency_key),
            as_json(self.input.as_deref()),
            as_json(self.last_result.as_deref()),
            maybe(&self.callback_url),
        )
    }
}

/// Bytes as JSON: `null` for none, JSON as it is, text as a string, anything else as a string of base64url.
pub(crate) fn as_json(bytes: Option<&[u8]>) -> Cow<'_, str> {
    let Some(bytes) = bytes else { return Cow::Borrowed("null") };
    match std::str::from_utf8(bytes) {
        Ok(text) if is_json(bytes) => Cow::Borrowed(text.trim()),
        Ok(text) => Cow::Owned(Value::from(text).to_string()),
        Err(_) => Cow::Owned(Value::from(base64url::encode(bytes)).to_string()),
    }
}

/// Whether bytes are JSON that others can read too: not nested without end, no number beyond all bounds.
pub(crate) fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<Value>(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_json_in_any_case() {
        let cases: [(Option<&[u8]>, &str); 5] = [
            (None, "null"),
            (Some(b" {\"a\": 1.10} "), "{\"a\": 1.10}"),
            (Some(b"plain \"text\""), "\"plain \\\"text\\\"\""),
            (Some(&[0xff, 0xfe]), "\"__4\""),
            (Some(b""), "\"\""),
        ];
        for (bytes, expected) in cases {
            assert_eq!(as_json(bytes), expected);
        }
    }

    #[test]
    fn default_body_is_json_whatever_the_names() {
        let context = Context { schedule_id: "a\"b\n".to_owned(), attempt: 3, ..Context::default() };
        let body: Value = serde_json::from_str(&context.default_body()).unwrap();
        assert_eq!(body["schedule_id"], "a\"b\n");
        assert_eq!(body["attempt"], 3);
        assert_eq!(body["nominal_time"], Value::Null);
        assert_eq!(body["input"], Value::Null);
    }
}
