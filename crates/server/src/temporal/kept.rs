//! What is kept with a schedule for Temporal's clients alone: fields that nothing else here has a place for.

use jiff::Timestamp;
use prost::Message;
use punctual_core::Payload;

use super::wire::common::{Memo, SearchAttributes};
use crate::convert::time::to_wire;

/// The attachment of a schedule. Numbers of fields are never reused: releases read what earlier ones wrote.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Kept {
    /// The action as it came, less the input, which runs carry.
    #[prost(bytes = "vec", tag = "1")]
    pub(super) action: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    pub(super) memo: Option<Memo>,
    /// Each with its type in the metadata.
    #[prost(message, optional, tag = "3")]
    pub(super) search_attributes: Option<SearchAttributes>,
    /// Notes of a schedule that is not paused; those of a paused one are its pause's.
    #[prost(string, tag = "4")]
    pub(super) notes: String,
    /// The last change that a Temporal client made, or the last update of any client.
    #[prost(message, optional, tag = "5")]
    pub(super) updated_at: Option<prost_types::Timestamp>,
    /// Nothing obeys it, there as here; it is shown again.
    #[prost(bool, tag = "6")]
    pub(super) keep_original_workflow_id: bool,
}

impl Kept {
    /// What a schedule has; one that was made by other clients has nothing.
    pub(super) fn read(attachment: &[u8]) -> Kept {
        Kept::decode(attachment).unwrap_or_default()
    }

    pub(super) fn bytes(&self) -> Payload {
        self.encode_to_vec().into()
    }
}

/// The attachment of a schedule that another client updates: Temporal's clients see when that was.
pub(crate) fn updated(attachment: &[u8], now: Timestamp) -> Payload {
    Kept { updated_at: Some(to_wire(now)), ..Kept::read(attachment) }.bytes()
}
