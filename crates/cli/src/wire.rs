//! Between what people type and what goes over the wire.

pub mod time;
pub mod payload;
pub mod spec;
pub mod action;
pub mod words;
pub mod fields;
