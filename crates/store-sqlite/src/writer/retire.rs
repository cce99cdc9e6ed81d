//! Removing what is older than the retention, a bounded number of rows at a time.

use punctual_store::Retention;
use rusqlite::types::Value;

use super::Writer;
use crate::fault::Fault;
use crate::value::{self, Bound};

impl Writer<'_> {
    /// Removes old runs, the first to have ended first, then old ledger entries; says how many.
    pub(crate) fn retire(&mut self, retention: &Retention) -> Result<u64, Fault> {
        let mut left = retention.rows_max;
        let runs: Vec<i64> = self
            .statements
            .find_old_runs
            .query_map((Bound(retention.runs_before), value::count(left)), |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        for run in &runs {
            self.statements.delete_closed_run.execute([run])?;
            self.statements.delete_detail.execute([run])?;
        }
        left -= runs.len();
        let entries: Vec<[Value; 7]> = self
            .statements
            .find_old_ledger
            .query_map((Bound(retention.ledger_before), value::count(left)), |row| {
                Ok([
                    row.get(0)?,
                    row.get(1)?,
                    row.get(2)?,
                    row.get(3)?,
                    row.get(4)?,
                    row.get(5)?,
                    row.get(6)?,
                ])
            })?
            .collect::<Result<_, _>>()?;
        for entry in &entries {
            self.statements.delete_ledger_entry.execute(rusqlite::params_from_iter(entry))?;
        }
        Ok((runs.len() + entries.len()) as u64)
    }
}
