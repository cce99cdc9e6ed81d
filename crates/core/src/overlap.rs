//! The decision table of the overlap policies: who starts, who waits, who does not happen.

use crate::mutant::{self, Mutant};
use crate::schedule::OverlapPolicy;

/// What was decided about a list of starts; each of them stands in exactly one list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision<T> {
    /// Start beside whatever runs.
    pub overlapping: Vec<T>,
    /// Start, taking a free place.
    pub chosen: Vec<T>,
    /// Wait for a run to end.
    pub kept: Vec<T>,
    /// Do not happen, because something is in progress.
    pub skipped: Vec<T>,
    /// Do not happen, because a later start took their place or asked for everything to stop.
    pub superseded: Vec<T>,
    /// Ask what runs to stop.
    pub cancel: bool,
    /// End what runs.
    pub terminate: bool,
}

/// Walks the waiting starts in order. `free` places are left before the policies ask; `busy` says whether
/// anything holds a place: it runs, is being started, or will be tried again.
pub fn decide<T: Copy>(waiting: &[(T, OverlapPolicy)], busy: bool, free: usize) -> Decision<T> {
    let mut decision = Decision {
        overlapping: Vec::new(),
        chosen: Vec::new(),
        kept: Vec::new(),
        skipped: Vec::new(),
        superseded: Vec::new(),
        cancel: false,
        terminate: false,
    };
    for &(start, policy) in waiting {
        if policy == OverlapPolicy::AllowAll {
            decision.overlapping.push(start);
            continue;
        }
        if decision.chosen.len() < free {
            decision.chosen.push(start);
            continue;
        }
        match policy {
            OverlapPolicy::Skip => decision.skipped.push(start),
            OverlapPolicy::BufferOne
                if decision.kept.is_empty()
                    || (decision.kept.len() == 1 && mutant::is(Mutant::BufferOneKeepsTwo)) =>
            {
                decision.kept.push(start);
            }
            OverlapPolicy::BufferOne => decision.skipped.push(start),
            OverlapPolicy::BufferAll => decision.kept.push(start),
            // With nothing in progress yet, the later start takes the place of the earlier one.
            OverlapPolicy::CancelOther | OverlapPolicy::TerminateOther if !busy => {
                decision.superseded.extend(decision.chosen.pop());
                decision.chosen.push(start);
            }
            OverlapPolicy::CancelOther => {
                decision.cancel = true;
                decision.kept.push(start);
            }
            OverlapPolicy::TerminateOther => {
                decision.terminate = true;
                decision.kept.push(start);
            }
            OverlapPolicy::AllowAll => unreachable!("handled above"),
        }
    }
    if decision.cancel || decision.terminate {
        // They would be stopped at once; the ledger says so instead.
        decision.superseded.append(&mut decision.overlapping);
    }
    decision
}
