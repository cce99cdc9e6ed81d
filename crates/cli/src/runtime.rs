//! The two runtimes: a small one for clients, one with threads for a server.

use anyhow::{Context, Result};
use tokio::runtime::{Builder, Runtime};

/// For a command that asks and answers.
pub fn for_a_client() -> Result<Runtime> {
    Builder::new_current_thread().enable_all().build().context("cannot start a runtime")
}

/// For a server.
pub fn for_a_server() -> Result<Runtime> {
    Builder::new_multi_thread().enable_all().build().context("cannot start a runtime")
}
