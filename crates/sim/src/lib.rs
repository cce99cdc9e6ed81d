//! The world around a schedule, without a real clock, network or database.
//!
//! [`bed`] is the world by hand, for scenarios that read as stories.

pub mod bed;
