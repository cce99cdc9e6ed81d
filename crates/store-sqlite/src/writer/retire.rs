//! Removing what is older or more than the retention allows, a bounded number of rows at a time.

use punctual_store::Retention;
use rusqlite::Row;
use rusqlite::types::Value;

use super::Writer;
use crate::fault::Fault;
use crate::value::{self, Bound};

impl Writer<'_> {
    /// Removes runs, then requests, then ledger entries, the oldest first; says how many.
    pub(crate) fn retire(&mut self, retention: &Retention) -> Result<u64, Fault> {
        let mut left = retention.rows_max;
        left -= self.retire_runs(retention, left)?;
        left -= self.retire_requests(retention, left)?;
        left -= self.retire_ledger(retention, left)?;
        Ok((retention.rows_max - left) as u64)
    }

    fn retire_runs(&mut self, retention: &Retention, rows_max: usize) -> Result<usize, Fault> {
        let many = surplus(self.known.closed, retention.runs_max).min(rows_max);
        let mut removed = 0;
        if many > 0 {
            let first = &mut self.statements.find_first_runs;
            let runs = first.query_map([value::count(many)], |row| row.get(0))?.collect::<Result<_, _>>()?;
            removed += self.remove_runs(runs)?;
        }
        let left = value::count(rows_max - removed);
        let old =
            self.statements.find_old_runs.query_map((Bound(retention.runs_before), left), |row| row.get(0));
        let runs = old?.collect::<Result<_, _>>()?;
        Ok(removed + self.remove_runs(runs)?)
    }

    fn remove_runs(&mut self, runs: Vec<i64>) -> Result<usize, Fault> {
        for run in &runs {
            self.statements.delete_closed_run.execute([run])?;
            self.statements.delete_detail.execute([run])?;
        }
        self.known.closed -= value::count(runs.len());
        Ok(runs.len())
    }

    fn retire_requests(&mut self, retention: &Retention, rows_max: usize) -> Result<usize, Fault> {
        let bounds = (Bound(retention.runs_before), value::count(rows_max));
        let old =
            self.statements.find_old_requests.query_map(bounds, |row| Ok((row.get(0)?, row.get(1)?)))?;
        let old: Vec<(String, String)> = old.collect::<Result<_, _>>()?;
        for request in &old {
            self.statements.delete_request.execute((&request.0, &request.1))?;
        }
        Ok(old.len())
    }

    fn retire_ledger(&mut self, retention: &Retention, rows_max: usize) -> Result<usize, Fault> {
        let many = surplus(self.known.ledger, retention.ledger_max).min(rows_max);
        let mut removed = 0;
        if many > 0 {
            let first = self.statements.find_first_ledger.query_map([value::count(many)], entry_key)?;
            let entries = first.collect::<Result<_, _>>()?;
            removed += self.remove_entries(entries)?;
        }
        let bounds = (Bound(retention.ledger_before), value::count(rows_max - removed));
        let old = self.statements.find_old_ledger.query_map(bounds, entry_key)?;
        let entries = old.collect::<Result<_, _>>()?;
        Ok(removed + self.remove_entries(entries)?)
    }

    fn remove_entries(&mut self, entries: Vec<[Value; 7]>) -> Result<usize, Fault> {
        for entry in &entries {
            self.statements.delete_ledger_entry.execute(rusqlite::params_from_iter(entry))?;
        }
        self.known.ledger -= value::count(entries.len());
        Ok(entries.len())
    }
}

/// How many are too many.
fn surplus(kept: i64, most: Option<u64>) -> usize {
    let most = most.map_or(i64::MAX, |most| i64::try_from(most).unwrap_or(i64::MAX));
    usize::try_from(kept.saturating_sub(most)).unwrap_or(0)
}

fn entry_key(row: &Row<'_>) -> rusqlite::Result<[Value; 7]> {
    Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?])
}
