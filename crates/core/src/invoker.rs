//! The invoker: the starts on their way, and the runs in progress.

use jiff::Timestamp;

use crate::id::StartId;
use crate::limits::Limits;
use crate::mutant::{self, Mutant};
use crate::schedule::{OverlapPolicy, Payload};
use crate::start::{BufferedStart, Phase, RecentRun};
use crate::task::Task;
use crate::transition::Transition;

mod execute;
mod process_buffer;
mod stop;

pub use execute::Dispatched;

/// Everything between "the spec said so" and "the run ended".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invoker {
    /// In the order in which they were asked for.
    pub(crate) starts: Vec<BufferedStart>,
    /// Runs that ended, the latest last.
    pub(crate) recent: Vec<RecentRun>,
    /// Late starts are released one after another; the next is not before this.
    paced_until: Timestamp,
}

impl Invoker {
    pub(crate) fn new(now: Timestamp) -> Invoker {
        Invoker { starts: Vec::new(), recent: Vec::new(), paced_until: now }
    }

    pub(crate) fn restore(
        starts: Vec<BufferedStart>,
        recent: Vec<RecentRun>,
        paced_until: Timestamp,
    ) -> Invoker {
        Invoker { starts, recent, paced_until }
    }

    pub(crate) fn paced_until(&self) -> Timestamp {
        self.paced_until
    }

    pub(crate) fn inbox(&mut self) -> Inbox<'_> {
        Inbox { starts: &mut self.starts }
    }

    pub(crate) fn find(&mut self, id: StartId) -> Option<&mut BufferedStart> {
        self.starts.iter_mut().find(|start| start.id == id)
    }

    /// Starts that wait for the overlap policy; those in progress take no room.
    pub(crate) fn waiting(&self) -> usize {
        self.starts.iter().filter(|start| !start.holds_place()).count()
    }

    /// Removes a start, so that a place becomes free and those that wait for one are looked at again.
    pub(crate) fn release(&mut self, tx: &mut Transition<'_>, id: StartId) -> Option<BufferedStart> {
        let index = self.starts.iter().position(|start| start.id == id)?;
        let released = self.starts.remove(index);
        self.look_again(tx);
        Some(released)
    }

    /// Lets those that wait be decided anew.
    pub(crate) fn look_again(&mut self, tx: &mut Transition<'_>) {
        let woken = !mutant::is(Mutant::DeferredAreNotWoken);
        for start in self.starts.iter_mut().filter(|start| start.phase == Phase::Deferred && woken) {
            start.phase = Phase::Waiting;
        }
        tx.changed().state = true;
        tx.add_task(Task::ProcessBuffer);
    }

    /// The last action was taken: starts of the spec that wait for one are decided.
    pub(crate) fn end_of_actions(&mut self, tx: &mut Transition<'_>) {
        let waits = |start: &&mut BufferedStart| start.phase == Phase::Deferred && !start.id.is_manual();
        for start in self.starts.iter_mut().filter(waits) {
            start.phase = Phase::Waiting;
        }
        tx.changed().state = true;
        tx.add_task(Task::ProcessBuffer);
    }

    /// When something here wants to be looked at again.
    pub(crate) fn next_time(&self, outside: bool, limits: &Limits) -> Option<Timestamp> {
        let times = self.starts.iter().filter_map(|start| match start.phase {
            Phase::Waiting | Phase::Deferred => None,
            Phase::Ready { not_before, sent_at: None, .. } => Some(not_before),
            Phase::Ready { sent_at: Some(sent_at), .. } => sent_at.checked_add(limits.reconcile_after).ok(),
            Phase::Doubtful { ask_at, .. } => Some(ask_at),
            Phase::Running { seen_at, stop, .. } => {
                let stop = stop.and_then(|stop| stop.not_before);
                let check = outside.then(|| seen_at.checked_add(limits.reconcile_after).ok()).flatten();
                stop.into_iter().chain(check).min()
            }
        });
        times.min()
    }
}

/// The only door into the invoker for new starts.
pub(crate) struct Inbox<'a> {
    starts: &'a mut Vec<BufferedStart>,
}

impl Inbox<'_> {
    /// How many starts may still be added. Runs in progress take no room in the buffer, but there is an end to them too.
    pub(crate) fn room(&self, limits: &Limits) -> usize {
        let in_buffer = limits.buffered_starts_max.saturating_sub(self.waiting());
        in_buffer.min(limits.starts_max.saturating_sub(self.starts.len()))
    }

    pub(crate) fn waiting(&self) -> usize {
        self.starts.iter().filter(|start| !start.holds_place()).count()
    }

    /// Adds a start; the same one twice is one.
    pub(crate) fn enqueue(
        &mut self,
        tx: &mut Transition<'_>,
        id: StartId,
        due_time: Timestamp,
        overlap: OverlapPolicy,
        input: Option<Payload>,
    ) {
        if self.starts.iter().any(|start| start.id == id) {
            return;
        }
        self.starts.push(BufferedStart { id, due_time, overlap, phase: Phase::Waiting, input });
        tx.changed().state = true;
        tx.add_task(Task::ProcessBuffer);
    }
}
