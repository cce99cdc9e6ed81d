//! Hostile requests from the published document: schemathesis against a real server, which must never make a mistake of its own.

use std::process::Command;

use anyhow::{Context, Result};

use crate::run::{self, python, root};
use crate::server::Server;

/// The tool, pinned: another one would find other things on another day.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// How long it may look for trouble.
const SECONDS: u64 = 45;

/// Starts a server, lets schemathesis loose on it, and looks whether it is still well. Without the tool, which comes
/// from PyPI, the step is skipped, loudly.
pub fn run() -> Result<()> {
    let python = match python("openapi-python", &[SCHEMATHESIS]) {
        Ok(python) => python,
        Err(error) => {
            eprintln!("NOTE: THE HTTP API IS NOT FUZZED, {SCHEMATHESIS} cannot be had: {error:#}");
            return Ok(());
        }
    };
    let folder = root().join("target/openapi");
    let mut server = Server::start(&folder)?;
    let st = python.with_file_name("st");
    let document = format!("http://{}/openapi.json", server.address);
    let seconds = SECONDS.to_string();
    let mut command = Command::new(st);
    command
        .current_dir(&folder)
        .args(["run", &document])
        .args(["--checks", "not_a_server_error,content_type_conformance,response_schema_conformance"])
        .args(["--phases", "coverage,fuzzing", "--max-time", &seconds, "--workers", "1"])
        // Streams never end, and claims and heartbeats wait for as long as they are told.
        .args(["--exclude-path-regex", "/(watch|claim|heartbeat)$"])
        .args(["--request-timeout", "20", "--generation-deterministic", "--suppress-health-check", "all"])
        .args(["--warnings", "off", "--no-color"]);
    run::run(&mut command).context("schemathesis found something; the lines above say how to repeat it")?;
    server.is_well()
}
