//! Measurements: release builds, peers in the same run, ratios with spread.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use punctual_testkit::Postgres;

use crate::node::node;
use crate::run::{self, cargo, python, root};
use crate::temporal;

/// The queues that we measure beside ours.
const QUEUES: [&str; 2] = ["pg-boss@12.35.0", "graphile-worker@0.18.0"];

/// Runs one benchmark of the `bench` workspace, or one part of it.
pub fn run(names: &[&str]) -> Result<()> {
    if let ["temporal", parts @ ..] = names {
        return temporal(parts);
    }
    let manifest = root().join("bench/Cargo.toml");
    let mut command = cargo();
    command
        .args(["run", "--release", "--quiet", "--locked", "--manifest-path"])
        .arg(manifest)
        .arg("--")
        .args(names);
    command.env("CARGO_TARGET_DIR", root().join("target/bench"));
    // Peers that are out of reach leave their columns empty: ours are measured all the same.
    let _postgres = match names {
        ["spec", ..] => {
            match python("bench-python", &["croniter==6.2.4", "tzdata"]) {
                Ok(python) => _ = command.env("PUNCTUAL_BENCH_PYTHON", python),
                Err(error) => eprintln!("note: no croniter to measure against: {error:#}"),
            }
            None
        }
        // By itself it needs nobody.
        ["queue", "punctual"] => None,
        ["queue", ..] => {
            let postgres = postgres(&mut command);
            queue_peers(&mut command);
            postgres
                .inspect_err(|error| eprintln!("note: NO PostgreSQL to measure queues on: {error:#}"))
                .ok()
        }
        ["cluster", parts @ ..] => {
            let postgres = postgres(&mut command)?;
            // Named parts need only what they use.
            let wanted = |part| parts.is_empty() || parts.contains(&part);
            if wanted("queue") {
                queue_peers(&mut command);
            }
            if wanted("dbos") {
                match python("bench-dbos", &["dbos==3.3.0"]) {
                    Ok(python) => _ = command.env("PUNCTUAL_BENCH_DBOS", python),
                    Err(error) => eprintln!("note: no DBOS to measure against: {error:#}"),
                }
            }
            Some(postgres)
        }
        _ => None,
    };
    run::run(&mut command)
}

/// Both servers as programs, asked by the same client.
fn temporal(parts: &[&str]) -> Result<()> {
    let python = python("temporal-python", &temporal::PYTHON)?;
    run::run(cargo().args(["build", "--release", "--quiet", "-p", "punctual"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let folder = root().join("target/bench-temporal");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    run::run(
        Command::new(&python)
            .arg(root().join("bench/temporal/compare.py"))
            .arg(target.join("release/punctual"))
            .arg(python.with_file_name("temporal"))
            .arg(&folder)
            .args(parts),
    )
}

/// A server to measure on, for as long as it is kept.
fn postgres(command: &mut Command) -> Result<Postgres> {
    let postgres = Postgres::start_to_measure()?;
    command.env("PUNCTUAL_BENCH_POSTGRES", postgres.url());
    Ok(postgres)
}

/// Provides what pg-boss and graphile-worker need besides a server.
fn queue_peers(command: &mut Command) {
    match node("bench-node", &QUEUES) {
        Ok(node) => {
            command.env("PUNCTUAL_BENCH_NODE", node.program);
            command.env("PUNCTUAL_BENCH_NODE_PACKAGES", node.folder);
        }
        Err(error) => eprintln!("note: NO PEERS to measure our queue against: {error:#}"),
    }
}
