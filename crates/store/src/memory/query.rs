//! What lists find.

use super::{Inner, Row};
use crate::{
    Closing, Keeper, Kept, Lifespan, LiveState, RunFilter, RunKey, RunQuery, ScheduleQuery, StoredRun,
};

impl Inner {
    pub(super) fn matches(&self, query: &ScheduleQuery, row: &Row) -> bool {
        let stored = &row.stored;
        let lifespan = match query.lifespan {
            Some(lifespan) => row.view.lifespan == lifespan,
            None => row.view.lifespan != Lifespan::Deleted,
        };
        !row.replaced
            && lifespan
            && stored.key.namespace == query.namespace
            && stored.key.schedule.starts_with(&*query.prefix)
            && query.paused.is_none_or(|paused| row.view.paused == paused)
            && query.queue.is_none_or(|queue| row.view.queue == Some(queue))
    }

    pub(super) fn run(&self, key: RunKey) -> Option<StoredRun> {
        let live = self.live.get(&key);
        let live = live.map(|run| StoredRun { run: run.clone(), closing: None, is_dead_letter: false });
        live.or_else(|| self.closed.get(&key).cloned())
    }
}

pub(super) fn is_kept(kept: &Kept, by: Keeper) -> bool {
    match kept {
        Kept::ByAnybody => true,
        Kept::By(keeper) => by == *keeper,
        Kept::ByNoneOf(keepers) => !keepers.contains(&by),
    }
}

pub(super) fn is_wanted(query: &RunQuery, run: &StoredRun) -> bool {
    let part = match (&query.filter, &run.closing, &run.run.state) {
        (None, _, _) => true,
        (Some(RunFilter::Closed(wanted)), Some(Closing { outcome, .. }), _) => {
            wanted.is_none_or(|wanted| wanted == *outcome)
        }
        (Some(RunFilter::DeadLetter), Some(_), _) => run.is_dead_letter,
        (Some(RunFilter::Ready), None, LiveState::Ready) => true,
        (Some(RunFilter::BackingOff), None, LiveState::BackingOff { .. }) => true,
        (Some(RunFilter::Running), None, LiveState::Running { .. }) => true,
        (Some(_), _, _) => false,
    };
    let made = &run.run.made;
    part && query.queue.is_none_or(|queue| made.queue == queue)
        && query.tree.is_none_or(|tree| made.origin.is_some_and(|(of, _)| of == tree))
        && query.before.is_none_or(|before| made.run < before)
}
