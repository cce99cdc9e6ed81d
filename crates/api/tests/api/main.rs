//! The contract is one: what gRPC, JSON, routes and OpenAPI say about it agrees.

mod client;
mod contract;
mod hostile;
mod json;
