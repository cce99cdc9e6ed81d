//! One unit: everything that could refuse it is looked at before anything is written.

use punctual_store::{Batch, RunRequest, RunWrite, StoreError, TreeWrite, Unit};

use super::{Answer, Weight, Writer};
use crate::fault::Fault;
use crate::value::{self, Time};

impl Writer<'_> {
    /// Writes a batch, unit by unit; a refused unit has written nothing.
    pub(crate) fn commit(&mut self, batch: &Batch) -> Result<Vec<Result<(), StoreError>>, Fault> {
        batch.units.iter().map(|unit| self.commit_unit(unit)).collect()
    }

    fn commit_unit(&mut self, unit: &Unit) -> Result<Answer<()>, Fault> {
        if let Some(refusal) = self.check_rest(unit)? {
            // If the schedule has moved too, that is what the caller must hear.
            let of_tree = match &unit.tree {
                Some(write) => self.check_tree(write)?,
                None => None,
            };
            return Ok(Err(of_tree.unwrap_or(refusal)));
        }
        // The compare is the first write: if it finds another sequence, it has written nothing.
        if let Some(write) = &unit.tree
            && let Some(refusal) = self.write_tree(write)?
        {
            return Ok(Err(refusal));
        }
        if let Some(request) = &unit.request {
            self.write_request(request)?;
        }
        for write in &unit.runs {
            self.write_run(write)?;
        }
        Ok(Ok(()))
    }

    /// Whoever asks the same again shall hear that, whatever became of the runs.
    fn check_rest(&mut self, unit: &Unit) -> Result<Option<StoreError>, Fault> {
        if let Some(request) = &unit.request
            && let Some(refusal) = self.check_request(request)?
        {
            return Ok(Some(refusal));
        }
        self.check_runs(&unit.runs)
    }

    fn write_request(&mut self, request: &RunRequest) -> Result<(), Fault> {
        let runs = value::run_keys(&request.runs);
        let row = (&request.namespace[..], &request.id[..], Time(request.made_at), runs);
        self.statements.insert_request.execute(row)?;
        Ok(())
    }
}

/// How much a batch writes.
pub(crate) fn weight(batch: &Batch) -> Weight {
    let mut weight = Weight { rows: 1, bytes: 0 };
    for unit in &batch.units {
        weight.rows += unit.runs.len() + usize::from(unit.request.is_some());
        weight.bytes += unit.runs.iter().map(run_bytes).sum::<usize>();
        if let Some(write) = &unit.tree {
            weight.rows += 1 + write.ledger.len();
            weight.bytes += tree_bytes(write);
        }
    }
    weight
}

fn tree_bytes(write: &TreeWrite) -> usize {
    let definition = write.definition.as_ref().map_or(0, |bytes| bytes.len());
    let completion = write.completion.as_ref().and_then(Option::as_ref).map_or(0, |bytes| bytes.len());
    write.state.len() + definition + completion
}

fn run_bytes(write: &RunWrite) -> usize {
    match write {
        RunWrite::Insert(made) => made.body.len(),
        RunWrite::Retry { failure, .. } => failure.len(),
        RunWrite::Release { .. }
        | RunWrite::Stop { .. }
        | RunWrite::HandOver { .. }
        | RunWrite::Bury { .. } => 0,
        RunWrite::Close { closing, .. } => closing.payload.as_ref().map_or(0, |bytes| bytes.len()),
        RunWrite::Details { progress, log_tail, .. } => {
            [progress, log_tail].into_iter().flatten().map(|bytes| bytes.len()).sum()
        }
    }
}
