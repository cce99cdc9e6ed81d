//! Hostile requests from the published document: schemathesis against a real server, which must never make a mistake of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::run::{self, cargo, python, root};

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
    // As the tests build it, so that it is there already.
    run::run(cargo().args(["build", "--quiet", "--profile", "test", "-p", "punctual"]))?;
    let folder = root().join("target/openapi");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let mut server = Server::start(&folder)?;
    let st = python.with_file_name("st");
    let document = format!("{}/openapi.json", server.address);
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

/// A server on a file of its own. Ends with this value.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(folder: &std::path::Path) -> Result<Server> {
        let database = format!("sqlite:{}", folder.join("punctual.db").display());
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
        let mut child = Command::new(target.join("debug/punctual"))
            .args(["serve", "--listen", "127.0.0.1:0", "--database", &database, "--log", "json"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start the server")?;
        let mut lines = BufReader::new(child.stderr.take().context("no pipe from the server")?).lines();
        let address = loop {
            let Some(line) = lines.next().transpose()? else { bail!("the server ended before it served") };
            if let Some((_, rest)) = line.split_once("\"address\":\"") {
                break rest.split('"').next().unwrap_or_default().to_owned();
            }
        };
        // What it says must be read, or it would wait for us.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Server { child, address: format!("http://{address}") })
    }

    fn is_well(&mut self) -> Result<()> {
        std::thread::sleep(Duration::from_millis(100));
        ensure!(self.child.try_wait()?.is_none(), "the server is gone");
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
