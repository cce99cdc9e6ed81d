//! Handing ready runs to a worker, the oldest first.

use punctual_store::{Claim, LiveRun};

use super::Writer;
use crate::fault::Fault;
use crate::value::{self, Time};

impl Writer<'_> {
    /// Begins a new attempt of each run that is handed out.
    pub(crate) fn claim(&mut self, claim: &Claim) -> Result<Vec<LiveRun>, Fault> {
        // The keys are read to the end first: a change must not move what is being read.
        let mut ready = Vec::new();
        let mut rows = self.statements.claim_ready.query((claim.queue.0, value::count(claim.runs_max)))?;
        while let Some(row) = rows.next()? {
            ready.push(row.get::<_, i64>(0)?);
        }
        drop(rows);
        let mut claimed = Vec::with_capacity(ready.len());
        for run in ready {
            let mut rows = self.statements.claim.query((run, &claim.worker[..], Time(claim.now)))?;
            while let Some(row) = rows.next()? {
                claimed.push(value::live_run(row)?);
            }
        }
        let count = claimed.len() as i64;
        self.depths.add(claim.queue.0, value::READY, -count);
        self.depths.add(claim.queue.0, value::RUNNING, count);
        Ok(claimed)
    }
}
