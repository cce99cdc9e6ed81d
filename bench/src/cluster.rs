//! Nodes on one PostgreSQL, beside what that PostgreSQL can do with the same rows in the same run.

mod ceiling;
pub mod database;
mod dbos;
mod failover;
mod herd;
mod host;
mod idle;
mod snapshot;
mod steady;

use anyhow::{Context, Result};
use ceiling::Shape;

/// Runs all scenarios, or the named one.
pub fn run(only: Option<&str>) -> Result<()> {
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    let url = std::env::var("PUNCTUAL_BENCH_POSTGRES").context("run this by `cargo xtask bench cluster`")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        database::season(&url).await?;
        if wanted("steady") {
            steady::measure(&url).await?;
        }
        if wanted("transactions") {
            steady::transactions_by_nodes(&url).await?;
        }
        if wanted("herd") {
            let ceiling = ceiling::measure(&url, Shape::FRESH).await?;
            herd::measure(&url, ceiling).await?;
        }
        if wanted("failover") {
            failover::measure(&url).await?;
        }
        if wanted("idle") {
            idle::measure(&url).await?;
        }
        if wanted("dbos") {
            dbos::measure(&url).await?;
        }
        if only == Some("probe") {
            let number = |place| std::env::args().nth(place).and_then(|word| word.parse().ok());
            let (nodes, load) = (number(3).unwrap_or(1), number(4).unwrap_or(10_000));
            steady::probe(&url, nodes, load, std::env::args().nth(5).is_some()).await?;
        }
        // It takes ten minutes each, so only who asks for it gets it.
        if only == Some("snapshot") {
            snapshot::measure(&url).await?;
        }
        Ok(())
    })
}
