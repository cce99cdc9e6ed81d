//! The part of Temporal's wire contract that Punctual serves and calls: messages, servers and clients.
//!
//! Everything in [`temporal`] and [`google`] is generated when this crate is built, from the descriptors that the crate
//! `temporalio-protos` publishes; no file of the contract is copied. Maps are ordered, so that the same message always has
//! the same bytes. The action of a schedule is [`ScheduleAction`]: it keeps the bytes that came.
//!
//! ```
//! use punctual_temporal_api::temporal::api::workflowservice::v1::CreateScheduleRequest;
//!
//! let request = CreateScheduleRequest { schedule_id: "nightly".into(), ..Default::default() };
//! assert!(request.schedule.is_none());
//! ```

mod action;
mod fields;

pub use action::ScheduleAction;
pub use fields::{Field, Fields};

#[allow(missing_docs, unused_qualifications, clippy::all)]
mod contract {
    include!(concat!(env!("OUT_DIR"), "/contract.rs"));
}

pub use contract::{google, temporal};

/// The descriptors of all this, for JSON by reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
