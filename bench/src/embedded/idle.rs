//! A million schedules that sleep: memory, processor, and the time from a restart to the first start.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use jiff::SignedDuration;

use super::node::{self, allow_all, create, every, schedule};

const SCHEDULES: usize = 1_000_000;

/// Makes the file in this process, and measures in a fresh one.
pub fn run() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("idle.db");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let begun = Instant::now();
    runtime.block_on(async {
        let engine = node::start(&path).await?;
        create(&engine, SCHEDULES, |index| {
            // One of them wakes at every second, so that the first start after a restart can be seen.
            let length =
                if index == 0 { SignedDuration::from_secs(1) } else { SignedDuration::from_hours(24 * 365) };
            schedule(index, every(length, SignedDuration::ZERO), allow_all())
        })
        .await?;
        engine.stop(Duration::from_secs(30)).await;
        anyhow::Ok(())
    })?;
    drop(runtime);
    let (made, size) = (begun.elapsed().as_secs_f64(), std::fs::metadata(&path)?.len());
    println!(
        "a million schedules made in {made:.0} s ({:.0}/s in process), file {} MiB",
        SCHEDULES as f64 / made,
        size >> 20
    );
    let status =
        std::process::Command::new(std::env::current_exe()?).arg("embedded-idle").arg(&path).status()?;
    anyhow::ensure!(status.success(), "the measuring process failed");
    Ok(())
}

/// What a process that has just started needs.
pub fn measure(path: &str) -> Result<()> {
    let begun = Instant::now();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let engine = node::start(Path::new(path)).await?;
        let ready = begun.elapsed();
        while engine.metrics().started() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let first = begun.elapsed();
        tokio::time::sleep(Duration::from_secs(2)).await;
        let before = processor_seconds()?;
        let length = Duration::from_secs(10);
        tokio::time::sleep(length).await;
        let idle = (processor_seconds()? - before) / length.as_secs_f64();
        println!(
            "a million idle schedules: ready after {:.2} s, first start after {:.2} s, {} MiB resident, {:.2} % of one core (one schedule starts every second)",
            ready.as_secs_f64(),
            first.as_secs_f64(),
            resident_mib()?,
            idle * 100.0
        );
        engine.stop(Duration::from_secs(10)).await;
        anyhow::Ok(())
    })
}

fn resident_mib() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
    let kib: u64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
    Ok(kib >> 10)
}

fn processor_seconds() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let rest = stat.rsplit(')').next().context("no name")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
    Ok(ticks / 100.0)
}
