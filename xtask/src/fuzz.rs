//! Coverage-guided fuzzing with the pinned stable compiler: the instrumentation is a plain compiler pass.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::run::{self, cargo, command, output, provide, root};

/// How long each target runs in the test command.
pub const SECONDS: u32 = 20;

const TARGETS: [&str; 5] = ["cron_text", "calendar_text", "duration_text", "zone_data", "compile_and_ask"];

/// An answer that takes longer is a hang.
const TIMEOUT_SECONDS: u32 = 10;

const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1 \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Fuzzes one target or all of them. What was found stays in `fuzz/corpus`, what failed in `fuzz/artifacts`.
pub fn run(only: Option<&str>, seconds: u32) -> Result<()> {
    let targets: Vec<&str> =
        TARGETS.into_iter().filter(|target| only.is_none_or(|only| only == *target)).collect();
    ensure!(!targets.is_empty(), "no such target; known are {}", TARGETS.join(", "));
    let binaries = build()?;
    for target in targets {
        let corpus = root().join("fuzz/corpus").join(target);
        let artifacts = root().join("fuzz/artifacts").join(target);
        std::fs::create_dir_all(&corpus)?;
        std::fs::create_dir_all(&artifacts)?;
        eprintln!("fuzzing {target} for {seconds} s");
        let log = artifacts.join("log.txt");
        let mut fuzzer = command(&binaries.join(target).to_string_lossy());
        fuzzer
            .arg(&corpus)
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-timeout={TIMEOUT_SECONDS}"))
            .arg("-max_len=2048")
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .stderr(std::fs::File::create(&log)?);
        let outcome = run::run(&mut fuzzer);
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        if outcome.is_err() {
            let tail: Vec<&str> = log.lines().rev().take(40).collect();
            eprintln!("{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
        outcome?;
        eprintln!("  {}", log.lines().find(|line| line.starts_with("Done ")).unwrap_or("done"));
    }
    Ok(())
}

fn build() -> Result<PathBuf> {
    // The engine is C++; its crate compiles it.
    provide(&["c++", "g++", "clang++"], "g++")?;
    let version = output(command("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default().to_owned();
    let target = root().join("target/fuzz");
    // Naming the target keeps the flags away from build scripts.
    run::run(
        cargo()
            .args(["build", "--release", "--quiet", "--locked", "--target", &host, "--manifest-path"])
            .arg(root().join("fuzz/Cargo.toml"))
            .env("CARGO_TARGET_DIR", &target)
            .env("RUSTFLAGS", FLAGS),
    )?;
    Ok(target.join(host).join("release"))
}
