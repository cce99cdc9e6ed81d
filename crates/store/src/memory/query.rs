//! What is read: schedules, their timers and ledger, runs, and what lists find.

use std::ops::Bound;

use jiff::Timestamp;
use punctual_core::{Entry, StartId};

use super::{Inner, Row};
use crate::{
    Closing, Keeper, Kept, Lifespan, LiveRun, LiveState, Page, QueueKey, RunFilter, RunKey, RunQuery,
    ScheduleQuery, ShardId, StoredRun, StoredTree, TreeKey, TreeRef,
};

impl Inner {
    pub(super) fn find(&self, tree: &TreeRef) -> Option<StoredTree> {
        let key = match tree {
            TreeRef::Key(key) => *key,
            TreeRef::Name(name) => *self.names.get(name)?,
        };
        self.trees.get(&key).map(|row| row.stored.clone())
    }

    pub(super) fn timers(
        &self,
        shard: ShardId,
        after: Option<TreeKey>,
        count: usize,
    ) -> Vec<(TreeKey, Option<Timestamp>)> {
        let first = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = self.trees.range((first, Bound::Unbounded)).filter(|(_, row)| row.stored.shard == shard);
        rows.map(|(tree, row)| (*tree, row.stored.due_time)).take(count).collect()
    }

    pub(super) fn ledger(
        &self,
        tree: TreeKey,
        after: Timestamp,
        through: Timestamp,
        count: usize,
    ) -> Vec<Entry> {
        let touches = |entry: &&Entry| entry.through > after && entry.from <= through;
        let mut entries: Vec<Entry> =
            self.ledger.get(&tree).into_iter().flatten().filter(touches).cloned().collect();
        entries.sort_by_key(|entry| (entry.from, entry.through, entry.origin));
        entries.truncate(count);
        entries
    }

    pub(super) fn schedules(&self, query: &ScheduleQuery) -> Page<StoredTree> {
        let mut rows: Vec<StoredTree> = self
            .trees
            .values()
            .filter(|row| self.matches(query, row))
            .map(|row| row.stored.clone())
            .collect();
        rows.sort_by(|one, other| one.key.cmp(&other.key));
        rows.retain(|row| query.after.as_ref().is_none_or(|after| row.key.schedule > *after));
        let more = rows.len() > query.count;
        rows.truncate(query.count);
        let next = rows.last().filter(|_| more).map(|row| row.key.schedule.clone());
        Page { items: rows, next }
    }

    pub(super) fn count_schedules(&self, query: &ScheduleQuery) -> u64 {
        self.trees.values().filter(|row| self.matches(query, row)).count() as u64
    }

    fn matches(&self, query: &ScheduleQuery, row: &Row) -> bool {
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

    pub(super) fn live_runs(&self, kept: &Kept, after: Option<RunKey>, count: usize) -> Vec<LiveRun> {
        let first = after.map_or(Bound::Unbounded, Bound::Excluded);
        let live = self.live.range((first, Bound::Unbounded)).map(|(_, live)| live);
        live.filter(|live| is_kept(kept, live.keeper)).take(count).cloned().collect()
    }

    pub(super) fn run(&self, key: RunKey) -> Option<StoredRun> {
        let live = self.live.get(&key);
        let live = live.map(|run| StoredRun { run: run.clone(), closing: None, is_dead_letter: false });
        live.or_else(|| self.closed.get(&key).cloned())
    }

    pub(super) fn closed_run(&self, tree: TreeKey, start: StartId) -> Option<RunKey> {
        let mut closed = self.closed.values();
        closed.find(|run| run.run.made.origin == Some((tree, start))).map(|run| run.run.made.run)
    }

    pub(super) fn runs(&self, query: &RunQuery) -> Page<StoredRun> {
        let of_namespace = |queue: &QueueKey| {
            self.queues.get(queue).is_some_and(|queue| queue.made.namespace == query.namespace)
        };
        let mut keys: Vec<RunKey> = self.live.keys().chain(self.closed.keys()).copied().collect();
        keys.sort_by(|one, other| other.cmp(one));
        let found = keys.into_iter().filter_map(|key| self.run(key));
        let mut found = found.filter(|run| is_wanted(query, run) && of_namespace(&run.run.made.queue));
        let items: Vec<StoredRun> = found.by_ref().take(query.count).collect();
        let more = found.next().is_some();
        let next = items.last().filter(|_| more).map(|run| run.run.made.run.to_string().into());
        Page { items, next }
    }
}

fn is_kept(kept: &Kept, by: Keeper) -> bool {
    match kept {
        Kept::ByAnybody => true,
        Kept::By(keeper) => by == *keeper,
        Kept::ByNoneOf(keepers) => !keepers.contains(&by),
    }
}

fn is_wanted(query: &RunQuery, run: &StoredRun) -> bool {
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
