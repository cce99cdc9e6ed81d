//! The pure tasks: work that components ask of each other within one transition.

/// Work to do before a transition ends. Each one looks for itself whether it is stale, and then does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// Occurrences become buffered starts.
    Generate,
    /// The same for the ranges that people asked for.
    Backfill,
    /// Waiting becomes ready, deferred or not started; ready ones whose time has come are dispatched.
    ProcessBuffer,
    /// A schedule without a future ends.
    Close,
}

/// The tasks still to do, each at most once, in the order of the flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tasks(u8);

const ORDER: [Task; 4] = [Task::Generate, Task::Backfill, Task::ProcessBuffer, Task::Close];

impl Tasks {
    pub(crate) fn add(&mut self, task: Task) {
        self.0 |= 1 << task as u8;
    }

    pub(crate) fn take(&mut self) -> Option<Task> {
        let task = ORDER.into_iter().find(|task| self.0 >> *task as u8 & 1 == 1)?;
        self.0 &= !(1 << task as u8);
        Some(task)
    }
}
