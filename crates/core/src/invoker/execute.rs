//! Side-effect task `execute`, in two pure halves: what to dispatch, and what came of it.

use jiff::Timestamp;

use super::Invoker;
use super::process_buffer::deadline;
use crate::id::StartId;
use crate::ledger::{Miss, NotStarted, Verdict};
use crate::mutant::{self, Mutant};
use crate::note::Note;
use crate::schedule::Target;
use crate::scheduler::Scheduler;
use crate::start::Phase;
use crate::transition::{Dispatch, Transition};

/// What came of handing a start to the dispatcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dispatched {
    /// It runs, since this instant. A repeated call that meets its first one says so too.
    Started {
        /// Since when.
        started_at: Timestamp,
    },
    /// Something failed that may work later.
    Failed,
    /// It will never work.
    Refused,
}

impl Invoker {
    /// Everything that is ready by now, in flight or not: what an owner that has just loaded the tree must do.
    /// Starts that another owner has dispatched already meet themselves by their key.
    pub fn plan_execute(&self, now: Timestamp, target: Target, dispatches_max: usize) -> Vec<Dispatch> {
        let ready = self.starts.iter().filter_map(|start| match start.phase {
            Phase::Ready { attempt, not_before, .. } if not_before <= now => {
                Some(Dispatch { start: start.id, attempt, target })
            }
            Phase::Ready { .. }
            | Phase::Waiting
            | Phase::Deferred
            | Phase::Doubtful { .. }
            | Phase::Running { .. } => None,
        });
        ready.take(dispatches_max).collect()
    }

    /// Hands on the ready starts whose time has come, once each, and again where no answer ever came; a start on a
    /// queue runs from here on.
    pub(super) fn dispatch_ready(&mut self, tx: &mut Transition<'_>, scheduler: &mut Scheduler) {
        let target = scheduler.definition.schedule.action.target;
        let (now, patience) = (tx.now(), tx.limits().reconcile_after);
        let mut due: Vec<(StartId, u32, bool)> = Vec::new();
        for start in &mut self.starts {
            let Phase::Ready { attempt, not_before, sent_at } = &mut start.phase else { continue };
            let silent =
                sent_at.is_none_or(|sent| sent.checked_add(patience).is_ok_and(|limit| limit <= now));
            if *not_before <= now && silent && due.len() < tx.limits().dispatches_max {
                due.push((start.id, *attempt, sent_at.is_some()));
                *sent_at = Some(now);
            }
        }
        for (start, attempt, sent_before) in due {
            // Found late, by an owner that came after an outage; or held back by a pause while it waits for its pace or is
            // tried again.
            let due_time = self.find(start).map_or(now, |start| start.due_time);
            let late = !sent_before && deadline(tx, scheduler, due_time) < now;
            let held = scheduler.pause.is_some() && (attempt > 1 || !sent_before);
            if !start.is_manual() && (late || held) {
                let why = match (late, attempt) {
                    (false, _) => NotStarted::Paused,
                    (true, 1) => NotStarted::Missed(Miss::Window),
                    (true, _) => NotStarted::Missed(Miss::StartFailed),
                };
                self.give_up(tx, start, why);
                continue;
            }
            tx.dispatch(Dispatch { start, attempt, target });
            if target == Target::Queue {
                self.mark_running(tx, scheduler, start, tx.now());
            }
        }
    }

    /// Records what the dispatcher said. A result for a start that has moved on is ignored.
    pub(crate) fn record_execute(
        &mut self,
        tx: &mut Transition<'_>,
        scheduler: &mut Scheduler,
        id: StartId,
        result: &Dispatched,
    ) {
        let Some(start) = self.find(id) else { return };
        let due_time = start.due_time;
        let attempt = match (start.phase, result) {
            (Phase::Ready { attempt, .. }, _) => attempt,
            // A call that was in flight has worked after all.
            (Phase::Doubtful { .. }, Dispatched::Started { .. }) => 0,
            (Phase::Doubtful { .. } | Phase::Waiting | Phase::Deferred | Phase::Running { .. }, _) => return,
        };
        match result {
            Dispatched::Started { started_at } => self.mark_running(tx, scheduler, id, *started_at),
            Dispatched::Refused => self.reject(tx, scheduler, id, NotStarted::Missed(Miss::Refused)),
            Dispatched::Failed => {
                let wait = tx.limits().backoff(attempt, id.nominal_ms as u64);
                let not_before = tx.now().checked_add(wait).unwrap_or(Timestamp::MAX);
                if not_before > deadline(tx, scheduler, due_time) {
                    let why = NotStarted::Missed(Miss::StartFailed);
                    if mutant::is(Mutant::StartIsGivenUpUnasked) {
                        return self.reject(tx, scheduler, id, why);
                    }
                    return self.give_up(tx, id, why);
                }
                if mutant::is(Mutant::FailedStartIsNotRetried) {
                    return self.reject(tx, scheduler, id, NotStarted::Missed(Miss::StartFailed));
                }
                if let Some(start) = self.find(id) {
                    start.phase = Phase::Ready { attempt: attempt + 1, not_before, sent_at: None };
                }
                tx.changed().state = true;
                tx.note(Note::StartRetried { start: id, attempts: attempt, not_before });
            }
        }
    }

    /// Calls it off, as soon as its keeper says that it does not run: one of its calls may have worked unheard.
    fn give_up(&mut self, tx: &mut Transition<'_>, id: StartId, verdict: NotStarted) {
        let ask_at = tx.now().checked_add(tx.limits().call_timeout).unwrap_or(Timestamp::MAX);
        if let Some(start) = self.find(id) {
            start.phase = Phase::Doubtful { verdict, ask_at };
            tx.changed().state = true;
        }
    }

    /// Asks the keepers of doubtful starts, and asks again where no answer comes.
    pub(super) fn ask_about_doubtful(&mut self, tx: &mut Transition<'_>) {
        let again = tx.now().checked_add(tx.limits().reconcile_after).unwrap_or(Timestamp::MAX);
        for start in &mut self.starts {
            let Phase::Doubtful { ask_at, .. } = &mut start.phase else { continue };
            if *ask_at <= tx.now() {
                *ask_at = again;
                tx.check(start.id);
            }
        }
    }

    /// The start is a run now: counted, written down, and one action less.
    pub(crate) fn mark_running(
        &mut self,
        tx: &mut Transition<'_>,
        scheduler: &mut Scheduler,
        id: StartId,
        started_at: Timestamp,
    ) {
        let seen_at = tx.now();
        let Some(start) = self.find(id) else { return };
        start.phase = Phase::Running { started_at, seen_at, stop: None };
        if let Some(remaining) = scheduler.remaining_actions.as_mut().filter(|_| !id.is_manual()) {
            let consumed = match () {
                () if mutant::is(Mutant::ActionsAreNotConsumed) => 0,
                () if mutant::is(Mutant::ActionsAreConsumedTwice) => 2,
                () => 1,
            };
            *remaining = remaining.saturating_sub(consumed);
        }
        scheduler.last_event_at = scheduler.last_event_at.max(tx.now());
        tx.decide(id, Verdict::Started);
        scheduler.count(Verdict::Started, 1);
        tx.note(Note::RunStarted(id));
        if scheduler.is_exhausted() {
            self.end_of_actions(tx);
        }
        // A start that waits to stop this one could not ask before it ran.
        if self.starts.iter().any(|start| start.phase == Phase::Deferred) {
            self.ask_again(tx);
        }
    }
}
