//! The engine on SQLite, beside what SQLite itself can do in the same run.

mod api;
mod ceiling;
mod herd;
pub mod idle;
mod backfill;
mod day;
pub mod node;
mod steady;

use anyhow::Result;
use ceiling::Order;

/// Runs all scenarios, or the named one.
pub fn run(only: Option<&str>) -> Result<()> {
    let wanted = |name: &str| only.is_none_or(|only| only == name);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ceiling = ceiling::measure()?;
    println!(
        "raw ceiling: one state update and one run insert per start, 100,000 schedules, one connection, durable"
    );
    for (order, batch, rate) in &ceiling {
        println!("  {order:?}, batches of {batch:>6}: {rate:>9.0} starts/s");
    }
    // What the engine is compared with: the same order, in batches as large as its own under load.
    let of = |wanted: Order| {
        ceiling
            .iter()
            .find(|(order, batch, _)| *order == wanted && *batch == 1_000)
            .map_or(1.0, |(.., rate)| *rate)
    };
    let (sorted, shuffled) = (of(Order::Sorted), of(Order::Shuffled));
    if wanted("steady") {
        runtime.block_on(steady::measure(shuffled))?;
    }
    if wanted("herd") {
        runtime.block_on(herd::measure(sorted))?;
    }
    if wanted("api") {
        runtime.block_on(api::measure())?;
    }
    if wanted("idle") {
        idle::run()?;
    }
    if wanted("backfill") {
        runtime.block_on(backfill::measure())?;
    }
    if wanted("queue") {
        crate::queue::alone(shuffled)?;
    }
    // The last, since it takes the longest.
    if wanted("day") {
        runtime.block_on(day::measure())?;
    }
    Ok(())
}
