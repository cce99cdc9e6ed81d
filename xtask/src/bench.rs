//! Measurements: release builds, peers in the same run, ratios with spread.

use anyhow::Result;

use crate::run::{self, cargo, python, root};

/// Runs one benchmark of the `bench` workspace, or one part of it.
pub fn run(names: &[&str]) -> Result<()> {
    let manifest = root().join("bench/Cargo.toml");
    let mut command = cargo();
    command
        .args(["run", "--release", "--quiet", "--locked", "--manifest-path"])
        .arg(manifest)
        .arg("--")
        .args(names);
    command.env("CARGO_TARGET_DIR", root().join("target/bench"));
    match python("bench-python", &["croniter==6.2.4", "tzdata"]) {
        Ok(python) => _ = command.env("PUNCTUAL_BENCH_PYTHON", python),
        Err(error) => eprintln!("note: no croniter to measure against: {error:#}"),
    }
    run::run(&mut command)
}
