//! What is measured of a queue, the same for all contenders.

use std::time::Duration;

use anyhow::Result;

/// The name of our own side.
pub const OURS: &str = "punctual";

/// The same, on the PostgreSQL that the peers use.
pub const OURS_ON_POSTGRES: &str = "punctual-postgres";

/// Our own side, on each of our stores.
pub const ALL_OURS: [&str; 2] = [OURS, OURS_ON_POSTGRES];

/// Those that we measure beside it: npm packages on one PostgreSQL.
pub const PEERS: [&str; 2] = ["pg-boss", "graphile-worker"];

/// For how long runs are enqueued in one cell; then the last ones are waited for.
pub const CELL_LENGTH: Duration = Duration::from_secs(3);

/// A cell goes on for longer until it has so many runs.
pub const CELL_RUNS_MIN: u64 = 200;

/// Producers wait while so many are enqueued and not handled: all contenders are fastest with short queues.
pub const UNDER_WAY_MAX: u64 = 10_000;

/// For how long a rate is held.
pub const LOAD_LENGTH: Duration = Duration::from_secs(8);

/// Runs that fell due together are enqueued together, up to so many.
pub const LOAD_BATCH_MAX: u64 = 500;

/// So many enqueues may be in progress under a load.
pub const LOAD_SENDERS_MAX: u64 = 4;

/// A load that is none, in runs per second.
pub const RATE_LIGHT: f64 = 100.0;

/// One way to use a queue.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// So many runs are enqueued at a time, and at most so many are claimed at a time.
    pub batch: u64,
    /// So many enqueue, and so many others claim and complete, each one batch after the other.
    pub workers: u64,
}

/// All cells, slow ones first.
pub fn cells() -> impl Iterator<Item = Cell> {
    [1, 10, 100, 500]
        .into_iter()
        .flat_map(|batch| [1, 4, 16, 64].into_iter().map(move |workers| Cell { batch, workers }))
}

/// What was done in one cell.
#[derive(Clone, Copy, Debug)]
pub struct Throughput {
    /// Runs that were enqueued and durably completed.
    pub runs: u64,
    /// From the first enqueue to the last completion.
    pub seconds: f64,
}

impl Throughput {
    /// Runs per second.
    pub fn rate(self) -> f64 {
        self.runs as f64 / self.seconds
    }
}

/// Runs that fall due one by one, evenly, whether or not the contender is ready for them.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Runs per second.
    pub rate: f64,
}

/// From when a run was due to be enqueued to when its handler started, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Latency {
    pub p50: f64,
    pub p99: f64,
}

/// Someone who keeps a queue: a peer, or we.
pub trait Contender {
    /// What the column is called.
    fn name(&self) -> &str;

    /// Enqueues for [`CELL_LENGTH`], at least [`CELL_RUNS_MIN`] and with at most [`UNDER_WAY_MAX`] under way, and ends when
    /// all are durably completed. Handlers do nothing.
    fn throughput(&mut self, cell: Cell) -> Result<Throughput>;

    /// Holds a rate for [`LOAD_LENGTH`], with workers as many as serve it best; an error when it cannot be held.
    fn latency(&mut self, load: Load) -> Result<Latency>;
}
