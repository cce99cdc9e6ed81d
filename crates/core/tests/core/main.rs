//! The promises of punctual-core, told as stories on the bench, and the published cases.

mod cases;
mod catchup;
mod gaps;
mod overlap;
mod pause;
mod scripts;
mod verbs;
#[path = "../../../spec/tests/spec/wire.rs"]
#[allow(dead_code)]
mod wire;
