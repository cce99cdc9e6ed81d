//! What is older or more than the retention allows goes: runs, requests, ledger entries.

use jiff::Timestamp;

use super::Inner;
use crate::{Retention, RunKey, StoredRun, TreeKey};

impl Inner {
    /// Removes some of it, and says how much.
    pub(super) fn retire(&mut self, retention: &Retention) -> u64 {
        let mut left = retention.rows_max;
        left -= self.retire_runs(retention, left);
        left -= self.retire_requests(retention, left);
        left -= self.retire_ledger(retention, left);
        (retention.rows_max - left) as u64
    }

    fn retire_runs(&mut self, retention: &Retention, rows_max: usize) -> usize {
        let over = |run: &StoredRun| {
            run.closing.as_ref().is_some_and(|closing| closing.closed_at < retention.runs_before)
        };
        let surplus = surplus(self.closed.len(), retention.runs_max);
        let closed = self.closed.iter().enumerate();
        let old = closed.filter(|(place, (_, run))| *place < surplus || over(run)).map(|(_, (key, _))| *key);
        let old: Vec<RunKey> = old.take(rows_max).collect();
        for run in &old {
            self.closed.remove(run);
            self.details.remove(run);
        }
        old.len()
    }

    /// Requests go with the runs of their time.
    fn retire_requests(&mut self, retention: &Retention, rows_max: usize) -> usize {
        let mut gone = 0;
        self.requests.retain(|_, request| {
            let goes = gone < rows_max && request.made_at < retention.runs_before;
            gone += usize::from(goes);
            !goes
        });
        gone
    }

    /// The entries decided first go first; of those decided at one instant, any.
    fn retire_ledger(&mut self, retention: &Retention, rows_max: usize) -> usize {
        let mut decided: Vec<(Timestamp, TreeKey, usize)> = Vec::new();
        for (tree, entries) in &self.ledger {
            let times = entries.iter().map(|entry| entry.decided_at).enumerate();
            decided.extend(times.map(|(place, decided_at)| (decided_at, *tree, place)));
        }
        decided.sort();
        let surplus = surplus(decided.len(), retention.ledger_max);
        let goes = |place: usize, decided_at| place < surplus || decided_at < retention.ledger_before;
        let gone = decided.iter().enumerate().filter(|(place, entry)| goes(*place, entry.0));
        let mut gone: Vec<(TreeKey, usize)> =
            gone.map(|(_, (_, tree, place))| (*tree, *place)).take(rows_max).collect();
        gone.sort();
        // From the end, so that the others keep their places.
        for (tree, place) in gone.iter().rev() {
            self.ledger.entry(*tree).or_default().remove(*place);
        }
        gone.len()
    }
}

/// How many are too many.
fn surplus(kept: usize, most: Option<u64>) -> usize {
    most.map_or(0, |most| kept.saturating_sub(usize::try_from(most).unwrap_or(usize::MAX)))
}
