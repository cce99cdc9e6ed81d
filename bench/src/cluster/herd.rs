//! A herd: a hundred thousand schedules that are due in the same second, on three nodes.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use jiff::{SignedDuration, Timestamp};
use punctual_core::Policies;
use punctual_spec::Spec;

use super::database::{create as create_database, nodes};
use crate::embedded::node::{create, schedule};

const HERD: usize = 100_000;

/// How long it takes until the last one is durable.
pub async fn measure(url: &str, ceiling: f64) -> Result<()> {
    for count in [1, 3] {
        let database = create_database(url, "bench_herd").await?;
        let engines = nodes(&database, count).await?;
        let creating = Instant::now();
        // Long enough that all are created before, whatever the machine does.
        let due = Timestamp::now() + SignedDuration::from_secs(60);
        let due = Timestamp::from_second(due.as_second())?;
        create(&engines[0], HERD, |index| schedule(index, Spec::new().at(due), Policies::default())).await?;
        let created = HERD as f64 / creating.elapsed().as_secs_f64();
        if Timestamp::now() >= due {
            bail!("creating the herd took too long on this machine");
        }
        tokio::time::sleep(due.duration_since(Timestamp::now()).unsigned_abs()).await;
        let begun = Instant::now();
        let started = || engines.iter().map(|engine| engine.metrics().started()).sum::<u64>();
        while started() < HERD as u64 {
            tokio::time::sleep(Duration::from_millis(2)).await;
            if begun.elapsed() > Duration::from_secs(120) {
                bail!("{} of {HERD} started after two minutes", started());
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        println!(
            "herd of {HERD} due in the same second, {count} nodes: drained in {seconds:.2} s, {:.0} starts/s, {:.2} of the raw ceiling; created at {created:.0}/s",
            HERD as f64 / seconds,
            HERD as f64 / seconds / ceiling
        );
        for engine in engines {
            engine.stop(Duration::from_secs(20)).await;
        }
    }
    Ok(())
}
