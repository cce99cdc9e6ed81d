//! The promises of punctual-spec, in one binary: published cases, oracle, laws, hostile specs, no heap.

mod calendars;
mod cases;
mod heap;
mod hostile;
mod laws;
mod lints;
mod oracle;
mod random;
mod vectors;
mod wire;
mod zones;
