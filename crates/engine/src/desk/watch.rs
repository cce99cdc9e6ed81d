//! What is watched about live runs: leases, deadlines, and waits before the next attempt.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{RunAction, ScheduleKey, StartId, StopKind};
use punctual_store::{KeyMap, QueueKey, RunKey, TreeKey};

use crate::timers::Timers;

/// What is watched about one run.
#[derive(Clone, Debug)]
pub(crate) enum Watch {
    /// Nobody has it, and it must be over by this time.
    Queued {
        /// The time.
        last_time: Timestamp,
    },
    /// It waits for its next attempt.
    BackingOff {
        /// Where it will be claimed from.
        queue: QueueKey,
        /// Not before this.
        not_before: Timestamp,
        /// It must be over by this time.
        last_time: Option<Timestamp>,
    },
    /// A worker has it.
    Running(Box<Lease>),
}

/// A worker's right to one attempt of a run.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) worker: Arc<str>,
    pub(crate) attempt: u32,
    pub(crate) length: SignedDuration,
    pub(crate) until: Timestamp,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) queue: QueueKey,
    pub(crate) origin: Option<(TreeKey, StartId)>,
    pub(crate) key: ScheduleKey,
    pub(crate) created_at: Timestamp,
    pub(crate) started_at: Timestamp,
    /// The run's action without its input: how to retry.
    pub(crate) retry: RunAction,
    pub(crate) stop: Option<StopKind>,
    /// The last lines of its log; nothing if another process has written them.
    pub(crate) log_tail: Option<String>,
}

impl Watch {
    fn time(&self) -> Timestamp {
        match self {
            Watch::Queued { last_time } => *last_time,
            Watch::BackingOff { not_before, last_time, .. } => {
                last_time.map_or(*not_before, |last| last.min(*not_before))
            }
            Watch::Running(lease) => lease.deadline.map_or(lease.until, |deadline| deadline.min(lease.until)),
        }
    }
}

/// What is watched about a run, and since when.
struct Watched {
    watch: Watch,
    change: Change,
}

/// A moment in the life of the watches. What was read of a run before its watch changed must not undo the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Change(u64);

/// All that is watched.
#[derive(Default)]
pub(crate) struct Watches {
    by_run: KeyMap<RunKey, Watched>,
    /// Counts what was begun to be watched.
    changes: u64,
    timers: Timers<RunKey>,
    running: usize,
    /// How many runs of a queue each worker has, if any.
    by_worker: HashMap<(QueueKey, Arc<str>), u32>,
}

impl Watches {
    /// Watches a run, in place of what was watched about it before.
    pub(crate) fn set(&mut self, run: RunKey, watch: Watch) {
        self.timers.set(run, Some(watch.time()));
        if let Watch::Running(lease) = &watch {
            self.running += 1;
            *self.by_worker.entry((lease.queue, lease.worker.clone())).or_default() += 1;
        }
        self.changes += 1;
        let before = self.by_run.insert(run, Watched { watch, change: Change(self.changes) });
        self.forget(before);
    }

    /// This is no longer watched.
    fn forget(&mut self, before: Option<Watched>) {
        let Some(Watch::Running(lease)) = before.map(|watched| watched.watch) else { return };
        self.running -= 1;
        if let Entry::Occupied(mut runs) = self.by_worker.entry((lease.queue, lease.worker)) {
            *runs.get_mut() -= 1;
            if *runs.get() == 0 {
                runs.remove();
            }
        }
    }

    /// Watches a run of which nothing is known yet.
    pub(crate) fn set_new(&mut self, run: RunKey, watch: Watch) {
        if !self.by_run.contains_key(&run) {
            self.set(run, watch);
        }
    }

    /// The present moment.
    pub(crate) fn now(&self) -> Change {
        Change(self.changes)
    }

    /// What was read before now does not count for these runs.
    pub(crate) fn mark(&mut self, runs: &[RunKey]) {
        self.changes += 1;
        for run in runs {
            if let Some(watched) = self.by_run.get_mut(run) {
                watched.change = Change(self.changes);
            }
        }
    }

    /// Whether something else is watched about a run since then.
    pub(crate) fn changed_since(&self, run: RunKey, moment: Change) -> bool {
        self.by_run.get(&run).is_some_and(|watched| watched.change > moment)
    }

    /// Whether something is watched about a run.
    pub(crate) fn is_watched(&self, run: RunKey) -> bool {
        self.by_run.contains_key(&run)
    }

    /// Everything about which something is watched.
    pub(crate) fn runs(&self) -> Vec<RunKey> {
        self.by_run.keys().copied().collect()
    }

    /// Stops watching a run.
    pub(crate) fn remove(&mut self, run: RunKey) {
        self.timers.set(run, None);
        let before = self.by_run.remove(&run);
        self.forget(before);
    }

    /// The lease of one attempt, if it is still the attempt that counts here.
    pub(crate) fn lease(&mut self, run: RunKey, attempt: u32) -> Option<&mut Lease> {
        self.any_lease(run).filter(|lease| lease.attempt == attempt)
    }

    /// The lease of a run, whatever its attempt.
    pub(crate) fn any_lease(&mut self, run: RunKey) -> Option<&mut Lease> {
        match &mut self.by_run.get_mut(&run)?.watch {
            Watch::Running(lease) => Some(lease),
            Watch::Queued { .. } | Watch::BackingOff { .. } => None,
        }
    }

    /// Makes a lease last longer, and says until when.
    pub(crate) fn extend(&mut self, run: RunKey, attempt: u32, now: Timestamp) -> Option<Timestamp> {
        let lease = self.lease(run, attempt)?;
        lease.until = now.checked_add(lease.length).unwrap_or(Timestamp::MAX);
        let (until, time) =
            (lease.until, lease.deadline.map_or(lease.until, |deadline| deadline.min(lease.until)));
        self.timers.set(run, Some(time));
        Some(until)
    }

    /// Takes everything whose time has come; it is watched again when it was dealt with.
    pub(crate) fn take_due(&mut self, now: Timestamp) -> Vec<(RunKey, Watch)> {
        let mut due = Vec::new();
        while let Some(run) = self.timers.pop_due(now) {
            // What is dealt with stays known, so that a worker that reports now is still heard.
            due.extend(self.by_run.get(&run).map(|watched| (run, watched.watch.clone())));
        }
        due
    }

    /// Looks at a run again in a while, unless it was heard of since: then its time is set already.
    pub(crate) fn postpone(&mut self, run: RunKey, now: Timestamp) {
        if self.by_run.contains_key(&run) && !self.timers.contains(run) {
            self.timers.set(run, now.checked_add(SignedDuration::from_secs(1)).ok());
        }
    }

    /// When something is due.
    pub(crate) fn next_time(&self) -> Option<Timestamp> {
        self.timers.next_time()
    }

    /// The attempts that began first.
    pub(crate) fn longest(&self, count: usize) -> Vec<RunKey> {
        let running = self.by_run.iter().filter_map(|(run, watched)| match &watched.watch {
            Watch::Running(lease) => Some((lease.started_at, *run)),
            Watch::Queued { .. } | Watch::BackingOff { .. } => None,
        });
        let mut running: Vec<_> = running.collect();
        running.sort();
        running.truncate(count);
        running.into_iter().map(|(_, run)| run).collect()
    }

    /// How many runs of which queue each worker has that has some.
    pub(crate) fn by_worker(&self) -> &HashMap<(QueueKey, Arc<str>), u32> {
        &self.by_worker
    }

    /// How many runs workers have.
    pub(crate) fn running(&self) -> usize {
        self.running
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The database did not answer when a deadline was dealt with, and meanwhile the worker was heard of.
    #[test]
    fn who_was_heard_of_while_its_deadline_was_dealt_with_is_looked_at_when_its_new_lease_ends() {
        let at = |seconds: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
        let (run, mut watches) = (RunKey(1), Watches::default());
        let lease = Lease {
            worker: "w".into(),
            attempt: 1,
            length: SignedDuration::from_secs(30),
            until: at(10),
            deadline: None,
            queue: QueueKey(1),
            origin: None,
            key: ScheduleKey::new("default", "s"),
            created_at: at(0),
            started_at: at(0),
            retry: RunAction::default(),
            stop: None,
            log_tail: None,
        };
        watches.set(run, Watch::Running(Box::new(lease)));

        assert_eq!(watches.take_due(at(11)).len(), 1);
        watches.postpone(run, at(11));
        assert_eq!(watches.next_time(), Some(at(12)), "it is tried again");
        assert_eq!(watches.take_due(at(12)).len(), 1);
        assert_eq!(watches.extend(run, 1, at(12)), Some(at(42)));
        watches.postpone(run, at(12));

        assert_eq!(watches.next_time(), Some(at(42)));
    }
}
