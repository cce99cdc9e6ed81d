//! A naive second implementation of one schedule, occurrence by occurrence, that the real tree is compared with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{
    CatchupCount, Definition, Dispatched, Limits, Miss, NotStarted, OnResume, Origin, Outcome, OverlapPolicy,
    Policies, Skip, StartId, Supersede, Target, Verdict,
};
use punctual_spec::Occurrence;

use crate::story::Event;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Waiting,
    Deferred,
    Ready {
        attempt: u32,
        not_before: Timestamp,
        sent_at: Option<Timestamp>,
    },
    /// Given up, unless it runs after all.
    Doubtful {
        reason: NotStarted,
    },
    Running,
}

#[derive(Clone, Debug)]
struct Start {
    id: StartId,
    due_time: Timestamp,
    overlap: OverlapPolicy,
    phase: Phase,
}

impl Start {
    fn holds_place(&self) -> bool {
        matches!(self.phase, Phase::Ready { .. } | Phase::Doubtful { .. } | Phase::Running)
    }
}

/// What one schedule should be after the events so far.
#[derive(Clone, Debug)]
pub struct Oracle {
    definition: Arc<Definition>,
    policies: Policies,
    limits: Limits,
    /// Every occurrence with a nominal time up to here was decided or enqueued.
    watermark: Timestamp,
    marked: BTreeSet<Timestamp>,
    /// The inner time is when the pause ends by itself.
    pause: Option<Option<Timestamp>>,
    remaining: Option<u32>,
    failures_in_a_row: u32,
    deleted: bool,
    /// All starts that have no end yet, in the order of being asked for.
    starts: Vec<Start>,
    verdicts: BTreeMap<StartId, Verdict>,
}

impl Oracle {
    /// A schedule that has just been created.
    pub fn new(
        definition: Arc<Definition>,
        created_at: Timestamp,
        remaining: Option<u32>,
        limits: Limits,
    ) -> Oracle {
        Oracle {
            policies: definition.schedule().policies.clone(),
            definition,
            limits,
            watermark: created_at,
            marked: BTreeSet::new(),
            pause: None,
            remaining,
            failures_in_a_row: 0,
            deleted: false,
            starts: Vec::new(),
            verdicts: BTreeMap::new(),
        }
    }

    /// What became of every start and every occurrence that was decided.
    pub fn verdicts(&self) -> &BTreeMap<StartId, Verdict> {
        &self.verdicts
    }

    /// The starts that wait for the overlap policy or for a run to end.
    pub fn waiting(&self) -> Vec<StartId> {
        self.starts.iter().filter(|start| !start.holds_place()).map(|start| start.id).collect()
    }

    /// The starts that are ready or running, in the order of being asked for.
    pub fn in_progress(&self) -> Vec<StartId> {
        self.starts.iter().filter(|start| start.holds_place()).map(|start| start.id).collect()
    }

    /// Whether the schedule is paused.
    pub fn is_paused(&self) -> bool {
        self.pause.is_some()
    }

    /// How many starts of the spec may still happen.
    pub fn remaining(&self) -> Option<u32> {
        self.remaining
    }

    /// One event: what was due is decided as things were, then the change is made, then what follows is decided.
    pub fn apply(&mut self, now: Timestamp, event: Event) {
        self.settle(now);
        self.change(now, event);
        self.settle(now);
    }

    fn change(&mut self, now: Timestamp, event: Event) {
        match event {
            Event::Dispatched(id, result) => self.record_dispatched(now, id, result),
            Event::Completed { start, outcome } => self.record_completed(start, outcome),
            Event::Sighted { start, running } => self.record_sighted(start, running),
            _ if self.deleted => {}
            Event::Wake => {}
            Event::Pause { until } => self.pause = Some(until),
            Event::Resume { on_resume } => self.resume(now, on_resume.unwrap_or(self.policies.on_resume)),
            Event::Trigger { key, overlap } => self.enqueue(now, Origin::Request(key), now, overlap),
            Event::Backfill { key, from, through, overlap } => {
                // Ranges are open on the left, and the first time is included.
                let definition = self.definition.clone();
                for occurrence in definition.compiled().iterate(from - SignedDuration::from_nanos(1), through)
                {
                    self.enqueue(occurrence.nominal_time, Origin::Request(key), now, overlap);
                }
            }
            Event::Skip(nominal_time) => drop(self.marked.insert(nominal_time)),
            Event::UpdatePolicies(policies) => {
                self.policies = policies;
                self.ask_deferred_again();
            }
            Event::UpdateSpec(definition) => self.update_spec(now, definition),
            Event::SetRemaining(remaining) => {
                if self.remaining == Some(0) && !self.is_paused() {
                    self.reject_due(now, NotStarted::Exhausted);
                }
                self.remaining = remaining;
                self.ask_deferred_again();
            }
            Event::Delete => {
                self.reject_held_back(now);
                for id in self.waiting() {
                    self.discard(id, NotStarted::Superseded(Supersede::Delete));
                }
                self.deleted = true;
            }
        }
    }

    fn settle(&mut self, now: Timestamp) {
        if self.deleted {
            return;
        }
        if self.pause.flatten().is_some_and(|until| until <= now) {
            self.resume(now, self.policies.on_resume);
        }
        self.generate(now);
        loop {
            self.decide_waiting(now);
            self.send_ready(now);
            if self.starts.iter().all(|start| start.phase != Phase::Waiting) {
                break;
            }
        }
    }

    fn window(&self) -> SignedDuration {
        self.limits.catchup_window(self.policies.catchup_window)
    }

    fn due(&self, now: Timestamp) -> Vec<Occurrence> {
        // An occurrence is never due before its nominal time.
        let nominal_passed = self.definition.compiled().iterate(self.watermark, now);
        nominal_passed.filter(|occurrence| occurrence.due_time <= now).collect()
    }

    fn generate(&mut self, now: Timestamp) {
        if self.is_paused() || self.remaining == Some(0) {
            return;
        }
        let due = self.due(now);
        let oldest_due_time = now - self.window();
        let in_window = due.iter().filter(|occurrence| occurrence.due_time >= oldest_due_time).count();
        let wanted = match self.policies.catchup_count {
            CatchupCount::All => in_window,
            CatchupCount::Latest(count) => in_window.min(count as usize),
        };
        let mut full = false;
        let unwanted = due.len() - wanted;
        for (index, occurrence) in due.iter().enumerate() {
            let Occurrence { nominal_time, due_time, .. } = *occurrence;
            let id = StartId::new(nominal_time, Origin::Spec);
            let marked = self.marked.remove(&nominal_time);
            self.watermark = nominal_time;
            if due_time < oldest_due_time {
                self.reject(id, NotStarted::Missed(Miss::Window));
            } else if index < unwanted {
                self.reject(id, NotStarted::Missed(Miss::Count));
            } else if full {
                self.reject(id, NotStarted::Dropped);
            } else if marked {
                self.reject(id, NotStarted::Skipped(Skip::User));
            } else if self.waiting().len() < self.limits.buffered_starts_max
                && self.starts.len() < self.limits.starts_max
            {
                self.enqueue(nominal_time, Origin::Spec, due_time, None);
            } else {
                // From here on all are dropped, marked or not.
                full = true;
                self.reject(id, NotStarted::Dropped);
            }
        }
    }

    fn enqueue(
        &mut self,
        nominal_time: Timestamp,
        origin: Origin,
        due_time: Timestamp,
        overlap: Option<OverlapPolicy>,
    ) {
        let id = StartId::new(nominal_time, origin);
        if self.starts.iter().all(|start| start.id != id) {
            let overlap = overlap.unwrap_or(self.policies.overlap);
            self.starts.push(Start { id, due_time, overlap, phase: Phase::Waiting });
        }
    }

    /// Decides what has come due and was not taken.
    fn reject_due(&mut self, now: Timestamp, reason: NotStarted) {
        for occurrence in self.due(now) {
            self.reject(StartId::new(occurrence.nominal_time, Origin::Spec), reason);
            self.marked.remove(&occurrence.nominal_time);
            self.watermark = occurrence.nominal_time;
        }
    }

    /// The same, for the reason that it was not taken.
    fn reject_held_back(&mut self, now: Timestamp) {
        if self.is_paused() {
            self.reject_due(now, NotStarted::Paused);
        } else if self.remaining == Some(0) {
            self.reject_due(now, NotStarted::Exhausted);
        }
    }

    fn resume(&mut self, now: Timestamp, on_resume: OnResume) {
        if !self.is_paused() {
            return;
        }
        if on_resume == OnResume::Skip {
            self.reject_due(now, NotStarted::Paused);
        }
        self.pause = None;
        self.failures_in_a_row = 0;
    }

    fn update_spec(&mut self, now: Timestamp, definition: Arc<Definition>) {
        self.reject_held_back(now);
        // What is left has a nominal time that has passed, and jitter holds it back.
        for occurrence in self.definition.clone().compiled().iterate(self.watermark, now) {
            let id = StartId::new(occurrence.nominal_time, Origin::Spec);
            self.reject(id, NotStarted::Superseded(Supersede::Update));
        }
        self.watermark = self.watermark.max(now);
        self.marked.clear();
        self.policies = definition.schedule().policies.clone();
        self.definition = definition;
        self.ask_deferred_again();
    }

    fn decide_waiting(&mut self, now: Timestamp) {
        if self.starts.iter().all(|start| start.phase != Phase::Waiting) {
            return;
        }
        let window = self.window();
        for start in self.starts.clone() {
            let again = start.phase == Phase::Deferred && start.overlap == OverlapPolicy::BufferOne;
            if !(start.phase == Phase::Waiting || again) || start.id.is_manual() {
                continue;
            }
            let reason = match () {
                () if start.due_time + window < now => NotStarted::Missed(Miss::Window),
                () if self.is_paused() => NotStarted::Paused,
                () if self.remaining == Some(0) => NotStarted::Exhausted,
                () => continue,
            };
            self.discard(start.id, reason);
        }
        if self.starts.iter().any(|start| start.phase == Phase::Waiting) {
            self.resolve_overlap(now);
        }
    }

    /// The walk of the overlap policies over all that asks for a place.
    fn resolve_overlap(&mut self, now: Timestamp) {
        let held = self.in_progress().len();
        let free = (self.policies.concurrency as usize).saturating_sub(held);
        let (mut overlapping, mut chosen, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        let (mut skipped, mut superseded) = (Vec::new(), Vec::new());
        let mut stop_requested = false;
        for start in &self.starts {
            match start.phase {
                Phase::Waiting => {}
                Phase::Deferred if start.overlap == OverlapPolicy::BufferOne => {}
                _ => continue,
            }
            match start.overlap {
                OverlapPolicy::AllowAll => overlapping.push(start.id),
                _ if chosen.len() < free => chosen.push(start.id),
                OverlapPolicy::Skip => skipped.push(start.id),
                OverlapPolicy::BufferOne if kept.is_empty() => kept.push(start.id),
                OverlapPolicy::BufferOne => skipped.push(start.id),
                OverlapPolicy::BufferAll => kept.push(start.id),
                OverlapPolicy::CancelOther | OverlapPolicy::TerminateOther if held > 0 => {
                    stop_requested = true;
                    kept.push(start.id);
                }
                OverlapPolicy::CancelOther | OverlapPolicy::TerminateOther => {
                    superseded.extend(chosen.pop());
                    chosen.push(start.id);
                }
            }
        }
        if stop_requested {
            superseded.append(&mut overlapping);
        }
        for id in skipped {
            self.discard(id, NotStarted::Skipped(Skip::Overlap));
        }
        for id in superseded {
            self.discard(id, NotStarted::Superseded(Supersede::LaterStart));
        }
        for id in kept {
            self.set_phase(id, Phase::Deferred);
        }
        for id in overlapping.into_iter().chain(chosen) {
            // One that is about to start may use up the last action.
            let is_spec_ready = |start: &&Start| {
                start.holds_place() && start.phase != Phase::Running && !start.id.is_manual()
            };
            let promised = self.starts.iter().filter(is_spec_ready).count();
            let used_up = self.remaining.is_some_and(|remaining| remaining as usize <= promised);
            let phase = match used_up && !id.is_manual() {
                true => Phase::Deferred,
                false => Phase::Ready { attempt: 1, not_before: now, sent_at: None },
            };
            self.set_phase(id, phase);
        }
    }

    /// Hands what is ready to the dispatcher, again if it has not answered for long.
    fn send_ready(&mut self, now: Timestamp) {
        for start in self.starts.clone() {
            let Phase::Ready { attempt, not_before, sent_at } = start.phase else { continue };
            let send_at = sent_at.map_or(not_before, |sent_at| sent_at + self.limits.reconcile_after);
            if now < send_at {
                continue;
            }
            let late = sent_at.is_none() && now > start.due_time + self.window();
            let held_back = attempt > 1 && self.is_paused();
            let reason = match attempt {
                _ if start.id.is_manual() => None,
                1 if late => Some(NotStarted::Missed(Miss::Window)),
                _ if late => Some(NotStarted::Missed(Miss::StartFailed)),
                _ if held_back => Some(NotStarted::Paused),
                _ => None,
            };
            if let Some(reason) = reason {
                self.set_phase(start.id, Phase::Doubtful { reason });
            } else if self.definition.schedule().action.target == Target::Queue {
                self.mark_running(start.id);
            } else {
                self.set_phase(start.id, Phase::Ready { attempt, not_before, sent_at: Some(now) });
            }
        }
    }

    fn record_dispatched(&mut self, now: Timestamp, id: StartId, result: Dispatched) {
        let Some(start) = self.starts.iter().find(|start| start.id == id) else { return };
        let attempt = match start.phase {
            Phase::Ready { attempt, .. } => attempt,
            Phase::Doubtful { .. } if matches!(result, Dispatched::Started { .. }) => 0,
            _ => return,
        };
        let deadline = start.due_time + self.window();
        match result {
            Dispatched::Started { .. } => self.mark_running(id),
            Dispatched::Refused => {
                self.leave(id);
                self.reject(id, NotStarted::Missed(Miss::Refused));
            }
            Dispatched::Failed => {
                let not_before = now + self.limits.backoff(attempt, id.nominal_ms as u64);
                if not_before > deadline {
                    let reason = NotStarted::Missed(Miss::StartFailed);
                    self.set_phase(id, Phase::Doubtful { reason });
                } else {
                    self.set_phase(id, Phase::Ready { attempt: attempt + 1, not_before, sent_at: None });
                }
            }
        }
    }

    fn record_completed(&mut self, id: StartId, outcome: Outcome) {
        let Some(start) = self.starts.iter().find(|start| start.id == id && start.holds_place()) else {
            return;
        };
        if start.phase != Phase::Running {
            // Its end was heard of before its start.
            self.mark_running(id);
        }
        self.leave(id);
        match outcome {
            Outcome::Succeeded => self.failures_in_a_row = 0,
            Outcome::Failed | Outcome::TimedOut => {
                self.failures_in_a_row += 1;
                let limit = self.policies.pause_after_failures;
                if limit.is_some_and(|limit| self.failures_in_a_row >= limit.max(1)) && !self.is_paused() {
                    self.pause = Some(None);
                }
            }
            Outcome::Cancelled | Outcome::Terminated => {}
        }
    }

    /// Its keeper was asked: a doubtful start is decided, a run that nobody knows has failed.
    fn record_sighted(&mut self, id: StartId, running: bool) {
        let phase = self.starts.iter().find(|start| start.id == id).map(|start| start.phase);
        match (phase, running) {
            (Some(Phase::Doubtful { .. }), true) => self.mark_running(id),
            (Some(Phase::Doubtful { reason }), false) => {
                self.leave(id);
                self.reject(id, reason);
            }
            (Some(Phase::Running), false) => self.record_completed(id, Outcome::Failed),
            _ => {}
        }
    }

    fn mark_running(&mut self, id: StartId) {
        self.set_phase(id, Phase::Running);
        self.decide(id, Verdict::Started);
        if !id.is_manual() {
            self.remaining = self.remaining.map(|remaining| remaining.saturating_sub(1));
        }
        if self.remaining == Some(0) {
            for start in self.starts.iter_mut().filter(|start| !start.id.is_manual()) {
                if start.phase == Phase::Deferred {
                    start.phase = Phase::Waiting;
                }
            }
        }
    }

    /// One that waits does not happen.
    fn discard(&mut self, id: StartId, reason: NotStarted) {
        self.starts.retain(|start| start.id != id);
        self.reject(id, reason);
    }

    /// A start gives up its place.
    fn leave(&mut self, id: StartId) {
        self.starts.retain(|start| start.id != id);
        self.ask_deferred_again();
    }

    fn ask_deferred_again(&mut self) {
        for start in &mut self.starts {
            if start.phase == Phase::Deferred {
                start.phase = Phase::Waiting;
            }
        }
    }

    fn set_phase(&mut self, id: StartId, phase: Phase) {
        let start = self.starts.iter_mut().find(|start| start.id == id).expect("a start that exists");
        start.phase = phase;
    }

    fn reject(&mut self, id: StartId, reason: NotStarted) {
        self.decide(id, Verdict::NotStarted(reason));
    }

    fn decide(&mut self, id: StartId, verdict: Verdict) {
        let before = self.verdicts.insert(id, verdict);
        assert_eq!(before, None, "{id} is decided twice, now {verdict:?}");
    }
}
