//! Measures Punctual beside its peers, in one process and in turns, so that noise hits all alike.

use anyhow::{Result, bail};

mod allocator;
mod cluster;
mod core;
mod embedded;
mod measure;
mod queue;
mod spec;

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("spec") => spec::run(),
        Some("core") => core::run(),
        Some("embedded") => embedded::run(std::env::args().nth(2).as_deref()),
        Some("embedded-idle") => {
            embedded::idle::measure(std::env::args().nth(2).as_deref().unwrap_or_default())
        }
        Some("cluster") => cluster::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        Some("queue") => queue::run(std::env::args().nth(2).as_deref()),
        other => bail!("expected a benchmark (spec, core, embedded, queue, cluster), found {other:?}"),
    }
}
