//! Pure task `generate`: occurrences that have come due become buffered starts, or a verdict.

use jiff::Timestamp;

use super::{Generator, last_due};
use crate::id::{Origin, StartId};
use crate::invoker::Inbox;
use crate::ledger::{Miss, NotStarted, Skip, Verdict};
use crate::mutant::{self, Mutant};
use crate::schedule::CatchupCount;
use crate::scheduler::Scheduler;
use crate::transition::Transition;

impl Generator {
    /// Takes what is due in bounded work, however long the schedule was away: what is too old, too much or beyond
    /// the buffer becomes one range each.
    pub(crate) fn generate(
        &mut self,
        tx: &mut Transition<'_>,
        scheduler: &mut Scheduler,
        inbox: &mut Inbox<'_>,
    ) {
        assert!(self.watermark <= tx.now(), "watermark {} is after now {}", self.watermark, tx.now());
        // Stale: nothing may be taken, or nothing is due. What a paused schedule passes by is decided on resume.
        if self.next_time(scheduler).is_none_or(|due| due > tx.now()) {
            return;
        }
        self.miss_old(tx, scheduler);
        let definition = scheduler.definition.clone();
        let Some(last) = last_due(&definition.compiled, tx.now()) else { return };
        self.miss_surplus(tx, scheduler, last.nominal_time);

        for occurrence in definition.compiled.iterate(self.watermark, last.nominal_time) {
            let id = StartId::new(occurrence.nominal_time, Origin::Spec);
            if scheduler.skips.remove(&occurrence.nominal_time) && !mutant::is(Mutant::SkipMarksAreIgnored) {
                let verdict = Verdict::NotStarted(NotStarted::Skipped(Skip::User));
                tx.decide(id, verdict);
                scheduler.count(verdict, 1);
            } else if inbox.room(tx.limits()) > 0 {
                inbox.enqueue(tx, id, occurrence.due_time, scheduler.policies().overlap, None);
            } else {
                break;
            }
            self.watermark = occurrence.nominal_time;
            tx.changed().state = true;
        }
        let dropped = Verdict::NotStarted(NotStarted::Dropped);
        self.decide_through(tx, scheduler, last.nominal_time, dropped);
        if mutant::is(Mutant::WatermarkMovesToNow) {
            self.watermark = tx.now();
        }
    }

    /// What is older than the catch-up window is missed.
    fn miss_old(&mut self, tx: &mut Transition<'_>, scheduler: &mut Scheduler) {
        let window = tx.limits().catchup_window(scheduler.policies().catchup_window);
        let Ok(oldest) = tx.now().checked_sub(window) else { return };
        let just_before = oldest.checked_sub(jiff::SignedDuration::from_nanos(1)).unwrap_or(oldest);
        if let Some(last) = last_due(&scheduler.definition.compiled, just_before) {
            let missed = Verdict::NotStarted(NotStarted::Missed(Miss::Window));
            self.decide_through(tx, scheduler, last.nominal_time, missed);
        }
    }

    /// Of a backlog only the latest ones are wanted; the ones before them are missed.
    fn miss_surplus(&mut self, tx: &mut Transition<'_>, scheduler: &mut Scheduler, last: Timestamp) {
        let CatchupCount::Latest(wanted) = scheduler.policies().catchup_count else { return };
        let mut before = Some(last);
        if mutant::is(Mutant::CatchupTakesTheOldest) {
            return;
        }
        for _ in 0..wanted {
            let Some(time) = before.filter(|time| *time > self.watermark) else { return };
            before = scheduler.definition.compiled.previous(time).map(|occurrence| occurrence.nominal_time);
        }
        if let Some(through) = before.filter(|time| *time > self.watermark) {
            let missed = Verdict::NotStarted(NotStarted::Missed(Miss::Count));
            self.decide_through(tx, scheduler, through, missed);
        }
    }
}
