//! Random questions, and now and then a look at everything.

use std::sync::Arc;

use jiff::SignedDuration;
use punctual_core::{Outcome, ScheduleKey};

use super::{NAMES, Pair};
use crate::conformance::query::{all_runs, all_schedules};
use crate::conformance::support::at;
use crate::{Lifespan, RunFilter, RunQuery, ScheduleQuery, ShardId, Store, TreeRef};

impl Pair {
    pub(super) async fn query(&mut self, place: &str) {
        let random = &mut self.random;
        let namespace: Arc<str> = if random.one_in(4) { "elsewhere".into() } else { "default".into() };
        let prefix = ["", "a", "b", "x"][random.below(4)].into();
        let lifespans = [None, Some(Lifespan::Open), Some(Lifespan::Completed), Some(Lifespan::Deleted)];
        let queue = random.pick(&self.queues).copied();
        let schedules = ScheduleQuery {
            namespace: namespace.clone(),
            prefix,
            lifespan: lifespans[random.below(4)],
            paused: [None, Some(true), Some(false)][random.below(3)],
            queue: queue.filter(|_| random.one_in(3)),
            after: None,
            count: 1 + random.below(4),
        };
        let filters = [
            None,
            Some(RunFilter::Ready),
            Some(RunFilter::BackingOff),
            Some(RunFilter::Running),
            Some(RunFilter::Closed(None)),
            Some(RunFilter::Closed(Some(Outcome::Failed))),
            Some(RunFilter::DeadLetter),
        ];
        let tree = random.pick(&self.trees).copied();
        let before = random.pick(&self.runs).copied();
        let runs = RunQuery {
            namespace,
            tree: tree.filter(|_| random.one_in(3)),
            queue: queue.filter(|_| random.one_in(3)),
            filter: filters[random.below(7)],
            before: before.filter(|_| random.one_in(3)),
            count: 1 + random.below(6),
        };
        let (store, twin) = (&*self.store, &self.twin);
        assert_eq!(all_schedules(store, &schedules).await, all_schedules(twin, &schedules).await, "{place}");
        let counts = (store.count_schedules(schedules.clone()).await, twin.count_schedules(schedules).await);
        assert_eq!(counts.0, counts.1, "{place}: count");
        assert_eq!(all_runs(store, &runs).await, all_runs(twin, &runs).await, "{place}: {runs:?}");
    }

    pub(super) async fn compare(&mut self, place: &str) {
        let (store, twin) = (&*self.store, &self.twin);
        let refs: Vec<TreeRef> = self.trees.iter().map(|tree| TreeRef::Key(*tree)).collect();
        assert_eq!(store.load(refs.clone()).await, twin.load(refs).await, "{place}: schedules");
        let names = NAMES.iter().map(|name| TreeRef::Name(ScheduleKey::new("default", name)));
        let names: Vec<TreeRef> = names.collect();
        assert_eq!(store.load(names.clone()).await, twin.load(names).await, "{place}: names");
        for shard in 0..4 {
            let after = self.random.pick(&self.trees).copied().filter(|_| self.random.one_in(2));
            let count = self.random.below(50);
            let timers = (
                store.timers(ShardId(shard), after, count).await,
                twin.timers(ShardId(shard), after, count).await,
            );
            assert_eq!(timers.0, timers.1, "{place}: timers");
        }
        for tree in &self.trees {
            let after = at(self.random.below(500) as i64 - 1);
            let through = after + SignedDuration::from_secs(self.random.below(300) as i64);
            let count = self.random.below(9);
            let entries = (
                store.ledger(*tree, after, through, count).await,
                twin.ledger(*tree, after, through, count).await,
            );
            assert_eq!(entries.0, entries.1, "{place}: ledger");
        }
        for queue in &self.queues {
            let depths = (store.queue_depth(*queue).await, twin.queue_depth(*queue).await);
            assert_eq!(depths.0, depths.1, "{place}: depth");
        }
        assert_eq!(store.queues(None).await, twin.queues(None).await, "{place}: queues");
        let live = twin.live_runs(Default::default(), None, usize::MAX).await;
        assert_eq!(store.live_runs(Default::default(), None, usize::MAX).await, live, "{place}: live runs");
        let stored = twin.load_runs(self.runs.clone()).await;
        assert_eq!(store.load_runs(self.runs.clone()).await, stored, "{place}: runs");
        for run in stored.expect("memory answers").into_iter().flatten() {
            let key = run.run.made.run;
            assert_eq!(store.run_details(key).await, twin.run_details(key).await, "{place}: details");
            if let Some((tree, start)) = run.run.made.origin {
                let closed = (store.closed_run(tree, start).await, twin.closed_run(tree, start).await);
                assert_eq!(closed.0, closed.1, "{place}: closed run");
            }
        }
    }
}
