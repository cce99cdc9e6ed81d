//! A node dies without a word: how long its schedules do not start; and how long when it leaves in order.

use std::time::Duration;

use anyhow::Result;
use jiff::SignedDuration;

use super::database::{connect, create as create_database, nodes};
use crate::embedded::node::{allow_all, create, every, schedule};

/// Schedules that start every second; each shard has some.
const SCHEDULES: usize = 640;

/// How often each is tried.
const ROUNDS: usize = 5;

/// The longest pause between two starts of a schedule around the end of its node, beyond its second.
pub async fn measure(url: &str) -> Result<()> {
    for crashes in [true, false] {
        let mut gaps = Vec::new();
        for _ in 0..ROUNDS {
            gaps.push(gap(url, crashes).await?);
        }
        gaps.sort_by(f64::total_cmp);
        let label = if crashes { "a node dies" } else { "a node leaves in order" };
        println!(
            "{label}, lease 5 s, 3 nodes, {SCHEDULES} schedules every second: longest gap of any schedule, {ROUNDS} rounds: median {:.3} s, most {:.3} s",
            gaps[ROUNDS / 2],
            gaps[ROUNDS - 1]
        );
    }
    Ok(())
}

async fn gap(url: &str, crashes: bool) -> Result<f64> {
    let database = create_database(url, "bench_failover").await?;
    let engines = nodes(&database, 3).await?;
    create(&engines[0], SCHEDULES, |index| {
        let spec = every(SignedDuration::from_secs(1), SignedDuration::ZERO);
        schedule(index, spec, allow_all())
    })
    .await?;
    tokio::time::sleep(Duration::from_secs(4)).await;
    if crashes {
        engines[1].crash();
    } else {
        engines[1].stop(Duration::from_secs(10)).await;
    }
    tokio::time::sleep(Duration::from_secs(8)).await;
    for engine in [&engines[0], &engines[2]] {
        engine.stop(Duration::from_secs(10)).await;
    }
    // Late starts are made up for, so what tells is when each was made, not how many there are.
    let client = connect(&database).await?;
    let row = client
        .query_one(
            "SELECT max(late)::float8 / 1e9 FROM (SELECT created_at - due_time AS late FROM punctual.run_live) AS runs",
            &[],
        )
        .await?;
    Ok(row.get(0))
}
