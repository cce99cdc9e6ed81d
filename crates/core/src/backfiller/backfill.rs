//! Pure task `backfill`: occurrences of the asked range become manual starts.

use jiff::Timestamp;

use super::Backfiller;
use crate::id::{Origin, RequestKey, StartId};
use crate::invoker::Inbox;
use crate::scheduler::Scheduler;
use crate::transition::Transition;

impl Backfiller {
    /// Takes as many as there is room for, then waits. Says whether it is through. Pause, limits, update and the
    /// catch-up window do not apply: a person asked.
    pub(crate) fn backfill(
        &mut self,
        tx: &mut Transition<'_>,
        key: RequestKey,
        scheduler: &Scheduler,
        inbox: &mut Inbox<'_>,
        room: usize,
    ) -> bool {
        // Stale: its time has not come.
        if self.not_before > tx.now() {
            return false;
        }
        let paced = if self.request.pace.is_some() { 1 } else { tx.limits().backfill_pass_max };
        let allowed = room.min(paced).min(inbox.room(tx.limits()));
        let overlap = self.request.overlap.unwrap_or(scheduler.policies().overlap);
        let compiled = &scheduler.definition.compiled;
        let mut taken = 0;
        let mut rest = compiled.iterate(self.watermark, self.request.through).peekable();
        while let Some(occurrence) = rest.next_if(|_| taken < allowed) {
            let id = StartId::new(occurrence.nominal_time, Origin::Request(key));
            inbox.enqueue(tx, id, tx.now(), overlap, None);
            self.watermark = occurrence.nominal_time;
            taken += 1;
        }
        self.taken += taken as u64;
        tx.changed().state = true;
        if rest.peek().is_none() {
            return true;
        }
        self.blocked_passes = if taken == 0 { self.blocked_passes + 1 } else { 0 };
        let wait = match self.request.pace {
            Some(pace) if taken > 0 => pace,
            Some(_) | None => tx.limits().backfill_rest(self.blocked_passes, key.0),
        };
        self.not_before = tx.now().checked_add(wait).unwrap_or(Timestamp::MAX);
        false
    }
}
