//! The one command that decides: what passes here may land.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::run::{self, cargo, root};
use crate::{codegen, fuzz, openapi, temporal, tidy, workers};

type Step = (&'static str, fn() -> Result<()>);

const STEPS: [Step; 14] = [
    ("tidy", tidy::run),
    ("format", format),
    ("lints", || {
        run::run(cargo().args([
            "clippy",
            "--workspace",
            "--all-targets",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ]))?;
        // Not among all targets, since it is a step of its own.
        run::run(cargo().args([
            "clippy",
            "--workspace",
            "--test",
            "storm",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ]))
    }),
    ("codegen", || codegen::run(codegen::Mode::Check)),
    ("tests", || run::run(cargo().args(["test", "--workspace", "--quiet"]))),
    ("storm", || {
        // Of the whole workspace: with the features of one crate alone nearly everything would be built once more.
        let storm = ["test", "--workspace", "--test", "storm", "--quiet", "--"];
        // One after another: how long others take to take over is measured.
        run::run(cargo().args(storm).args(["--nocapture", "--test-threads=1"]))
    }),
    ("hostile requests", openapi::run),
    ("Temporal's clients", temporal::run),
    ("Temporal's workers", workers::run),
    ("docs", || {
        run::run(
            cargo().args(["doc", "--workspace", "--no-deps", "--quiet"]).env("RUSTDOCFLAGS", "-D warnings"),
        )
    }),
    // Verifying would build everything once more; the tests have done that.
    ("package", || {
        run::run(cargo().args(["package", "-p", "punctual-spec", "--allow-dirty", "--no-verify", "--quiet"]))
    }),
    ("benchmarks build", || {
        let manifest = root().join("bench/Cargo.toml");
        let target = root().join("target/bench");
        run::run(
            cargo()
                .args(["check", "--quiet", "--locked", "--manifest-path"])
                .arg(manifest)
                .env("CARGO_TARGET_DIR", target),
        )
    }),
    ("simulation", || {
        run::run(cargo().args(["run", "--release", "--quiet", "-p", "punctual-sim", "--", "--minutes", "1"]))
    }),
    ("fuzzing", || fuzz::run(None, fuzz::SECONDS)),
];

fn run_all(steps: &[Step]) -> Result<Vec<(&'static str, Duration)>> {
    let mut times = Vec::new();
    for (index, (name, step)) in steps.iter().enumerate() {
        eprintln!("\n[{}/{}] {name}", index + 1, steps.len());
        let start = Instant::now();
        step().with_context(|| format!("step `{name}`"))?;
        times.push((*name, start.elapsed()));
    }
    Ok(times)
}

/// Runs all steps, or those that are named.
pub fn run(names: &[&str]) -> Result<()> {
    let known: Vec<&str> = STEPS.iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        bail!("`{unknown}` is no step; steps: {}", known.join(", "));
    }
    let chosen = STEPS.iter().filter(|(name, _)| names.is_empty() || names.contains(name));
    let times = run_all(&chosen.copied().collect::<Vec<Step>>())?;
    eprintln!();
    for (name, time) in &times {
        eprintln!("{name:<18}{:>7.1} s", time.as_secs_f64());
    }
    eprintln!("steps: {} passed, 0 failed", times.len());
    Ok(())
}

fn format() -> Result<()> {
    run::run(cargo().args(["fmt", "--all", "--check"]))?;
    for folder in ["fuzz", "bench", "clients/temporal/rust"] {
        run::run(
            cargo().args(["fmt", "--check", "--manifest-path"]).arg(root().join(folder).join("Cargo.toml")),
        )?;
    }
    Ok(())
}
