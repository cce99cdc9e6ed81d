//! A server as people run it, for steps that look at it from outside.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::run::{self, cargo, root};

/// The server as the tests build it.
pub fn program() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join("debug/punctual")
}

/// Builds the server with what the tests build, so that it is there already: a build of its own would have other features, and
/// so other dependencies. Makes an empty folder for what it leaves.
pub fn prepare(folder: &Path) -> Result<()> {
    run::run(cargo().args(["test", "--quiet", "--workspace", "--test", "storm", "--no-run"]))?;
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder)?;
    Ok(())
}

/// A server as a process of its own. Ends with this value.
pub struct Server {
    child: Child,
    /// Where it listens, without a scheme.
    pub address: String,
}

impl Server {
    /// Builds it and starts it on a new file in this folder.
    pub fn start(folder: &Path) -> Result<Server> {
        prepare(folder)?;
        Server::on("node-1", &format!("sqlite:{}", folder.join("punctual.db").display()))
    }

    /// Starts it under this name on a database that others may share.
    pub fn on(node: &str, database: &str) -> Result<Server> {
        let mut child = Command::new(program())
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--node",
                node,
                "--database",
                database,
                "--log",
                "json",
            ])
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
        Ok(Server { child, address })
    }

    /// Whether it is still there.
    pub fn is_well(&mut self) -> Result<()> {
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
