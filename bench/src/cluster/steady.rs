//! Schedules that start every ten seconds, on one node and on three: how many can be kept up with, how late they are below that,
//! and what the database does for each.
//!
//! Without a worker no run ever ends. With schedules that start every second each would have twenty runs on its hands soon, and
//! what was measured would be the size of their states.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Result;
use jiff::SignedDuration;

use super::ceiling::{self, Shape};
use super::database::{connect, create as create_database, nodes, transactions};
use crate::embedded::node::{Worker, allow_all, create, every, schedule};

/// Seconds between two starts of one schedule.
const PERIOD: i64 = 10;

/// One measurement.
struct Seen {
    starts: f64,
    completions: f64,
    /// In milliseconds, of the node that was latest.
    lateness: [f64; 3],
    /// Transactions for each start.
    transactions: f64,
    /// Its rows, in the middle of it.
    shape: Shape,
}

/// One load, second by second, for who profiles; then bare statements at the same load.
pub async fn probe(url: &str, count: usize, load: usize, with_worker: bool) -> Result<()> {
    let seen = run(url, count, load, with_worker, Duration::from_secs(20), true).await?;
    println!(
        "{count} nodes, offered {load}/s: {:.0} started/s, {:.0} completed/s, {:.3} transactions a start, lateness p50 {:.1} ms, p99 {:.1} ms, p99.9 {:.1} ms",
        seen.starts,
        seen.completions,
        seen.transactions,
        seen.lateness[0],
        seen.lateness[1],
        seen.lateness[2]
    );
    let [p50, p99, p999] = ceiling::lateness(url, seen.shape, load as f64).await?;
    println!("bare statements at that load: p50 {p50:.1} ms, p99 {p99:.1} ms, p99.9 {p999:.1} ms");
    Ok(())
}

/// Finds the highest load that is kept up with, then what bare statements do with the same rows, then lateness below it.
pub async fn measure(url: &str) -> Result<()> {
    for (count, with_worker) in [(1, false), (1, true), (3, false), (3, true)] {
        let label = if with_worker { "with a worker on each" } else { "without a worker" };
        println!("durable starts per second, schedules every {PERIOD} seconds, {count} nodes, {label}:");
        let (mut best, mut shape) = (0.0f64, Shape::FRESH);
        for load in [10_000, 20_000, 40_000, 60_000, 80_000, 100_000, 120_000] {
            let seen = run(url, count, load, with_worker, Duration::from_secs(8), false).await?;
            let done = if with_worker { seen.completions } else { seen.starts };
            println!(
                "  offered {load:>6}/s: {:>7.0} started/s, {:>7.0} completed/s, {:.3} transactions a start, lateness p50 {:.1} ms, p99 {:.1} ms",
                seen.starts, seen.completions, seen.transactions, seen.lateness[0], seen.lateness[1]
            );
            if seen.starts.min(done) > best {
                (best, shape) = (seen.starts.min(done), seen.shape);
            }
            if seen.starts.min(done) < 0.97 * load as f64 {
                break;
            }
        }
        let ceiling = ceiling::measure(url, shape).await?;
        println!("  most: {best:.0}/s, {:.2} of the raw ceiling ({ceiling:.0}/s)", best / ceiling);
        let load = (best / 2.0) as usize;
        let seen = run(url, count, load, with_worker, Duration::from_secs(10), false).await?;
        println!(
            "  at half of that: {:.3} transactions a start, lateness p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms",
            seen.transactions, seen.lateness[0], seen.lateness[1], seen.lateness[2]
        );
        let [p50, p99, p999] = ceiling::lateness(url, seen.shape, load as f64).await?;
        println!("  bare statements at that load: p50 {p50:.2} ms, p99 {p99:.2} ms, p99.9 {p999:.2} ms");
    }
    Ok(())
}

/// What the database does for one start, with ever more nodes at the same load.
pub async fn transactions_by_nodes(url: &str) -> Result<()> {
    println!("transactions for each start at 10,000 starts/s, by nodes:");
    for count in [1, 3, 8] {
        let seen = run(url, count, 10_000, false, Duration::from_secs(10), false).await?;
        println!(
            "  {count} nodes: {:.4} transactions a start ({:.0} started/s, lateness p99 {:.1} ms)",
            seen.transactions, seen.starts, seen.lateness[1]
        );
    }
    Ok(())
}

async fn run(
    url: &str,
    count: usize,
    load: usize,
    with_worker: bool,
    length: Duration,
    tells: bool,
) -> Result<Seen> {
    let database = create_database(url, "bench_steady").await?;
    let client = connect(url).await?;
    let engines = nodes(&database, count).await?;
    // Spread over the period, as schedules with jitter are.
    create(&engines[0], load * PERIOD as usize, |index| {
        let spec = every(SignedDuration::from_secs(PERIOD), SignedDuration::ZERO)
            .jitter(SignedDuration::from_millis(PERIOD * 1_000 - 1));
        schedule(index, spec, allow_all())
    })
    .await?;
    let workers: Vec<Worker> =
        if with_worker { engines.iter().map(Worker::start).collect() } else { Vec::new() };
    // Whatever piled up while they were created is not counted. The last that was created starts within two periods.
    tokio::time::sleep(Duration::from_secs(2 * PERIOD as u64)).await;
    let first = Shape::of(&database).await?;
    // Counting all states keeps the database busy for a moment.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let started = || engines.iter().map(|engine| engine.metrics().started()).sum::<u64>();
    let completed = || workers.iter().map(|worker| worker.completed.load(Ordering::Relaxed)).sum::<u64>();
    let before = (started(), completed(), transactions(&client, "bench_steady").await?);
    let lateness: Vec<_> = engines.iter().map(|engine| engine.metrics().lateness.snapshot()).collect();
    let begun = Instant::now();
    while begun.elapsed() < length {
        let (count, late) = (started(), engines[0].metrics().lateness.snapshot());
        tokio::time::sleep(Duration::from_secs(1)).await;
        if tells {
            let late = engines[0].metrics().lateness.since(&late);
            let [p50, p99] = [0.5, 0.99].map(|share| late.quantile(share) * 1_000.0);
            println!("  {} started, on one node p50 {p50:.1} ms, p99 {p99:.1} ms", started() - count);
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let (starts, completions) = (started() - before.0, completed() - before.1);
    let worked = transactions(&client, "bench_steady").await? - before.2;
    let quantiles = engines.iter().zip(&lateness).map(|(engine, before)| {
        let since = engine.metrics().lateness.since(before);
        [0.5, 0.99, 0.999].map(|share| since.quantile(share) * 1_000.0)
    });
    // They are taken now: the next look at the database makes others late.
    let quantiles: Vec<[f64; 3]> = quantiles.collect();
    let last = Shape::of(&database).await?;
    let shape = Shape { state_bytes: first.state_bytes.midpoint(last.state_bytes), ..last };
    let lateness =
        quantiles.into_iter().reduce(|one, other| [0, 1, 2].map(|place| one[place].max(other[place])));
    for worker in workers {
        worker.stop().await;
    }
    for engine in engines {
        engine.stop(Duration::from_secs(20)).await;
    }
    Ok(Seen {
        starts: starts as f64 / seconds,
        completions: completions as f64 / seconds,
        lateness: lateness.unwrap_or_default(),
        transactions: worked as f64 / starts.max(1) as f64,
        shape,
    })
}
