//! A herd: a hundred thousand schedules that are due in the same second.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use jiff::{SignedDuration, Timestamp};
use punctual_core::Policies;
use punctual_spec::Spec;

use super::node::{self, create, schedule};

const HERD: usize = 100_000;

/// How long it takes until the last one is durable.
pub async fn measure(ceiling: f64) -> Result<()> {
    for restarted in [false, true] {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("herd.db");
        let mut engine = node::start(&path).await?;
        let creating = Instant::now();
        // Long enough that all are created before, whatever the machine does.
        let due = Timestamp::now() + SignedDuration::from_secs(25);
        let due = Timestamp::from_second(due.as_second())?;
        create(&engine, HERD, |index| schedule(index, Spec::new().at(due), Policies::default())).await?;
        let created = HERD as f64 / creating.elapsed().as_secs_f64();
        if restarted {
            engine.stop(Duration::from_secs(20)).await;
            drop(engine);
            engine = node::start(&path).await?;
        }
        if Timestamp::now() >= due {
            bail!("creating the herd took too long on this machine");
        }
        let wait = due.duration_since(Timestamp::now()).unsigned_abs();
        tokio::time::sleep(wait).await;
        let begun = Instant::now();
        while engine.metrics().started() < HERD as u64 {
            tokio::time::sleep(Duration::from_millis(2)).await;
            if begun.elapsed() > Duration::from_secs(60) {
                bail!("{} of {HERD} started after a minute", engine.metrics().started());
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        let rate = HERD as f64 / seconds;
        let label =
            if restarted { "just restarted, nothing in memory" } else { "created by the same process" };
        println!(
            "herd of {HERD} due in the same second ({label}): drained in {seconds:.2} s, {rate:.0} starts/s, {:.2} of the raw ceiling; created at {created:.0}/s",
            rate / ceiling
        );
        engine.stop(Duration::from_secs(20)).await;
    }
    Ok(())
}
