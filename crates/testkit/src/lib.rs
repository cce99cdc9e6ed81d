//! What tests and benchmarks need around them: real servers, in temporary folders, on free ports of loopback, gone when
//! they are dropped, even if whoever started them is killed.

mod bouncer;
pub mod certificate;
mod postgres;
mod programs;

pub use bouncer::{Bouncer, Pooling};
pub use postgres::Postgres;
