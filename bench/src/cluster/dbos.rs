//! DBOS on the same PostgreSQL: ever more schedules every second, counted by what it recorded.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio_postgres::Client;

use super::database::{connect, create as create_database};
use super::goals::Figures;

/// Schedules every second, until it no longer keeps up.
const LOADS: [usize; 6] = [50, 100, 200, 400, 800, 1_600];

/// It polls for schedules once a second at first, and starts a thread for each: this is how long that may take.
const BEFORE: Duration = Duration::from_secs(20);

/// How often it is counted with each load, and for how long. It works in bursts, second by second.
const WINDOWS: usize = 2;
const LENGTH: Duration = Duration::from_secs(10);

/// It keeps up if it completes this share of what is due: the rest may fall to the next window.
const KEPT_UP: f64 = 0.9;

/// In a second: starts that are durable, and those whose workflow has completed.
struct Seen {
    recorded: f64,
    completed: f64,
}

/// Its starts per second: the most in any window.
pub async fn measure(url: &str, figures: &mut Figures) -> Result<()> {
    let Ok(python) = std::env::var("PUNCTUAL_BENCH_DBOS") else {
        println!("DBOS is not measured: it could not be installed");
        return Ok(());
    };
    println!("DBOS 3.3, one process, schedules every second:");
    let mut most = Seen { recorded: 0.0, completed: 0.0 };
    for load in LOADS {
        let windows = offer(url, &python, load).await?;
        let count = windows.len() as f64;
        let [recorded, completed] = [|seen: &Seen| seen.recorded, |seen: &Seen| seen.completed]
            .map(|figure| windows.iter().map(figure).sum::<f64>() / count);
        println!("  {load:>5} due a second: {recorded:.0} starts recorded/s, {completed:.0} completed/s");
        for seen in &windows {
            most.recorded = most.recorded.max(seen.recorded);
            most.completed = most.completed.max(seen.completed);
        }
        if completed < KEPT_UP * load as f64 {
            break;
        }
    }
    ensure!(most.completed > 0.0, "DBOS started nothing");
    let Seen { recorded, completed } = most;
    println!("  most in any {} s: {recorded:.0} recorded/s, {completed:.0} completed/s", LENGTH.as_secs());
    // Of the two, the better one counts.
    figures.dbos = Some(recorded.max(completed));
    for ours in figures.steady.iter().filter(|ours| ours.nodes == 1) {
        // Ours without a worker are durable and wait, as those that are recorded do.
        let (what, theirs) = if ours.with_worker {
            ("started and completed", completed)
        } else {
            ("started", recorded.max(completed))
        };
        println!(
            "  one node of ours keeps up with {}/s {what}: {:.0} times as many; the goal is 500",
            ours.kept_up,
            ours.kept_up as f64 / theirs
        );
    }
    Ok(())
}

/// Ends with what measures it.
struct Script(Child);

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn offer(url: &str, python: &str, load: usize) -> Result<Vec<Seen>> {
    let database = create_database(url, "bench_dbos").await?;
    let script = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/cluster/dbos_schedules.py"))
        .args([&database, &load.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("DBOS does not start")?;
    let _script = Script(script);
    let client = connect(&database).await?;
    let begun = Instant::now();
    while begun.elapsed() < BEFORE && fired(&client).await < load as i64 {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let mut windows = Vec::new();
    for _ in 0..WINDOWS {
        let (before, begun) = (counts(&client).await?, Instant::now());
        tokio::time::sleep(LENGTH).await;
        let (after, seconds) = (counts(&client).await?, begun.elapsed().as_secs_f64());
        let [recorded, completed] = [0, 1].map(|place| (after[place] - before[place]) as f64 / seconds);
        windows.push(Seen { recorded, completed });
    }
    Ok(windows)
}

/// Schedules that have fired; none as long as it has not made its tables.
async fn fired(client: &Client) -> i64 {
    let fired = "SELECT count(*) FROM dbos.workflow_schedules WHERE last_fired_at IS NOT NULL";
    client.query_one(fired, &[]).await.map_or(0, |row| row.get(0))
}

/// Starts that are recorded, and those that have completed.
async fn counts(client: &Client) -> Result<[i64; 2]> {
    let counts = "SELECT count(*), count(*) FILTER (WHERE status = 'SUCCESS') FROM dbos.workflow_status";
    let row = client.query_one(counts, &[]).await?;
    Ok([row.get(0), row.get(1)])
}
