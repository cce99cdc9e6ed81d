//! Schedules that start every second: how many can be kept up with, and how late they are below that.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Result;
use jiff::SignedDuration;

use super::node::{self, Worker, allow_all, create, every, schedule};

/// One measurement.
struct Seen {
    starts: f64,
    completions: f64,
    lateness: [f64; 3],
}

/// Finds the highest load that is kept up with, then measures lateness below it.
pub async fn measure(ceiling: f64) -> Result<()> {
    for with_worker in [false, true] {
        let label = if with_worker { "with a worker that completes them" } else { "without a worker" };
        println!("durable starts per second, schedules every second, {label}:");
        let mut best = 0.0f64;
        for load in [5_000, 10_000, 15_000, 20_000, 25_000, 30_000, 40_000, 50_000, 60_000] {
            let seen = run(load, with_worker, Duration::from_secs(8)).await?;
            let kept_up = seen.starts > 0.97 * load as f64;
            let done = if with_worker { seen.completions } else { seen.starts };
            println!(
                "  offered {load:>6}/s: {:>7.0} started/s, {:>7.0} completed/s, lateness p50 {:.1} ms, p99 {:.1} ms, p99.9 {:.1} ms",
                seen.starts, seen.completions, seen.lateness[0], seen.lateness[1], seen.lateness[2]
            );
            best = best.max(seen.starts.min(done));
            if !kept_up {
                break;
            }
        }
        println!("  most: {best:.0}/s, {:.2} of the raw ceiling ({ceiling:.0}/s)", best / ceiling);
        for percent in [10, 50, 90] {
            let load = (best * f64::from(percent) / 100.0) as usize;
            let seen = run(load, with_worker, Duration::from_secs(10)).await?;
            println!(
                "  at {percent:>2} % ({load}/s): lateness p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms",
                seen.lateness[0], seen.lateness[1], seen.lateness[2]
            );
        }
    }
    Ok(())
}

async fn run(load: usize, with_worker: bool, length: Duration) -> Result<Seen> {
    let folder = tempfile::tempdir()?;
    let engine = node::start(&folder.path().join("steady.db")).await?;
    // Spread over the second, as schedules with jitter are.
    create(&engine, load, |index| {
        let spec = every(SignedDuration::from_secs(1), SignedDuration::ZERO)
            .jitter(SignedDuration::from_millis(999));
        schedule(index, spec, allow_all())
    })
    .await?;
    let worker = with_worker.then(|| Worker::start(&engine));
    // Whatever piled up while they were created is not counted.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let completed = |worker: &Option<Worker>| {
        worker.as_ref().map_or(0, |worker| worker.completed.load(Ordering::Relaxed))
    };
    let (before, done_before, lateness) =
        (engine.metrics().started(), completed(&worker), engine.metrics().lateness.snapshot());
    let begun = Instant::now();
    tokio::time::sleep(length).await;
    let seconds = begun.elapsed().as_secs_f64();
    let starts = (engine.metrics().started() - before) as f64 / seconds;
    let completions = (completed(&worker) - done_before) as f64 / seconds;
    let since = engine.metrics().lateness.since(&lateness);
    let lateness = [0.5, 0.99, 0.999].map(|share| since.quantile(share) * 1_000.0);
    if let Some(worker) = worker {
        worker.stop().await;
    }
    engine.stop(Duration::from_secs(20)).await;
    Ok(Seen { starts, completions, lateness })
}
