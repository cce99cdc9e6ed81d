//! Field masks: which parts of a schedule an update takes over.

use prost_reflect::{DynamicMessage, Kind, MessageDescriptor, ReflectMessage};
use punctual_api::{descriptors, v1};

use crate::status::{Fault, INTERNAL, INVALID_MASK, found};

/// The fields to take over: those of the mask, or every part that is given. Unknown ones are refused by name.
pub(crate) fn paths(
    mask: Option<&prost_types::FieldMask>,
    given: &v1::Schedule,
) -> Result<Vec<String>, Fault> {
    let Some(mask) = mask.filter(|mask| !mask.paths.is_empty()) else {
        let parts = [
            ("spec", given.spec.is_some()),
            ("action", given.action.is_some()),
            ("policies", given.policies.is_some()),
            ("remaining_actions", given.remaining_actions.is_some()),
        ];
        return Ok(parts.iter().filter(|(_, given)| *given).map(|(name, _)| (*name).to_owned()).collect());
    };
    let descriptor = descriptors::message::<v1::Schedule>();
    for path in &mask.paths {
        check(&descriptor, path).map_err(|message| Fault::new(&INVALID_MASK, message).at("update_mask"))?;
    }
    Ok(mask.paths.clone())
}

fn check(schedule: &MessageDescriptor, path: &str) -> Result<(), String> {
    if path.split('.').next() == Some("state") {
        return Err("`state` is changed by pause and resume, not by update".into());
    }
    let mut kind = Kind::Message(schedule.clone());
    for name in path.split('.') {
        let Kind::Message(message) = &kind else {
            return Err(format!("{} names a field of something that has none", found(path)));
        };
        let field = message.get_field_by_name(name);
        let known = || {
            let names: Vec<String> = message.fields().map(|field| field.name().to_owned()).collect();
            format!(
                "{} names the unknown field {} of {}, expected one of {}",
                found(path),
                found(name),
                message.name(),
                names.join(", ")
            )
        };
        let field = field.ok_or_else(known)?;
        let whole = field.is_list() || field.is_map() || is_value(&field.kind());
        // What is below a list or a value cannot be named: such a field is taken over as a whole.
        kind = if whole { Kind::Bool } else { field.kind() };
    }
    Ok(())
}

fn is_value(kind: &Kind) -> bool {
    kind.as_message().is_some_and(|message| message.full_name().starts_with("google.protobuf."))
}

/// Whether the mask covers this field of the schedule.
pub(crate) fn covers(paths: &[String], field: &str) -> bool {
    paths.iter().any(|path| path == field)
}

/// The current schedule with the named fields of the given one; what is named and not given gets its default.
pub(crate) fn merge(
    current: &v1::Schedule,
    given: &v1::Schedule,
    paths: &[String],
) -> Result<v1::Schedule, Fault> {
    let dynamic = |schedule: &v1::Schedule| {
        let mut message = DynamicMessage::new(descriptors::message::<v1::Schedule>());
        message.transcode_from(schedule).map(|()| message)
    };
    let fault = |error: prost::DecodeError| {
        Fault::new(&INTERNAL, format!("a schedule does not fit the contract: {error}"))
    };
    let (mut merged, given) = (dynamic(current).map_err(fault)?, dynamic(given).map_err(fault)?);
    for path in paths {
        take_over(&mut merged, Some(&given), path);
    }
    merged.transcode_to().map_err(fault)
}

fn take_over(into: &mut DynamicMessage, from: Option<&DynamicMessage>, path: &str) {
    let (name, below) = path.split_once('.').map_or((path, None), |(name, below)| (name, Some(below)));
    let Some(field) = into.descriptor().get_field_by_name(name) else { return };
    let given = from.filter(|from| from.has_field(&field)).map(|from| from.get_field(&field));
    match (below, given) {
        (Some(below), given) => {
            let given = given.as_ref().and_then(|value| value.as_message());
            if let Some(inner) = into.get_field_mut(&field).as_message_mut() {
                take_over(inner, given, below);
            }
        }
        (None, Some(value)) => into.set_field(&field, value.into_owned()),
        (None, None) => into.clear_field(&field),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_api::json;

    fn schedule(text: &str) -> v1::Schedule {
        json::from_json(text.as_bytes()).unwrap()
    }

    fn mask(paths: &[&str]) -> prost_types::FieldMask {
        prost_types::FieldMask { paths: paths.iter().map(ToString::to_string).collect() }
    }

    #[test]
    fn only_what_is_named_changes_and_what_is_not_given_is_cleared() {
        let before = schedule(
            r#"{ "spec": { "zone": "Asia/Tokyo", "crons": [{ "text": "@daily" }] }, "policies": { "concurrency": 3, "overlap": "skip" } }"#,
        );
        let given = schedule(
            r#"{ "spec": { "crons": [{ "text": "@hourly" }] }, "policies": { "overlap": "allow_all" } }"#,
        );
        let named = paths(Some(&mask(&["spec.crons", "policies.concurrency"])), &given).unwrap();
        let after = merge(&before, &given, &named).unwrap();
        let expected = r#"{ "spec": { "zone": "Asia/Tokyo", "crons": [{ "text": "@hourly" }] }, "policies": { "overlap": "skip" } }"#;
        assert_eq!(after, schedule(expected));
    }

    #[test]
    fn a_mask_may_name_fields_only() {
        let given = v1::Schedule::default();
        for path in [
            "",
            "spek",
            "spec.cron",
            "spec.crons.text",
            "state",
            "state.note",
            "spec.",
            "remaining_actions.x",
            "*",
            "spec.jitter.seconds",
        ] {
            let fault = paths(Some(&mask(&[path])), &given).unwrap_err();
            assert_eq!((fault.reason.word, fault.field.as_str()), ("invalid_mask", "update_mask"), "{path}");
        }
        for path in [
            "spec",
            "spec.jitter",
            "action.queue.retry.attempts_max",
            "action.run_id_base",
            "remaining_actions",
        ] {
            assert!(paths(Some(&mask(&[path])), &given).is_ok(), "{path}");
        }
    }
}
