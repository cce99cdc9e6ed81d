//! Stopping runs for cancel_other and terminate_other: asked until delivered, never twice at once.

use super::Invoker;
use crate::id::StartId;
use crate::note::Note;
use crate::schedule::OverlapPolicy;
use crate::start::{Phase, Stop, StopKind};
use crate::transition::{StopRequest, Transition};

impl Invoker {
    /// Asks every run in progress to stop; one that was asked as hard before is left alone.
    pub(super) fn request_stops(&mut self, tx: &mut Transition<'_>, kind: StopKind) {
        for start in &mut self.starts {
            let Phase::Running { stop, .. } = &mut start.phase else { continue };
            if stop.is_some_and(|stop| stop.kind >= kind) {
                continue;
            }
            let not_before = tx.now().checked_add(tx.limits().backoff(1, start.id.nominal_ms as u64)).ok();
            *stop = Some(Stop { kind, attempts: 1, not_before });
            tx.stop(StopRequest { start: start.id, kind });
            tx.note(Note::StopRequested(start.id));
        }
    }

    /// Deferred starts that came to stop others ask again, for runs that began since.
    pub(super) fn ask_again(&mut self, tx: &mut Transition<'_>) {
        let wants = |policy: OverlapPolicy| {
            self.starts.iter().any(|start| start.phase == Phase::Deferred && start.overlap == policy)
        };
        if wants(OverlapPolicy::TerminateOther) {
            self.request_stops(tx, StopKind::Terminate);
        } else if wants(OverlapPolicy::CancelOther) {
            self.request_stops(tx, StopKind::Cancel);
        }
    }

    /// Requests whose answer never came are made again.
    pub(super) fn repeat_stops(&mut self, tx: &mut Transition<'_>) {
        for start in &mut self.starts {
            let Phase::Running { stop: Some(stop), .. } = &mut start.phase else { continue };
            if stop.not_before.is_none_or(|time| time > tx.now()) {
                continue;
            }
            stop.attempts += 1;
            let wait = tx.limits().backoff(stop.attempts, start.id.nominal_ms as u64);
            stop.not_before = tx.now().checked_add(wait).ok();
            let kind = stop.kind;
            tx.stop(StopRequest { start: start.id, kind });
        }
    }

    /// The request reached the run; what remains is to wait for its end.
    pub(crate) fn stop_delivered(&mut self, tx: &mut Transition<'_>, id: StartId) {
        let Some(start) = self.find(id) else { return };
        if let Phase::Running { stop: Some(stop), .. } = &mut start.phase {
            stop.not_before = None;
            tx.changed().state = true;
        }
    }
}
