//! The wire contract of Punctual: one protobuf contract with gRPC, JSON, routes and OpenAPI made from it.
//!
//! [`v1`] has the messages, clients and server traits that `cargo xtask codegen` makes from `proto/`. [`json`] reads and
//! writes the same messages as JSON, [`routes`] is the one place that names HTTP paths, [`openapi`] describes them, and
//! [`client`] is a connection with all services.
//!
//! ```
//! use punctual_api::{json, v1};
//!
//! let body = br#"{ "policies": { "overlap": "buffer_one" } }"#;
//! let schedule: v1::Schedule = json::from_json(body)?;
//! assert_eq!(schedule.policies.unwrap().overlap(), v1::overlap::Policy::BufferOne);
//! # Ok::<(), json::JsonError>(())
//! ```

/// The messages, clients and server traits of `punctual.v1`, generated from `proto/`.
#[allow(missing_docs, unused_qualifications, clippy::all, rustdoc::all)]
pub mod v1 {
    include!("generated/punctual.v1.rs");
}

pub mod descriptors;
pub mod json;
pub mod routes;
pub mod openapi;
pub mod client;

pub use client::Client;
