//! A naive second implementation of one schedule, occurrence by occurrence, that the real tree is compared with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use Phase::{Deferred, Doubtful, Ready, Running, Waiting};
use jiff::Timestamp;
use punctual_core::{
    Backfill, CatchupCount, Definition, Limits, Miss, NotStarted, OnResume, Origin, Outcome,
    OverlapPolicy as Overlap, Policies, RequestKey, Skip, StartId, Supersede, Target, Verdict,
};

use crate::story::{Event, Report};

mod backfills;

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Waiting,
    Deferred,
    /// The attempt, when the dispatcher is called, and whether it was called before and said nothing.
    Ready(u32, Timestamp, bool),
    /// Given up, unless it runs after all.
    Doubtful(NotStarted),
    Running,
}

#[derive(Clone, Copy)]
struct Start {
    id: StartId,
    due_time: Timestamp,
    overlap: Overlap,
    phase: Phase,
}

/// What one schedule should be after the events so far, from the update that defines it to its deletion.
#[derive(Default)]
pub(crate) struct Oracle {
    pub(crate) limits: Limits,
    pub(crate) verdicts: BTreeMap<StartId, Verdict>,
    /// The inner time is when the pause ends by itself.
    pub(crate) pause: Option<Option<Timestamp>>,
    pub(crate) remaining: Option<u32>,
    /// What is left of each, when its next pass is, and how often there was no room, counted from one.
    pub(crate) backfills: BTreeMap<RequestKey, (Backfill, Timestamp, u32)>,
    definition: Option<Arc<Definition>>,
    policies: Policies,
    /// Every occurrence with a nominal time up to here was decided or enqueued.
    watermark: Timestamp,
    marked: BTreeSet<Timestamp>,
    paced_until: Timestamp,
    failures_in_a_row: u32,
    /// All starts that have no end yet, in the order of being asked for.
    starts: Vec<Start>,
}

impl Oracle {
    /// One event: what was due is decided as things were, then the change is made, then what follows is decided.
    pub(crate) fn apply(&mut self, now: Timestamp, event: Event) {
        self.settle(now);
        match event {
            Event::Reported(id, report) => self.record(now, id, report),
            Event::Pause(until) => self.pause = Some(until),
            Event::Resume(how) if self.pause.is_some() => self.resume(now, how),
            Event::Resume(_) | Event::Wake => {}
            Event::Trigger(id, overlap) => self.enqueue(id, now, overlap),
            Event::Backfill(key, backfill) => drop(self.backfills.insert(key, (backfill, now, 0))),
            Event::Skip(nominal_time) => drop(self.marked.insert(nominal_time)),
            Event::Update(definition, new_spec) => {
                if new_spec {
                    self.take_due(now, true);
                    (self.watermark, self.marked) = (now, BTreeSet::new());
                }
                self.policies = definition.schedule().policies.clone();
                self.definition = Some(definition);
                self.ask_again(|_| true);
            }
            Event::SetRemaining(remaining) => {
                if self.pause.is_none() {
                    self.take_due(now, false);
                }
                self.remaining = remaining;
                self.ask_again(|_| true);
            }
            Event::Delete => {
                self.take_due(now, false);
                let waiting = self.ids(false).into_iter();
                waiting.for_each(|id| self.reject(id, NotStarted::Superseded(Supersede::Delete)));
                self.backfills.clear();
                self.definition = None;
            }
            Event::Retire => {
                let starts = self.starts.clone().into_iter();
                let unanswered = starts.filter(|start| start.phase != Running).map(|start| start.id);
                unanswered.for_each(|id| self.reject(id, NotStarted::Superseded(Supersede::Delete)));
            }
        }
        self.settle(now);
    }

    /// The starts that are ready or running, or else those that wait, in the order of being asked for.
    pub(crate) fn ids(&self, in_progress: bool) -> Vec<StartId> {
        let wanted = |start: &&Start| matches!(start.phase, Waiting | Deferred) != in_progress;
        self.starts.iter().filter(wanted).map(|start| start.id).collect()
    }

    fn settle(&mut self, now: Timestamp) {
        let Some(definition) = self.definition.clone() else { return };
        if self.pause.flatten().is_some_and(|until| until <= now) {
            self.resume(now, None);
        }
        if self.pause.is_none() && self.remaining != Some(0) {
            self.take_due(now, false);
        }
        self.take_backfills(now, &definition);
        self.call_dispatcher(now, definition.schedule().action.target);
        while self.starts.iter().any(|start| start.phase == Waiting) {
            self.decide_waiting(now);
            self.call_dispatcher(now, definition.schedule().action.target);
        }
    }

    fn deadline(&self, due_time: Timestamp) -> Timestamp {
        due_time + self.limits.catchup_window(self.policies.catchup_window)
    }

    fn room(&self) -> usize {
        let in_buffer = self.limits.buffered_starts_max.saturating_sub(self.ids(false).len());
        in_buffer.min(self.limits.starts_max.saturating_sub(self.starts.len()))
    }

    /// What has come due becomes a start, or is told why not. With a spec ends what jitter still holds back.
    fn take_due(&mut self, now: Timestamp, spec_ends: bool) {
        let Some(definition) = self.definition.clone() else { return };
        let passed = definition.compiled().iterate(self.watermark, now);
        let due: Vec<_> = passed.filter(|occurrence| spec_ends || occurrence.due_time <= now).collect();
        let old = due.iter().filter(|occurrence| self.deadline(occurrence.due_time) < now).count();
        let unwanted = match self.policies.catchup_count {
            CatchupCount::All => old,
            CatchupCount::Latest(count) => old.max(due.len().saturating_sub(count as usize)),
        };
        let mut full = false;
        for (index, occurrence) in due.iter().enumerate() {
            let id = StartId::new(occurrence.nominal_time, Origin::Spec);
            let marked = self.marked.remove(&occurrence.nominal_time);
            self.watermark = occurrence.nominal_time;
            // From the first one without room on all are dropped, marked or not.
            full |= index >= unwanted && !marked && self.room() == 0;
            match index {
                _ if occurrence.due_time > now => self.reject(id, NotStarted::Superseded(Supersede::Update)),
                _ if self.pause.is_some() => self.reject(id, NotStarted::Paused),
                _ if self.remaining == Some(0) => self.reject(id, NotStarted::Exhausted),
                _ if index < old => self.reject(id, NotStarted::Missed(Miss::Window)),
                _ if index < unwanted => self.reject(id, NotStarted::Missed(Miss::Count)),
                _ if full => self.reject(id, NotStarted::Dropped),
                _ if marked => self.reject(id, NotStarted::Skipped(Skip::User)),
                _ => self.enqueue(id, occurrence.due_time, None),
            }
        }
    }

    fn enqueue(&mut self, id: StartId, due_time: Timestamp, overlap: Option<Overlap>) {
        let overlap = overlap.unwrap_or(self.policies.overlap);
        self.starts.push(Start { id, due_time, overlap, phase: Waiting });
    }

    fn resume(&mut self, now: Timestamp, on_resume: Option<OnResume>) {
        if on_resume.unwrap_or(self.policies.on_resume) == OnResume::Skip {
            self.take_due(now, false);
        }
        (self.pause, self.failures_in_a_row) = (None, 0);
    }

    /// Why a start may not happen now. A first call that was made is made again, whatever has changed since.
    fn obstacle(&self, start: &Start, now: Timestamp) -> Option<NotStarted> {
        let late = self.deadline(start.due_time) < now;
        match start.phase {
            _ if start.id.is_manual() => None,
            Ready(1, _, true) => None,
            Ready(2.., _, false) if late => Some(NotStarted::Missed(Miss::StartFailed)),
            Waiting | Deferred | Ready(1, ..) if late => Some(NotStarted::Missed(Miss::Window)),
            _ if self.pause.is_some() => Some(NotStarted::Paused),
            Waiting | Deferred if self.remaining == Some(0) => Some(NotStarted::Exhausted),
            _ => None,
        }
    }

    /// The walk of the overlap policies over all that ask for a place.
    fn decide_waiting(&mut self, now: Timestamp) {
        let held = self.ids(true).len();
        let free = (self.policies.concurrency as usize).saturating_sub(held);
        let superseded = NotStarted::Superseded(Supersede::LaterStart);
        let (mut beside, mut chosen, mut kept, mut stops) = (Vec::new(), Vec::<Start>::new(), false, false);
        for start in self.starts.clone() {
            // One that was kept under buffer-one is looked at again, to defend its place.
            let defends = start.phase == Deferred && start.overlap == Overlap::BufferOne;
            let stopping = matches!(start.overlap, Overlap::CancelOther | Overlap::TerminateOther);
            match start.overlap {
                _ if start.phase != Waiting && !defends => {}
                _ if let Some(reason) = self.obstacle(&start, now) => self.reject(start.id, reason),
                Overlap::AllowAll => beside.push(start),
                _ if chosen.len() < free => chosen.push(start),
                Overlap::Skip => self.reject(start.id, NotStarted::Skipped(Skip::Overlap)),
                Overlap::BufferOne if kept => self.reject(start.id, NotStarted::Skipped(Skip::Overlap)),
                _ if stopping && held == 0 => {
                    chosen.pop().into_iter().for_each(|earlier| self.reject(earlier.id, superseded));
                    chosen.push(start);
                }
                _ => {
                    (kept, stops) = (true, stops || stopping);
                    self.set_phase(start.id, Deferred);
                }
            }
        }
        for Start { id, due_time, overlap, .. } in beside.into_iter().chain(chosen) {
            // Those that are about to start may use up the last actions.
            let on_its_way = |start: &&Start| matches!(start.phase, Ready(..) | Doubtful(_));
            let promised =
                self.starts.iter().filter(on_its_way).filter(|start| !start.id.is_manual()).count();
            let used_up = self.remaining.is_some_and(|left| left as usize <= promised);
            match self.policies.catchup_pace {
                _ if stops && overlap == Overlap::AllowAll => self.reject(id, superseded),
                _ if id.is_manual() => self.set_phase(id, Ready(1, now, false)),
                _ if used_up => self.set_phase(id, Deferred),
                Some(pace) if due_time + self.limits.catchup_window_min < now => {
                    self.set_phase(id, Ready(1, self.paced_until.max(now), false));
                    self.paced_until = self.paced_until.max(now) + pace;
                }
                _ => self.set_phase(id, Ready(1, now, false)),
            }
        }
    }

    fn call_dispatcher(&mut self, now: Timestamp, target: Target) {
        for start in self.starts.clone() {
            let Ready(attempt, call_time, _) = start.phase else { continue };
            match self.obstacle(&start, now) {
                _ if call_time > now => {}
                Some(reason) => self.set_phase(start.id, Doubtful(reason)),
                None if target == Target::Queue => self.mark_running(start.id),
                None => self.set_phase(start.id, Ready(attempt, now + self.limits.reconcile_after, true)),
            }
        }
    }

    /// What is said of a start from outside; it counts if the start has not moved on.
    fn record(&mut self, now: Timestamp, id: StartId, report: Report) {
        let Some(start) = self.starts.iter().find(|start| start.id == id).copied() else { return };
        let outcome = match (start.phase, report) {
            (Ready(..) | Doubtful(_), Report::Started | Report::Ended(_))
            | (Doubtful(_), Report::Running) => {
                self.mark_running(id); // the end may be heard of before the start
                return self.record(now, id, report);
            }
            (Doubtful(reason), Report::Gone) => return self.reject(id, reason),
            (Ready(..), Report::Refused) => return self.reject(id, NotStarted::Missed(Miss::Refused)),
            (Ready(attempt, ..), Report::Failed) => {
                let again = now + self.limits.backoff(attempt, id.nominal_ms as u64);
                let given_up = Doubtful(NotStarted::Missed(Miss::StartFailed));
                let late = again > self.deadline(start.due_time);
                return self.set_phase(id, if late { given_up } else { Ready(attempt + 1, again, false) });
            }
            (Running, Report::Gone) => Outcome::Failed,
            (Running, Report::Ended(outcome)) => outcome,
            _ => return,
        };
        self.starts.retain(|start| start.id != id);
        self.ask_again(|_| true);
        let failed = matches!(outcome, Outcome::Failed | Outcome::TimedOut);
        let failures = if outcome == Outcome::Succeeded { 0 } else { self.failures_in_a_row };
        self.failures_in_a_row = failures + u32::from(failed);
        let limit = self.policies.pause_after_failures.filter(|_| failed && self.pause.is_none());
        if limit.is_some_and(|limit| self.failures_in_a_row >= limit.max(1)) {
            self.pause = Some(None);
        }
    }

    fn mark_running(&mut self, id: StartId) {
        self.set_phase(id, Running);
        assert_eq!(self.verdicts.insert(id, Verdict::Started), None, "{id} is decided twice");
        self.remaining = self.remaining.map(|left| left.saturating_sub(u32::from(!id.is_manual())));
        if self.remaining == Some(0) {
            self.ask_again(|start| !start.id.is_manual());
        }
    }

    /// It does not happen; if it held a place, those that wait may have it.
    fn reject(&mut self, id: StartId, reason: NotStarted) {
        assert_eq!(self.verdicts.insert(id, Verdict::NotStarted(reason)), None, "{id} is decided twice");
        if self.ids(true).contains(&id) {
            self.ask_again(|_| true);
        }
        self.starts.retain(|start| start.id != id);
    }

    fn ask_again(&mut self, whom: fn(&Start) -> bool) {
        let deferred = self.starts.iter_mut().filter(|start| start.phase == Deferred && whom(start));
        deferred.for_each(|start| start.phase = Waiting);
    }

    fn set_phase(&mut self, id: StartId, phase: Phase) {
        self.starts.iter_mut().filter(|start| start.id == id).for_each(|start| start.phase = phase);
    }
}
