//! What PostgreSQL can do with the same rows: bare array statements, a transaction a batch, one and two connections.
//!
//! Lean rows are what a start needs at least: a state updated, a run with four columns appended. The same rows are ours: a run
//! has all that a queue and a list need, and an index to be claimed by; and they are as many and as large as ours were.

use std::time::{Duration, Instant};

use anyhow::Result;
use punctual_store_postgres::{Options, Postgres};
use tokio_postgres::{Client, Statement};

use super::database::{checkpoint, connect, create};

/// How many rows there are, and how large.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub schedules: i64,
    pub state_bytes: usize,
    pub run_bytes: usize,
}

impl Shape {
    /// As the engine's own are after a start or two.
    pub const FRESH: Shape = Shape { schedules: 100_000, state_bytes: 150, run_bytes: 70 };

    /// As they are in a database that nodes work on.
    pub async fn of(url: &str) -> Result<Shape> {
        let client = connect(url).await?;
        let sizes = "SELECT (SELECT count(*) FROM punctual.state),
            (SELECT coalesce(avg(length(bytes)), 0)::float8 FROM punctual.state),
            (SELECT coalesce(avg(length(body)), 0)::float8 FROM (SELECT body FROM punctual.run_live LIMIT 1000) AS seen)";
        let row = client.query_one(sizes, &[]).await?;
        let (state, run): (f64, f64) = (row.get(1), row.get(2));
        Ok(Shape { schedules: row.get(0), state_bytes: state as usize, run_bytes: run as usize })
    }
}

/// How often something is measured, and for how long.
#[derive(Clone, Copy)]
pub struct Windows {
    pub count: usize,
    pub length: Duration,
}

/// For so long.
const LENGTH: Duration = Duration::from_secs(4);

/// Which rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    Lean,
    Same,
}

/// Starts per second with the same rows, the best of batches as large as the engine's own.
pub async fn measure(url: &str, shape: Shape) -> Result<f64> {
    let Shape { schedules, state_bytes, run_bytes } = shape;
    println!(
        "raw ceiling: one state update and one run insert per start, durable; {schedules} schedules, states of {state_bytes} and runs of {run_bytes} bytes"
    );
    let mut best = 0.0f64;
    for rows in [Rows::Lean, Rows::Same] {
        for (batch, connections) in [(100, 1), (1_000, 1), (1_000, 2), (10_000, 2)] {
            let rate = one(url, rows, shape, batch, connections).await?;
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

async fn prepare(url: &str, shape: Shape) -> Result<String> {
    let Shape { schedules, state_bytes, .. } = shape;
    let url = create(url, "bench_ceiling").await?;
    drop(Postgres::open(Options::new(&url)).await?);
    let client = connect(&url).await?;
    client
        .batch_execute(&format!(
            "CREATE TABLE run (run bigint PRIMARY KEY, tree bigint, due bigint, body bytea);
             INSERT INTO punctual.state SELECT tree, 1, tree, convert_to(repeat('x', {state_bytes}), 'UTF8')
                 FROM generate_series(0, {schedules} - 1) AS tree;"
        ))
        .await?;
    client.batch_execute("VACUUM ANALYZE punctual.state").await?;
    checkpoint(&client).await?;
    Ok(url)
}

/// One connection that writes.
struct Writer {
    client: Client,
    update: Statement,
    insert: Statement,
    shape: Shape,
    /// Which of so many it is.
    place: (i64, i64),
    tree: i64,
    done: i64,
}

impl Writer {
    async fn open(url: &str, rows: Rows, shape: Shape, place: (i64, i64)) -> Result<Writer> {
        let client = connect(url).await?;
        client.batch_execute("SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off").await?;
        let update = client
            .prepare(
                "UPDATE punctual.state SET sequence = state.sequence + 1, due_time = new.due, bytes = new.bytes
                 FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS new (tree, due, bytes)
                 WHERE state.tree = new.tree",
            )
            .await?;
        let insert = client.prepare(if rows == Rows::Lean { LEAN } else { SAME }).await?;
        Ok(Writer { client, update, insert, shape, place, tree: 0, done: 0 })
    }

    /// A transaction with so many starts.
    async fn write(&mut self, batch: i64) -> Result<()> {
        let ((connection, connections), shape) = (self.place, self.shape);
        let mut trees = Vec::new();
        for _ in 0..batch {
            // Each connection has its own schedules, in an order that visits all of them, far apart.
            trees.push((self.tree * connections + connection) % shape.schedules);
            self.tree = (self.tree + 38_501) % (shape.schedules / connections);
        }
        let due: Vec<i64> = (self.done..self.done + batch).collect();
        let runs: Vec<i64> = due.iter().map(|number| number * connections + connection).collect();
        // Each state is another one up to its end, as ours are: of what stays the same PostgreSQL would log nothing.
        let state = |number: &i64| {
            let mut state = vec![7u8; shape.state_bytes.saturating_sub(8)];
            state.extend(number.to_le_bytes());
            state
        };
        let states: Vec<Vec<u8>> = due.iter().map(state).collect();
        let run = vec![9u8; shape.run_bytes];
        let bodies = vec![&run[..]; batch as usize];
        self.client.batch_execute("BEGIN").await?;
        self.client.execute(&self.update, &[&trees, &due, &states]).await?;
        self.client.execute(&self.insert, &[&runs, &trees, &due, &bodies]).await?;
        self.client.batch_execute("COMMIT").await?;
        self.done += batch;
        Ok(())
    }
}

async fn one(url: &str, rows: Rows, shape: Shape, batch: i64, connections: i64) -> Result<f64> {
    let url = prepare(url, shape).await?;
    let begun = Instant::now();
    let mut tasks = Vec::new();
    for connection in 0..connections {
        let url = url.clone();
        tasks.push(tokio::spawn(async move {
            let mut writer = Writer::open(&url, rows, shape, (connection, connections)).await?;
            while begun.elapsed() < LENGTH {
                writer.write(batch).await?;
            }
            anyhow::Ok(writer.done)
        }));
    }
    let mut done = 0;
    for task in tasks {
        done += task.await??;
    }
    Ok(done as f64 / begun.elapsed().as_secs_f64())
}

/// How late starts are written at this load if each of two connections writes all that is due, again and again: in
/// milliseconds, p50, p99 and p99.9 of each window after the first so many seconds. What the disk and the machine make late,
/// nobody makes earlier.
pub async fn lateness(
    url: &str,
    shape: Shape,
    load: f64,
    (before, windows): (Duration, Windows),
) -> Result<Vec<[f64; 3]>> {
    let url = prepare(url, shape).await?;
    let mut tasks = Vec::new();
    for connection in 0..2 {
        let url = url.clone();
        tasks.push(tokio::spawn(async move {
            let mut writer = Writer::open(&url, Rows::Same, shape, (connection, 2)).await?;
            let (begun, rate) = (Instant::now(), load / 2.0);
            let mut late = vec![Vec::new(); windows.count];
            loop {
                let elapsed = begun.elapsed();
                let window = elapsed.saturating_sub(before).div_duration_f64(windows.length) as usize;
                if window >= windows.count {
                    return anyhow::Ok(late);
                }
                let due = (elapsed.as_secs_f64() * rate) as i64;
                let first = writer.done;
                if due > first {
                    writer.write(due - first).await?;
                    if elapsed >= before {
                        let now = begun.elapsed().as_secs_f64();
                        let of_each = (first..due).step_by(16).map(|number| now - (number + 1) as f64 / rate);
                        late[window].extend(of_each);
                    }
                } else {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }));
    }
    let mut late = vec![Vec::new(); windows.count];
    for task in tasks {
        for (all, some) in late.iter_mut().zip(task.await??) {
            all.extend(some);
        }
    }
    Ok(late.into_iter().map(quantiles).collect())
}

fn quantiles(mut late: Vec<f64>) -> [f64; 3] {
    late.sort_by(f64::total_cmp);
    [0.5, 0.99, 0.999]
        .map(|share| late.get((share * late.len() as f64) as usize).copied().unwrap_or_default() * 1_000.0)
}
