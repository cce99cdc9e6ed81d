//! A year of minutes, backfilled and completed.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use jiff::{SignedDuration, Timestamp};
use punctual_core::{Backfill, Command, OverlapPolicy, RequestId};
use punctual_engine::Verb;
use punctual_spec::Spec;

use super::node::{self, Worker, allow_all, key, schedule};

const MINUTES: u64 = 525_600;

pub async fn measure() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let engine = node::start(&folder.path().join("backfill.db")).await?;
    engine.create(schedule(0, Spec::new().cron("* * * * *"), allow_all())).await?;
    let worker = Worker::start(&engine);
    let through = Timestamp::from_second(Timestamp::now().as_second() / 60 * 60 - 60)?;
    let from = through - SignedDuration::from_mins(MINUTES as i64 - 1);
    let overlap = Some(OverlapPolicy::AllowAll);
    let body = Backfill { from, through, overlap, pace: None, note: "".into() };
    let begun = Instant::now();
    engine.change(&key(0), Verb::Backfill(Command { request: RequestId::new("b"), body })).await?;
    let mut all_started = None;
    while worker.completed.load(Ordering::Relaxed) < MINUTES {
        tokio::time::sleep(Duration::from_millis(20)).await;
        if engine.metrics().started() >= MINUTES && all_started.is_none() {
            all_started = Some(begun.elapsed());
        }
        if begun.elapsed() > Duration::from_secs(300) {
            bail!("{} of {MINUTES} completed after five minutes", worker.completed.load(Ordering::Relaxed));
        }
    }
    let (started, done) =
        (all_started.unwrap_or(begun.elapsed()).as_secs_f64(), begun.elapsed().as_secs_f64());
    println!(
        "backfill of {MINUTES} occurrences of one schedule: started in {started:.1} s ({:.0}/s), completed in {done:.1} s ({:.0}/s)",
        MINUTES as f64 / started,
        MINUTES as f64 / done
    );
    worker.stop().await;
    engine.stop(Duration::from_secs(20)).await;
    Ok(())
}
