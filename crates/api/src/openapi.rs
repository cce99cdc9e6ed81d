//! The OpenAPI 3.1 document, made from the routes, the descriptors and their comments.

use std::collections::BTreeSet;

use prost_reflect::{FieldDescriptor, MessageDescriptor, MethodDescriptor};
use serde_json::{Map, Value, json};

use crate::descriptors::{self, PACKAGE};
use crate::routes::{ROUTES, Route};

mod schema;

use schema::{Schemas, described};

/// The document.
///
/// ```
/// let document = punctual_api::openapi::document();
/// assert_eq!(document["openapi"], "3.1.0");
/// assert!(document["paths"]["/v1/info"]["get"]["responses"]["200"].is_object());
/// ```
pub fn document() -> Value {
    let mut schemas = Schemas::default();
    let error = schemas.message_named(&format!("{PACKAGE}.Error"));
    let mut paths: Map<String, Value> = Map::new();
    let mut names = BTreeSet::new();
    for route in ROUTES {
        let Some(rpc) = route.descriptor() else { continue };
        let mut operation = operation(route, &rpc, &mut schemas);
        operation["operationId"] = json!(operation_id(route, &mut names));
        operation["responses"]["default"] = json!({
            "description": "The request was refused, or could not be answered.",
            "content": { "application/json": { "schema": error } },
        });
        let methods = paths.entry(route.path).or_insert_with(|| json!({}));
        methods[route.method.as_str().to_lowercase()] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Punctual",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Starts things at the right time, exactly once, and can always say why.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "tags": tags(),
        "paths": paths,
        "components": { "schemas": schemas.into_components() },
    })
}

/// One for each service.
fn tags() -> Vec<Value> {
    let services = descriptors::pool().services().filter(|service| service.package_name() == PACKAGE);
    let tag = |service: prost_reflect::ServiceDescriptor| {
        let comment = descriptors::comment(&service.parent_file(), service.path());
        json!({ "name": service.name(), "description": comment })
    };
    services.map(tag).collect()
}

/// `Schedules.Preview`; a second route to the same rpc is told apart by what its path ends in.
fn operation_id(route: &Route, names: &mut BTreeSet<String>) -> String {
    let name = route.rpc.trim_start_matches(PACKAGE).trim_start_matches('.').replace('/', ".");
    let (mut unique, mut number) = (name.clone(), 2);
    while !names.insert(unique.clone()) {
        unique = format!("{name}.{number}");
        number += 1;
    }
    unique
}

fn operation(route: &Route, rpc: &MethodDescriptor, schemas: &mut Schemas) -> Value {
    let comment = descriptors::comment(&rpc.parent_service().parent_file(), rpc.path());
    let input = rpc.input();
    let in_path: Vec<&str> = route.parameters().collect();
    let (bound, free): (Vec<_>, Vec<_>) = input.fields().partition(|field| in_path.contains(&field.name()));
    let mut parameters: Vec<Value> = bound.iter().map(|field| parameter(field, "path", schemas)).collect();
    let mut operation = json!({
        "tags": [rpc.parent_service().name()],
        "summary": comment.split_inclusive(". ").next().unwrap_or_default().trim_end(),
        "description": comment,
    });
    if route.body {
        operation["requestBody"] = json!({
            "required": true,
            "content": { "application/json": { "schema": body(&input, &free, schemas) } },
        });
    } else {
        let simple = free.iter().filter(|field| schema::is_simple(field));
        parameters.extend(simple.map(|field| parameter(field, "query", schemas)));
    }
    operation["parameters"] = json!(parameters);
    let (media, description) = match route.stream {
        true => ("text/event-stream", "Server-sent events; the data of each is one of these."),
        false => ("application/json", "It worked."),
    };
    let answer = schemas.message(&rpc.output());
    operation["responses"]["200"] =
        json!({ "description": description, "content": { media: { "schema": answer } } });
    operation
}

fn parameter(field: &FieldDescriptor, place: &str, schemas: &mut Schemas) -> Value {
    let mut parameter = json!({
        "name": field.name(),
        "in": place,
        "required": place == "path",
        "schema": schemas.field(field),
    });
    described(&mut parameter, field.parent_message(), field.path());
    parameter
}

/// What is left of the request when the path has taken its fields.
fn body(input: &MessageDescriptor, free: &[FieldDescriptor], schemas: &mut Schemas) -> Value {
    let mut body = schemas.object(input, free);
    body["title"] = json!(input.name());
    body
}
