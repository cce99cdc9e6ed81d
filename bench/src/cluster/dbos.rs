//! DBOS on the same PostgreSQL: schedules every second, counted by what it recorded.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::database::{connect, create as create_database};

/// Schedules every second. It saturates at about a hundred starts per second.
const LOADS: [usize; 2] = [50, 200];

/// Seconds that are counted, once it runs.
const SECONDS: u64 = 20;

/// Its durable starts per second.
pub async fn measure(url: &str) -> Result<()> {
    let Ok(python) = std::env::var("PUNCTUAL_BENCH_DBOS") else {
        println!("DBOS is not measured: it could not be installed");
        return Ok(());
    };
    for load in LOADS {
        let database = create_database(url, "bench_dbos").await?;
        let mut script = Command::new(&python)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/cluster/dbos_schedules.py"))
            .args([&database, &load.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("DBOS does not start")?;
        // It polls for schedules once a second at first, and starts a thread for each.
        tokio::time::sleep(Duration::from_secs(15)).await;
        let client = connect(&database).await?;
        let done = "SELECT count(*) FROM dbos.workflow_status WHERE status = 'SUCCESS'";
        let before: i64 = client.query_one(done, &[]).await?.get(0);
        tokio::time::sleep(Duration::from_secs(SECONDS)).await;
        let after: i64 = client.query_one(done, &[]).await?.get(0);
        drop(script.stdin.take());
        script.kill()?;
        script.wait()?;
        ensure!(after > before, "DBOS started nothing");
        let rate = (after - before) as f64 / SECONDS as f64;
        println!("DBOS 3.3, one process, {load} schedules every second: {rate:.0} starts completed/s");
    }
    Ok(())
}
