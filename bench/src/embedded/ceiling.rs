//! What SQLite can do with the same rows: a bare loop, prepared statements, one transaction a batch.

use std::time::{Duration, Instant};

use anyhow::Result;
use rusqlite::{Connection, params};

const SCHEDULES: i64 = 100_000;
/// As large as the engine's own rows: a state record after some starts, and a run with a short input.
const STATE_BYTES: usize = 150;
const RUN_BYTES: usize = 90;

/// The order in which schedules come due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By key, as in a herd: neighbours share pages.
    Sorted,
    /// Any, as schedules with jitter do.
    Shuffled,
}

/// Starts per second by order and batch size.
pub fn measure() -> Result<Vec<(Order, usize, f64)>> {
    let mut rates = Vec::new();
    for (order, batch) in [
        (Order::Sorted, 1_000),
        (Order::Sorted, 10_000),
        (Order::Shuffled, 100),
        (Order::Shuffled, 1_000),
        (Order::Shuffled, 10_000),
    ] {
        let folder = tempfile::tempdir()?;
        let mut connection = Connection::open(folder.path().join("raw.db"))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(
            "CREATE TABLE state (tree INTEGER PRIMARY KEY, sequence INTEGER, due INTEGER, bytes BLOB);
             CREATE TABLE run (run INTEGER PRIMARY KEY, tree INTEGER, due INTEGER, bytes BLOB);",
        )?;
        let (state, run) = (vec![7u8; STATE_BYTES], vec![9u8; RUN_BYTES]);
        let filling = connection.transaction()?;
        for tree in 0..SCHEDULES {
            filling.execute("INSERT INTO state VALUES (?, 1, ?, ?)", params![tree, tree, state])?;
        }
        filling.commit()?;
        let (begun, mut done, mut tree) = (Instant::now(), 0i64, 0);
        while begun.elapsed() < Duration::from_secs(3) {
            let transaction = connection.transaction()?;
            {
                let mut update = transaction.prepare_cached(
                    "UPDATE state SET sequence = sequence + 1, due = ?2, bytes = ?3 WHERE tree = ?1",
                )?;
                let mut insert = transaction.prepare_cached("INSERT INTO run VALUES (?, ?, ?, ?)")?;
                for _ in 0..batch {
                    update.execute(params![tree, done, state])?;
                    insert.execute(params![done, tree, done, run])?;
                    done += 1;
                    // A step that shares no factor with the number of schedules visits all of them, far apart.
                    let step = if order == Order::Sorted { 1 } else { 38_501 };
                    tree = (tree + step) % SCHEDULES;
                }
            }
            transaction.commit()?;
        }
        rates.push((order, batch, done as f64 / begun.elapsed().as_secs_f64()));
    }
    Ok(rates)
}
