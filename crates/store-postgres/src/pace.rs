//! How often a node writes what nobody waits for: so that the database does no more transactions for the same starts when there
//! are more nodes.
//!
//! A lane that is free could write at once whatever there is. With many nodes, each of them doing so, the same starts would cost
//! ever more transactions. So a node leaves a pause between two, the longer the more nodes there are. Whatever somebody waits for
//! is written at once, and takes along what is there.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The pause between the beginnings of two transactions, for each node that is there.
const PAUSE: Duration = Duration::from_millis(2);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(16);

/// So many rows are worth a transaction of their own.
const ROWS_ENOUGH: usize = 500;

/// How often a node writes what nobody waits for.
pub(crate) struct Pace {
    nodes: AtomicU32,
    /// When the last transaction began.
    last: Mutex<Option<Instant>>,
}

impl Pace {
    pub(crate) fn new() -> Pace {
        Pace { nodes: AtomicU32::new(1), last: Mutex::default() }
    }

    /// So many nodes write to the same database.
    pub(crate) fn set_nodes(&self, nodes: usize) {
        self.nodes.store(nodes.clamp(1, 1_000) as u32, Ordering::Relaxed);
    }

    /// The pause between two transactions.
    pub(crate) fn pause(&self) -> Duration {
        (PAUSE * self.nodes.load(Ordering::Relaxed)).min(PAUSE_MAX)
    }

    /// Until when to wait before so many rows are written that nobody waits for; nothing if now is as good.
    pub(crate) fn wait(&self, rows: usize) -> Option<Instant> {
        let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let next = last? + self.pause();
        (rows < ROWS_ENOUGH && next > Instant::now()).then_some(next)
    }

    /// A transaction begins.
    pub(crate) fn begin(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes come one by one, in even steps; says how many transactions were begun in ten seconds.
    async fn transactions(nodes: usize, arrivals_per_second: u64) -> u64 {
        let pace = Pace::new();
        pace.set_nodes(nodes);
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / arrivals_per_second as u32);
        let (mut begun, mut waiting) = (0, 0);
        for _ in 0..10 * arrivals_per_second {
            ticks.tick().await;
            waiting += 1;
            if pace.wait(waiting).is_none() {
                pace.begin();
                (begun, waiting) = (begun + 1, 0);
            }
        }
        begun
    }

    #[tokio::test(start_paused = true)]
    async fn more_nodes_do_not_make_more_transactions() {
        let alone = transactions(1, 8_000).await;
        let eight = 8 * transactions(8, 1_000).await;
        assert!(alone <= 10 * 500 + 1, "{alone} transactions in ten seconds");
        assert!(eight <= alone + 8, "alone {alone}, with eight nodes {eight}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_seldom_does_not_wait() {
        for nodes in [1, 3] {
            assert_eq!(transactions(nodes, 100).await, 1_000);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn much_does_not_wait() {
        let pace = Pace::new();
        pace.begin();
        assert!(pace.wait(ROWS_ENOUGH - 1).is_some());
        assert!(pace.wait(ROWS_ENOUGH).is_none());
    }
}
