//! Queues of durable runs: ours beside those that live in PostgreSQL, cell by cell in turns.

mod plan;
mod peer;
mod punctual;
mod table;

use anyhow::{Result, bail};
use peer::Peer;
use plan::{Contender, Latency, Load, Throughput};
pub use plan::{OURS, OURS_ON_POSTGRES, PEERS};
use punctual::Punctual;

/// Runs all contenders, or the named one.
pub fn run(only: Option<&str>) -> Result<()> {
    measure(|name| only.is_none_or(|only| only == name)).map(drop)
}

/// Runs the contenders that are wanted, and gives the best of each, in runs per second.
pub fn measure(wanted: impl Fn(&str) -> bool) -> Result<Vec<(String, f64)>> {
    let mut contenders: Vec<Box<dyn Contender>> = Vec::new();
    if wanted(OURS) {
        contenders.push(Box::new(Punctual::start()?));
    }
    if wanted(OURS_ON_POSTGRES)
        && let Ok(url) = std::env::var("PUNCTUAL_BENCH_POSTGRES")
    {
        contenders.push(Box::new(Punctual::start_on(&url)?));
    }
    for name in PEERS.into_iter().filter(|name| wanted(name)) {
        match Peer::start(name) {
            Ok(peer) => contenders.push(Box::new(peer)),
            Err(error) => eprintln!("note: {name} IS NOT MEASURED: {error:#}"),
        }
    }
    if contenders.is_empty() {
        bail!("nobody to measure; contenders are {OURS}, {OURS_ON_POSTGRES}, {}", PEERS.join(", "));
    }
    let names: Vec<String> = contenders.iter().map(|contender| contender.name().to_owned()).collect();
    let bests = throughput(&mut contenders, &names);
    latency(&mut contenders, &names, &bests);
    Ok(names.into_iter().zip(bests).filter_map(|(name, best)| Some((name, best?))).collect())
}

/// Our own side alone, from enqueue to completed, beside what SQLite itself can do.
pub fn alone(ceiling: f64) -> Result<()> {
    let mut ours = Punctual::start()?;
    println!("queue, from enqueue to completed, each step durable:");
    for (batch, workers) in [(1, 1), (1, 64), (100, 4), (500, 4)] {
        let rate = ours.throughput(plan::Cell { batch, workers })?.rate();
        let ratio = rate / ceiling;
        println!(
            "  batches of {batch:>3}, {workers:>2} workers: {rate:>7.0} runs/s, {ratio:.2} of the raw ceiling"
        );
    }
    Ok(())
}

/// Prints the table and gives the best of each contender, in runs per second.
fn throughput(contenders: &mut [Box<dyn Contender>], names: &[String]) -> Vec<Option<f64>> {
    // One row a cell, one place a contender, empty where it failed.
    let mut rows: Vec<Vec<Option<Throughput>>> = Vec::new();
    table::print_throughput_head(names);
    for cell in plan::cells() {
        let row = contenders.iter_mut().map(|contender| {
            let seen = contender.throughput(cell);
            noted(seen, contender.name(), &format!("batch {}, workers {}", cell.batch, cell.workers))
        });
        let row: Vec<_> = row.collect();
        table::print_throughput(cell, names, &row);
        rows.push(row);
    }
    let bests: Vec<_> = (0..names.len())
        .map(|index| rows.iter().filter_map(|row| row[index]).map(Throughput::rate).reduce(f64::max))
        .collect();
    table::print_bests(names, &bests);
    bests
}

fn latency(contenders: &mut [Box<dyn Contender>], names: &[String], bests: &[Option<f64>]) {
    let half = |best: f64| best / 2.0;
    let slowest = bests.iter().flatten().copied().reduce(f64::min);
    // A light load, one that all can carry, and for each half of what it can.
    let rates: [(&str, Vec<Option<f64>>); 3] = [
        ("light", vec![Some(plan::RATE_LIGHT); names.len()]),
        ("half of the slowest's best", vec![slowest.map(half); names.len()]),
        ("half of its own best", bests.iter().map(|best| best.map(half)).collect()),
    ];
    table::print_latency_head(names);
    for (label, rates) in rates {
        let row = contenders.iter_mut().zip(&rates).map(|(contender, rate)| {
            let seen = contender.latency(Load { rate: (*rate)? });
            noted(seen, contender.name(), label)
        });
        let row: Vec<Option<Latency>> = row.collect();
        table::print_latency(label, names, &rates, &row);
    }
    table::print_legend();
}

/// One contender that fails must not cost the others their numbers.
fn noted<T>(seen: Result<T>, name: &str, what: &str) -> Option<T> {
    seen.inspect_err(|error| eprintln!("note: {name}, {what}: {error:#}")).ok()
}
