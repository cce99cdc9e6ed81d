//! Routes, services, words and the OpenAPI document speak of the same things.

use std::collections::BTreeSet;

use prost_reflect::{EnumDescriptor, MessageDescriptor};
use punctual_api::routes::{Method, ROUTES};
use punctual_api::{descriptors, openapi};
use serde_json::Value;

fn rpcs() -> BTreeSet<String> {
    let services = descriptors::pool().services();
    let rpcs = services.flat_map(|service| {
        let service_name = service.full_name().to_owned();
        service.methods().map(move |rpc| format!("{service_name}/{}", rpc.name())).collect::<Vec<_>>()
    });
    rpcs.collect()
}

fn enums() -> Vec<EnumDescriptor> {
    let ours = |full_name: &str| full_name.starts_with(descriptors::PACKAGE);
    descriptors::pool().all_enums().filter(|words| ours(words.full_name())).collect()
}

fn messages() -> Vec<MessageDescriptor> {
    let ours = |full_name: &str| full_name.starts_with(descriptors::PACKAGE);
    descriptors::pool().all_messages().filter(|message| ours(message.full_name())).collect()
}

#[test]
fn every_route_has_an_rpc_and_every_rpc_a_route() {
    let routed: BTreeSet<String> = ROUTES.iter().map(|route| route.rpc.to_owned()).collect();
    // A copy of the database is bytes, which no JSON holds; HTTP has a page of its own for it.
    let backup = BTreeSet::from(["punctual.v1.Server/Backup".to_owned()]);
    assert_eq!(routed, &rpcs() - &backup);
    for route in ROUTES {
        let rpc = route.descriptor().unwrap();
        assert_eq!(route.stream, rpc.is_server_streaming(), "{}", route.path);
        for name in route.parameters() {
            assert!(rpc.input().get_field_by_name(name).is_some(), "{}: no field {name}", route.path);
        }
        let has_body = matches!(route.method, Method::Post | Method::Patch);
        assert_eq!(route.body, has_body, "{}", route.path);
    }
}

#[test]
fn no_two_routes_are_the_same() {
    let distinct: BTreeSet<_> = ROUTES.iter().map(|route| (route.method, route.path)).collect();
    assert_eq!(distinct.len(), ROUTES.len());
}

#[test]
fn every_word_of_an_enum_is_in_lower_case_and_zero_means_not_given() {
    assert!(enums().len() > 10);
    for words in enums() {
        let names: Vec<String> = words.values().map(|word| word.name().to_owned()).collect();
        assert_eq!(names[0], "unspecified", "{}", words.full_name());
        for name in &names {
            assert!(
                name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_'),
                "{}: {name}",
                words.full_name()
            );
        }
    }
}

#[test]
fn every_request_that_changes_something_can_be_repeated() {
    // Reports of workers are told apart by run and token; a claim that is repeated is another claim.
    let by_token =
        ["punctual.v1.Workers/Heartbeat", "punctual.v1.Workers/Complete", "punctual.v1.Workers/Claim"];
    let asks = ["punctual.v1.Schedules/Preview", "punctual.v1.Server/Examine"];
    for route in ROUTES.iter().filter(|route| route.method != Method::Get) {
        let input = route.descriptor().unwrap().input();
        let expected = !by_token.contains(&route.rpc) && !asks.contains(&route.rpc);
        assert_eq!(input.get_field_by_name("request_id").is_some(), expected, "{}", route.rpc);
        let of_server = route.rpc.starts_with("punctual.v1.Server/");
        assert_eq!(input.get_field_by_name("namespace").is_some(), !of_server, "{}", route.rpc);
    }
}

#[test]
fn the_document_has_every_route_and_every_parameter() {
    let document = openapi::document();
    for route in ROUTES {
        let operation = &document["paths"][route.path][route.method.as_str().to_lowercase()];
        assert!(operation.is_object(), "{} {}", route.method.as_str(), route.path);
        assert!(!operation["summary"].as_str().unwrap().is_empty(), "{}", route.path);
        assert_eq!(operation["requestBody"].is_object(), route.body, "{}", route.path);
        let parameters = operation["parameters"].as_array().unwrap();
        let in_path = parameters.iter().filter(|parameter| parameter["in"] == "path");
        assert_eq!(in_path.count(), route.parameters().count(), "{}", route.path);
    }
    let listed: usize =
        document["paths"].as_object().unwrap().values().map(|item| item.as_object().unwrap().len()).sum();
    assert_eq!(listed, ROUTES.len());
    let pause = &document["paths"]["/v1/namespaces/{namespace}/schedules/{schedule_id}/pause"]["post"];
    let body = &pause["requestBody"]["content"]["application/json"]["schema"]["properties"];
    assert!(body["note"].is_object() && body["namespace"].is_null());
}

#[test]
fn every_reference_of_the_document_leads_somewhere() {
    let document = openapi::document();
    let mut references = BTreeSet::new();
    collect(&document, &mut references);
    assert!(references.len() > 30);
    for reference in references {
        let found = document.pointer(reference.trim_start_matches('#'));
        assert!(found.is_some_and(Value::is_object), "{reference}");
    }
}

fn collect(value: &Value, references: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            references.extend(object.get("$ref").and_then(Value::as_str).map(str::to_owned));
            object.values().for_each(|inner| collect(inner, references));
        }
        Value::Array(items) => items.iter().for_each(|inner| collect(inner, references)),
        _ => {}
    }
}

#[test]
fn operation_ids_are_unique_and_schemas_are_described() {
    let document = openapi::document();
    let operations = document["paths"].as_object().unwrap().values();
    let operations: Vec<&Value> = operations.flat_map(|item| item.as_object().unwrap().values()).collect();
    let ids: BTreeSet<&str> = operations.iter().map(|o| o["operationId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), operations.len());
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        assert!(schema["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}");
        for (property, schema) in schema["properties"].as_object().into_iter().flatten() {
            assert!(schema["description"].is_string(), "{name}.{property}");
        }
    }
    let overlap = &document["components"]["schemas"]["Overlap.Policy"];
    assert_eq!(overlap["type"], "string");
    assert_eq!(overlap["enum"].as_array().unwrap().len(), 6);
}

#[test]
fn moments_are_timestamps_and_lengths_are_durations() {
    for message in messages() {
        for field in message.fields().filter(|field| {
            let name = field.name();
            name.ends_with("_at") || name.ends_with("_time") || name == "until" || name == "time"
        }) {
            let kind = field.kind();
            let full_name = kind.as_message().map(|inner| inner.full_name().to_owned());
            assert_eq!(full_name.as_deref(), Some("google.protobuf.Timestamp"), "{}", field.full_name());
        }
    }
}
