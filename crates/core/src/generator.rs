//! The generator: every occurrence up to its watermark is decided.

use jiff::Timestamp;
use punctual_spec::{CompiledSpec, Occurrence};

use crate::id::Origin;
use crate::ledger::{Entry, NotStarted, Verdict};
use crate::limits::Limits;
use crate::mutant::{self, Mutant};
use crate::scheduler::Scheduler;
use crate::transition::Transition;

mod generate;

/// Turns occurrences into buffered starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generator {
    /// Every occurrence with a nominal time up to here is decided or in the buffer. It counts nominal times, so
    /// that an occurrence that is waiting for its due time is never passed over.
    pub(crate) watermark: Timestamp,
}

impl Generator {
    /// When the next occurrence is due, if the schedule takes any.
    pub(crate) fn next_time(&self, scheduler: &Scheduler) -> Option<Timestamp> {
        if !scheduler.takes_occurrences() {
            return None;
        }
        scheduler.definition.compiled.next(self.watermark).map(|occurrence| occurrence.due_time)
    }

    /// Decides all occurrences after the watermark up to one of them, and moves the watermark there.
    pub(crate) fn decide_through(
        &mut self,
        tx: &mut Transition<'_>,
        scheduler: &mut Scheduler,
        through: Timestamp,
        verdict: Verdict,
    ) {
        let compiled = &scheduler.definition.compiled;
        let Some(first) = compiled.next(self.watermark).filter(|first| first.nominal_time <= through) else {
            return;
        };
        let (count, at_least) = count(compiled, self.watermark, through, tx.limits());
        let (from, decided_at) = (first.nominal_time, tx.now());
        let silent = match verdict {
            Verdict::NotStarted(NotStarted::Missed(_)) => mutant::is(Mutant::MissedLeavesNoEntry),
            Verdict::NotStarted(NotStarted::Dropped) => mutant::is(Mutant::DroppedLeavesNoEntry),
            _ => false,
        };
        if !silent {
            tx.decide_range(Entry {
                from,
                through,
                count,
                at_least,
                origin: Origin::Spec,
                verdict,
                decided_at,
            });
        }
        scheduler.count(verdict, count);
        scheduler.skips.retain(|skip| *skip > through);
        self.watermark = through;
    }
}

/// The last occurrence that is due before an instant, or at it.
pub(crate) fn last_due(compiled: &CompiledSpec, through: Timestamp) -> Option<Occurrence> {
    // Jitter keeps the order of occurrences, so at most the last nominal time is not yet due.
    let end = if mutant::is(Mutant::LastDueIsLeftOut) { through } else { next_nanosecond(through) };
    let mut found = compiled.previous(end);
    while let Some(occurrence) = found.filter(|occurrence| occurrence.due_time > through) {
        found = compiled.previous(occurrence.nominal_time);
    }
    found
}

fn next_nanosecond(time: Timestamp) -> Timestamp {
    time.checked_add(jiff::SignedDuration::from_nanos(1)).unwrap_or(time)
}

/// Counts occurrences in `(after, through]`, up to a bound.
fn count(compiled: &CompiledSpec, after: Timestamp, through: Timestamp, limits: &Limits) -> (u64, bool) {
    let counted = compiled.iterate(after, through).take(limits.counted_max + 1).count();
    (counted.min(limits.counted_max) as u64, counted > limits.counted_max)
}
