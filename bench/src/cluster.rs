//! Nodes on one PostgreSQL, beside what that PostgreSQL can do with the same rows in the same run.

mod ceiling;
mod database;
mod steady;

use anyhow::{Context, Result};

/// Runs all scenarios, or the named one.
pub fn run(only: Option<&str>) -> Result<()> {
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    let url = std::env::var("PUNCTUAL_BENCH_POSTGRES").context("run this by `cargo xtask bench cluster`")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let ceiling = ceiling::measure(&url).await?;
        if wanted("steady") {
            steady::measure(&url, ceiling).await?;
        }
        Ok(())
    })
}
