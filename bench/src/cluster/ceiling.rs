//! What PostgreSQL can do with the same rows: bare array statements, a transaction a batch, one and two connections.
//!
//! Lean rows are what a start needs at least: a state updated, a run with four columns appended. The same rows are ours: a run
//! has all that a queue and a list need, and an index to be claimed by.

use std::time::{Duration, Instant};

use anyhow::Result;
use punctual_store_postgres::{Options, Postgres};

use super::database::{connect, create};

const SCHEDULES: i64 = 100_000;
/// As large as the engine's own rows: a state record after some starts, and a run with a short input.
const STATE_BYTES: usize = 150;
const RUN_BYTES: usize = 90;

/// Which rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    Lean,
    Same,
}

/// Starts per second with the same rows, the best of batches as large as the engine's own.
pub async fn measure(url: &str) -> Result<f64> {
    println!("raw ceiling: one state update and one run insert per start, 100,000 schedules, durable");
    let mut best = 0.0f64;
    for rows in [Rows::Lean, Rows::Same] {
        for (batch, connections) in [(100, 1), (1_000, 1), (1_000, 2), (10_000, 2)] {
            let rate = one(url, rows, batch, connections).await?;
            println!(
                "  {rows:?} rows, batches of {batch:>6}, {connections} connections: {rate:>9.0} starts/s"
            );
            if rows == Rows::Same && batch <= 1_000 {
                best = best.max(rate);
            }
        }
    }
    Ok(best)
}

const LEAN: &str = "INSERT INTO run (run, tree, due, body)
    SELECT run, tree, due, body FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[]) AS new (run, tree, due, body)";

const SAME: &str = "INSERT INTO punctual.run_live
        (run, queue, tree, nominal_ms, request, rank, due_time, created_at, keeper, body,
        attempt, state, stop, priority, keyed, limited, key)
    SELECT run, 1, tree, due, 0, due, due, due, 1, body, 0, 0, 0, 0, false, false, ''::bytea
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[]) AS new (run, tree, due, body)";

async fn one(url: &str, rows: Rows, batch: i64, connections: i64) -> Result<f64> {
    let url = create(url, "bench_ceiling").await?;
    drop(Postgres::open(Options::new(&url)).await?);
    let client = connect(&url).await?;
    client
        .batch_execute(&format!(
            "CREATE TABLE run (run bigint PRIMARY KEY, tree bigint, due bigint, body bytea);
             INSERT INTO punctual.state SELECT tree, 1, tree, convert_to(repeat('x', {STATE_BYTES}), 'UTF8')
                 FROM generate_series(0, {SCHEDULES} - 1) AS tree;"
        ))
        .await?;
    client.batch_execute("VACUUM ANALYZE punctual.state").await?;
    let length = Duration::from_secs(4);
    let begun = Instant::now();
    let mut tasks = Vec::new();
    for connection in 0..connections {
        let url = url.clone();
        tasks.push(tokio::spawn(async move {
            let client = connect(&url).await?;
            client.batch_execute("SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off").await?;
            let update = client
                .prepare(
                    "UPDATE punctual.state SET sequence = state.sequence + 1, due_time = new.due, bytes = new.bytes
                     FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS new (tree, due, bytes)
                     WHERE state.tree = new.tree",
                )
                .await?;
            let insert = client.prepare(if rows == Rows::Lean { LEAN } else { SAME }).await?;
            let (state, run) = (vec![7u8; STATE_BYTES], vec![9u8; RUN_BYTES]);
            let (mut done, mut tree) = (0i64, 0);
            while begun.elapsed() < length {
                let mut trees = Vec::new();
                for _ in 0..batch {
                    // Each connection has its own schedules, in an order that visits all of them, far apart.
                    trees.push((tree * connections + connection) % SCHEDULES);
                    tree = (tree + 38_501) % (SCHEDULES / connections);
                }
                let due: Vec<i64> = (done..done + batch).collect();
                let runs: Vec<i64> = due.iter().map(|number| number * connections + connection).collect();
                let states = vec![&state[..]; batch as usize];
                let bodies = vec![&run[..]; batch as usize];
                client.batch_execute("BEGIN").await?;
                client.execute(&update, &[&trees, &due, &states]).await?;
                client.execute(&insert, &[&runs, &trees, &due, &bodies]).await?;
                client.batch_execute("COMMIT").await?;
                done += batch;
            }
            anyhow::Ok(done)
        }));
    }
    let mut done = 0;
    for task in tasks {
        done += task.await??;
    }
    Ok(done as f64 / begun.elapsed().as_secs_f64())
}
