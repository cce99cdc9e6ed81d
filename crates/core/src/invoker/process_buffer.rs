//! Pure task `process_buffer`: waiting becomes ready, deferred, or not started; ready ones in time are dispatched.

use jiff::Timestamp;

use super::Invoker;
use crate::id::StartId;
use crate::ledger::{Miss, NotStarted, Skip, Supersede, Verdict};
use crate::mutant::{self, Mutant};
use crate::note::Note;
use crate::overlap;
use crate::schedule::OverlapPolicy;
use crate::scheduler::Scheduler;
use crate::start::{BufferedStart, Phase, StopKind};
use crate::transition::Transition;

impl Invoker {
    pub(crate) fn process_buffer(&mut self, tx: &mut Transition<'_>, scheduler: &mut Scheduler) {
        self.decide_waiting(tx, scheduler);
        self.dispatch_ready(tx, scheduler);
        self.repeat_stops(tx);
        self.ask_about_doubtful(tx);
    }

    fn decide_waiting(&mut self, tx: &mut Transition<'_>, scheduler: &mut Scheduler) {
        // A deferred buffer-one start is looked at again, so that it keeps its place against newcomers.
        let again = |start: &&BufferedStart| match start.phase {
            Phase::Waiting => true,
            Phase::Deferred => start.overlap == OverlapPolicy::BufferOne,
            Phase::Ready { .. } | Phase::Doubtful { .. } | Phase::Running { .. } => false,
        };
        // Stale: nobody new is waiting.
        let someone_waits =
            |starts: &[BufferedStart]| starts.iter().any(|start| start.phase == Phase::Waiting);
        if !someone_waits(&self.starts) {
            return;
        }
        self.reject_hopeless(tx, scheduler, again);
        if !someone_waits(&self.starts) {
            return;
        }
        let waiting: Vec<(StartId, OverlapPolicy)> =
            self.starts.iter().filter(again).map(|start| (start.id, start.overlap)).collect();
        let places =
            scheduler.policies().concurrency as usize + usize::from(mutant::is(Mutant::ConcurrencyIsOneMore));
        let held = self.starts.iter().filter(|start| start.holds_place()).count();
        let decision = overlap::decide(&waiting, held > 0, places.saturating_sub(held));

        for id in &decision.skipped {
            self.reject(tx, scheduler, *id, NotStarted::Skipped(Skip::Overlap));
        }
        for id in &decision.superseded {
            if mutant::is(Mutant::SupersededVanish) {
                self.starts.retain(|start| start.id != *id);
                continue;
            }
            self.reject(tx, scheduler, *id, NotStarted::Superseded(Supersede::LaterStart));
        }
        for id in &decision.kept {
            if let Some(start) = self.find(*id) {
                start.phase = Phase::Deferred;
            }
        }
        if decision.terminate {
            self.request_stops(tx, StopKind::Terminate);
        } else if decision.cancel {
            self.request_stops(tx, StopKind::Cancel);
        }
        for id in decision.overlapping.iter().chain(&decision.chosen) {
            self.make_ready(tx, scheduler, *id);
        }
    }

    /// Starts of the spec that may not happen now are ended before the policies look at them: nobody should give way to a
    /// start that is too late, paused or beyond the limit.
    fn reject_hopeless(
        &mut self,
        tx: &mut Transition<'_>,
        scheduler: &mut Scheduler,
        looked_at: fn(&&BufferedStart) -> bool,
    ) {
        let hopeless: Vec<(StartId, NotStarted)> = self
            .starts
            .iter()
            .filter(looked_at)
            .filter(|start| !start.id.is_manual())
            .filter_map(|start| {
                let why = if deadline(tx, scheduler, start.due_time) < tx.now() {
                    NotStarted::Missed(Miss::Window)
                } else if scheduler.pause.is_some() && !mutant::is(Mutant::PauseLetsTheBufferThrough) {
                    NotStarted::Paused
                } else if scheduler.is_exhausted() {
                    NotStarted::Exhausted
                } else {
                    return None;
                };
                Some((start.id, why))
            })
            .collect();
        for (id, why) in hopeless {
            self.reject(tx, scheduler, id, why);
        }
    }

    /// A chosen start may be dispatched, unless those on their way may use up the last actions: then it waits for them.
    fn make_ready(&mut self, tx: &mut Transition<'_>, scheduler: &mut Scheduler, id: StartId) {
        let enough = id.is_manual() || self.actions_left(scheduler) > 0;
        let Some(start) = self.find(id) else { return };
        if !enough {
            start.phase = Phase::Deferred;
            return;
        }
        let due_time = start.due_time;
        let not_before = self.paced(tx, scheduler, id, due_time);
        if let Some(start) = self.find(id) {
            start.phase = Phase::Ready { attempt: 1, not_before, sent_at: None };
            tx.note(Note::StartReadied(id));
        }
    }

    /// Late starts are released one after another where the schedule asks for it.
    fn paced(
        &mut self,
        tx: &Transition<'_>,
        scheduler: &Scheduler,
        id: StartId,
        due_time: Timestamp,
    ) -> Timestamp {
        let late = due_time.checked_add(tx.limits().catchup_window_min).is_ok_and(|limit| limit < tx.now());
        let Some(pace) = scheduler.policies().catchup_pace.filter(|_| late && !id.is_manual()) else {
            return tx.now();
        };
        let not_before = self.paced_until.max(tx.now());
        self.paced_until = not_before.checked_add(pace).unwrap_or(Timestamp::MAX);
        not_before
    }

    /// Actions that may still be taken, those already on their way set aside.
    fn actions_left(&self, scheduler: &Scheduler) -> u32 {
        let may_start = |start: &&BufferedStart| {
            !start.id.is_manual() && matches!(start.phase, Phase::Ready { .. } | Phase::Doubtful { .. })
        };
        let on_their_way = self.starts.iter().filter(may_start).count() as u32;
        scheduler.remaining_actions.map_or(u32::MAX, |remaining| remaining.saturating_sub(on_their_way))
    }

    /// Ends a start without a run.
    pub(crate) fn reject(
        &mut self,
        tx: &mut Transition<'_>,
        scheduler: &mut Scheduler,
        id: StartId,
        why: NotStarted,
    ) {
        let held_place = self.find(id).is_some_and(|start| start.holds_place());
        if held_place {
            self.release(tx, id);
        } else {
            self.starts.retain(|start| start.id != id);
        }
        tx.decide(id, Verdict::NotStarted(why));
        scheduler.count(Verdict::NotStarted(why), 1);
    }
}

/// Until when a start may be made or tried again.
pub(super) fn deadline(tx: &Transition<'_>, scheduler: &Scheduler, due_time: Timestamp) -> Timestamp {
    let window = tx.limits().catchup_window(scheduler.policies().catchup_window);
    let window = if mutant::is(Mutant::WindowIsDoubled) { window + window } else { window };
    due_time.checked_add(window).unwrap_or(Timestamp::MAX)
}
