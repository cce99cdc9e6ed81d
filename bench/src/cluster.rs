//! Nodes on one PostgreSQL, beside what that PostgreSQL can do with the same rows in the same run.

mod ceiling;
pub mod database;
mod dbos;
mod failover;
mod goals;
mod herd;
mod host;
mod idle;
mod snapshot;
mod steady;

use anyhow::{Context, Result, bail, ensure};
use ceiling::Shape;
use goals::Figures;
use tokio::runtime::Runtime;

/// What is measured unless something is named, in this order.
const PARTS: [&str; 7] = ["steady", "transactions", "herd", "failover", "idle", "queue", "dbos"];

/// Runs all parts, or those that are named; then says which goals were met.
pub fn run(words: &[String]) -> Result<()> {
    let url = std::env::var("PUNCTUAL_BENCH_POSTGRES").context("run this by `cargo xtask bench cluster`")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut figures = Figures::default();
    match words[..] {
        ["probe", ref rest @ ..] => {
            let number = |place: usize| rest.get(place).and_then(|word| word.parse().ok());
            let (nodes, load) = (number(0).unwrap_or(1), number(1).unwrap_or(10_000));
            runtime.block_on(async {
                database::season(&url).await?;
                steady::probe(&url, nodes, load, rest.len() > 2).await
            })
        }
        // It takes ten minutes a part, so only who asks for it gets it.
        ["snapshot", ref rest @ ..] => {
            let plan = snapshot::Plan::read(rest)?;
            runtime.block_on(async {
                database::season(&url).await?;
                snapshot::measure(&url, &plan, &mut figures).await
            })?;
            goals::print(&figures);
            Ok(())
        }
        ref named => {
            if let Some(unknown) = named.iter().find(|word| !PARTS.contains(word)) {
                bail!("{unknown:?} is no part; parts: {}, snapshot, probe", PARTS.join(", "));
            }
            runtime.block_on(database::season(&url))?;
            measure_parts(&runtime, &url, named)
        }
    }
}

/// A part that fails does not cost the others their figures.
fn measure_parts(runtime: &Runtime, url: &str, named: &[&str]) -> Result<()> {
    let (mut figures, mut failed) = (Figures::default(), Vec::new());
    for part in PARTS.into_iter().filter(|part| named.is_empty() || named.contains(part)) {
        let measured = match part {
            // The contenders bring what they run on.
            "queue" => queue(&mut figures),
            part => runtime.block_on(measure(part, url, &mut figures)),
        };
        if let Err(error) = measured {
            eprintln!("note: {part} FAILED: {error:#}");
            failed.push(part);
        }
    }
    goals::print(&figures);
    ensure!(failed.is_empty(), "these parts failed: {}", failed.join(", "));
    Ok(())
}

async fn measure(part: &str, url: &str, figures: &mut Figures) -> Result<()> {
    match part {
        "steady" => steady::measure(url, figures).await,
        "transactions" => steady::transactions_by_nodes(url, figures).await,
        "herd" => herd::measure(url, ceiling::measure(url, Shape::FRESH).await?).await,
        "failover" => failover::measure(url, figures).await,
        "idle" => idle::measure(url, figures).await,
        "dbos" => dbos::measure(url, figures).await,
        other => bail!("{other:?} is no part"),
    }
}

/// Our queue beside those that live in the same PostgreSQL.
fn queue(figures: &mut Figures) -> Result<()> {
    let on_postgres = |name: &str| name != crate::queue::OURS;
    figures.queues = crate::queue::measure(on_postgres)?;
    Ok(())
}
