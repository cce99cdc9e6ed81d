//! How often a node writes: few transactions where few are enough, and no more transactions for the same starts when there
//! are more nodes.
//!
//! A lane that is free could write at once whatever there is. With many nodes, each of them doing so, the same starts would cost
//! ever more transactions. So a node leaves a pause between two, the longer the more nodes there are. What somebody waits for
//! takes along what is there. One node writes it at once. Of several nodes each leaves a short pause before it, but only while the
//! transaction before had company for it, others that were waited for: who comes alone waits for nobody.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The time between the beginnings of two transactions, for each node that is there.
const PAUSE: Duration = Duration::from_micros(2_500);

/// A timer comes up to a millisecond late: by so much a pause is longer than what was asked for, on average.
const LATE: Duration = Duration::from_micros(500);

/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_millis(18);

/// The longest pause before something that somebody waits for.
const SHORT_MAX: Duration = Duration::from_millis(4);

/// So many rows are worth a transaction of their own.
const ROWS_ENOUGH: usize = 500;

/// How often a node writes.
pub(crate) struct Pace {
    nodes: AtomicU32,
    last: Mutex<Last>,
}

/// The last transaction.
#[derive(Clone, Copy, Default)]
struct Last {
    /// When it began.
    began: Option<Instant>,
    /// How much of it somebody waited for.
    urgent: usize,
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
        (PAUSE * self.nodes.load(Ordering::Relaxed) - LATE).min(PAUSE_MAX)
    }

    /// Until when to wait before so many rows are written that nobody waits for; nothing if now is as good.
    pub(crate) fn wait(&self, rows: usize) -> Option<Instant> {
        until(self.last().began?, self.pause(), rows)
    }

    /// The same where somebody waits for some of them.
    pub(crate) fn wait_for_company(&self, rows: usize) -> Option<Instant> {
        let Last { began, urgent } = self.last();
        let alone = urgent < 2 || self.nodes.load(Ordering::Relaxed) < 2;
        if alone { None } else { until(began?, self.pause().min(SHORT_MAX), rows) }
    }

    /// A transaction begins, and somebody waits for so much of it.
    pub(crate) fn begin(&self, urgent: usize) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) =
            Last { began: Some(Instant::now()), urgent };
    }

    fn last(&self) -> Last {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn until(began: Instant, pause: Duration, rows: usize) -> Option<Instant> {
    let next = began + pause;
    (rows < ROWS_ENOUGH && next > Instant::now()).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes come one by one, in even steps, and somebody waits for each or nobody for any; says how many transactions were
    /// begun in ten seconds.
    async fn transactions(nodes: usize, arrivals_per_second: u64, urgent: bool) -> u64 {
        let pace = Pace::new();
        pace.set_nodes(nodes);
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / arrivals_per_second as u32);
        let (mut begun, mut waiting) = (0, 0);
        for _ in 0..10 * arrivals_per_second {
            ticks.tick().await;
            waiting += 1;
            let until = if urgent { pace.wait_for_company(waiting) } else { pace.wait(waiting) };
            if until.is_none() {
                pace.begin(if urgent { waiting } else { 0 });
                (begun, waiting) = (begun + 1, 0);
            }
        }
        begun
    }

    #[tokio::test(start_paused = true)]
    async fn more_nodes_do_not_make_more_transactions() {
        let alone = transactions(1, 8_000, false).await;
        let eight = 8 * transactions(8, 1_000, false).await;
        assert!(alone <= 10 * 500 + 1, "{alone} transactions in ten seconds");
        assert!(eight <= alone + 8, "alone {alone}, with eight nodes {eight}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_seldom_does_not_wait() {
        for nodes in [1, 3] {
            assert_eq!(transactions(nodes, 100, false).await, 1_000);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_somebody_waits_for_waits_only_for_company_that_others_nodes_pay_for() {
        assert_eq!(transactions(1, 2_000, true).await, 20_000, "one node writes at once");
        assert_eq!(transactions(3, 200, true).await, 2_000, "each comes alone");
        let pace = Pace::new();
        pace.set_nodes(3);
        pace.begin(2);
        assert!(pace.wait_for_company(3).is_some() && pace.wait_for_company(ROWS_ENOUGH).is_none());
        tokio::time::advance(SHORT_MAX).await;
        assert!(pace.wait_for_company(3).is_none() && pace.wait(3).is_some());
        pace.begin(1);
        assert!(pace.wait_for_company(3).is_none(), "the last one had no company");
    }

    #[tokio::test(start_paused = true)]
    async fn much_does_not_wait() {
        let pace = Pace::new();
        pace.begin(0);
        assert!(pace.wait(ROWS_ENOUGH - 1).is_some());
        assert!(pace.wait(ROWS_ENOUGH).is_none());
    }
}
