//! Activity workers of Temporal's SDKs against two real servers on one PostgreSQL: the programs of the guide do a thousand
//! scheduled runs.

use anyhow::{Context, Result};
use punctual_testkit::Postgres;

use crate::node::node;
use crate::run::{self, command, provide, python, root};
use crate::server::{self, Server};

/// Pinned: another SDK would ask other things on another day.
const PYTHON: [&str; 1] = ["temporalio==1.35.0"];
const TYPESCRIPT: [&str; 2] = ["@temporalio/worker@1.22.0", "@temporalio/activity@1.22.0"];

/// Starts the servers and both workers. One that cannot be had, because its registry is out of reach, is skipped, loudly; the
/// other one then does all the runs.
pub fn run() -> Result<()> {
    let folder = root().join("target/temporal-workers");
    let mut languages = Vec::new();
    match python("temporal-python", &PYTHON) {
        Ok(python) => languages.push(("python", python, folder.clone())),
        Err(error) => skipped("PYTHON", &error),
    }
    match node("temporal-workers-node", &TYPESCRIPT) {
        // Its program must stand beside its packages.
        Ok(node) => languages.push(("typescript", node.program, node.folder)),
        Err(error) => skipped("TYPESCRIPT", &error),
    }
    if languages.is_empty() {
        return Ok(());
    }
    provide(&["python3"], "python3")?;
    server::prepare(&folder)?;
    let postgres = Postgres::start()?;
    let servers = ["left", "right"].map(|node| Server::on(node, &postgres.url()));
    let mut servers = servers.into_iter().collect::<Result<Vec<_>>>()?;
    let addresses: Vec<_> = servers.iter().map(|server| server.address.as_str()).collect();
    let mut driver = command("python3");
    driver.arg(root().join("clients/temporal/workers.py")).arg(addresses.join(","));
    driver.arg(root().join("docs/guides/temporal-workers.md")).arg(&folder);
    for (language, program, folder) in languages {
        driver.arg(language).arg(program).arg(folder);
    }
    run::run(&mut driver).with_context(|| format!("the workers' logs are in {}", folder.display()))?;
    servers.iter_mut().try_for_each(Server::is_well)
}

fn skipped(who: &str, error: &anyhow::Error) {
    eprintln!("NOTE: THE {who} WORKER COULD NOT BE TRIED, its SDK cannot be had: {error:#}");
}
