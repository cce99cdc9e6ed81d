//! Activity workers, spoken by hand: every call that an SDK's worker makes, with what goes wrong around it.

mod bench;
mod polling;
mod reporting;
mod beating;
