//! Wire to core and back. Nothing else knows both; what is accepted here makes sense inside.

pub(crate) mod time;
pub(crate) mod payload;
pub(crate) mod spec;
pub(crate) mod action;
pub(crate) mod schedule;
pub(crate) mod queue;
pub(crate) mod mask;
pub(crate) mod describe;
pub(crate) mod run;
pub(crate) mod event;
pub(crate) mod why;
pub(crate) mod page;

use crate::status::Fault;

/// Reads the number of an enum; prost alone would take an unknown one for "not given".
pub(crate) fn word<W: TryFrom<i32>>(field: &str, number: i32) -> Result<W, Fault> {
    W::try_from(number).map_err(|_| Fault::field(field, format!("{number} is no value of this enum")))
}
