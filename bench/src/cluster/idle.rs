//! Nothing is due: what a hundred thousand schedules cost the database.

use std::time::{Duration, Instant};

use anyhow::Result;
use jiff::Timestamp;
use punctual_core::Policies;
use punctual_spec::Spec;

use super::database::{connect, create as create_database, nodes, transactions};
use super::goals::{Figures, Idle};
use crate::embedded::node::{create, schedule};

const SCHEDULES: usize = 100_000;

/// Connections tell what they did with a delay, and after so many rows the server vacuums, in transactions that it counts too.
const SETTLE: Duration = Duration::from_secs(90);

/// Transactions per second and node.
pub async fn measure(url: &str, figures: &mut Figures) -> Result<()> {
    let client = connect(url).await?;
    for (count, schedules) in [(1, 0), (1, SCHEDULES), (3, SCHEDULES)] {
        let database = create_database(url, "bench_idle").await?;
        let engines = nodes(&database, count).await?;
        let due = Timestamp::from_second(Timestamp::now().as_second() + 24 * 3_600)?;
        create(&engines[0], schedules, |index| schedule(index, Spec::new().at(due), Policies::default()))
            .await?;
        tokio::time::sleep(SETTLE).await;
        let (before, begun) = (transactions(&client, "bench_idle").await?, Instant::now());
        tokio::time::sleep(Duration::from_secs(30)).await;
        let worked = transactions(&client, "bench_idle").await? - before;
        let rate = worked as f64 / begun.elapsed().as_secs_f64() / count as f64;
        println!("idle, {schedules} schedules, {count} nodes: {rate:.2} transactions/s for each node");
        figures.idle.push(Idle { schedules, nodes: count, rate });
        for engine in engines {
            engine.stop(Duration::from_secs(20)).await;
        }
    }
    Ok(())
}
