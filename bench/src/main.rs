//! Measures Punctual beside its peers, in one process and in turns, so that noise hits all alike.

use anyhow::{Result, bail};

mod allocator;
mod core;
mod measure;
mod spec;

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("spec") => spec::run(),
        Some("core") => core::run(),
        other => bail!("expected a benchmark (spec, core), found {other:?}"),
    }
}
