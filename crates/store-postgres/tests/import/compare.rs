//! All that a store answers, collected, so that two stores can be compared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{Entry, Outcome};
use punctual_store::{
    Claim, Document, Lifespan, LiveRun, Queue, QueueDepth, RunDetails, RunFilter, RunKey, RunQuery,
    ScheduleQuery, ShardId, Store, StoredRun, StoredTree, Taken, TreeKey, TreeRef, shard_of,
};

/// All that a store answers.
#[derive(Debug, Default, PartialEq)]
pub struct Answers {
    trees: BTreeMap<TreeKey, StoredTree>,
    names: Vec<Option<StoredTree>>,
    timers: BTreeMap<TreeKey, Option<Timestamp>>,
    ledger: BTreeMap<TreeKey, Vec<Entry>>,
    schedules: Vec<(Vec<TreeKey>, u64)>,
    queues: Vec<Queue>,
    depths: Vec<QueueDepth>,
    live: Vec<LiveRun>,
    runs: BTreeMap<RunKey, StoredRun>,
    listed: Vec<Vec<StoredRun>>,
    details: BTreeMap<RunKey, RunDetails>,
    closed: BTreeMap<RunKey, Option<RunKey>>,
    secret: [u8; 32],
    document: Option<Document>,
}

/// Keys that are looked for.
const KEYS: i64 = 2_000;

impl Answers {
    /// Asks a store everything.
    pub async fn of(store: &dyn Store) -> Answers {
        let mut answers = Answers {
            secret: store.secret([9; 32]).await.unwrap(),
            document: store.document("a document".into()).await.unwrap(),
            ..Answers::default()
        };
        let next = store.reserve(1).await.unwrap();
        assert!(next < KEYS, "{next}");
        let trees = (0..KEYS).map(|key| TreeRef::Key(TreeKey(key))).collect();
        for tree in store.load(trees).await.unwrap().into_iter().flatten() {
            assert!(tree.tree.0 < next, "keys are not given twice");
            let all = (Timestamp::MIN, Timestamp::MAX);
            answers.ledger.insert(tree.tree, store.ledger(tree.tree, all.0, all.1, 10_000).await.unwrap());
            answers.trees.insert(tree.tree, tree);
        }
        let names = answers.trees.values().map(|tree| TreeRef::Name(tree.key.clone())).collect();
        answers.names = store.load(names).await.unwrap();
        for shard in 0..store.shards() {
            let timers = store.timers(ShardId(shard), None, 10_000).await.unwrap();
            for (tree, due_time) in timers {
                assert!(answers.timers.insert(tree, due_time).is_none(), "a schedule is in one shard");
                assert_eq!(answers.trees[&tree].shard, ShardId(shard));
            }
        }
        answers.queues = store.queues(None).await.unwrap();
        for queue in &answers.queues {
            answers.depths.push(store.queue_depth(queue.queue).await.unwrap());
        }
        answers.live = store.live_runs(Default::default(), None, 10_000).await.unwrap();
        answers.ask_for_runs(store, next).await;
        answers.ask_for_lists(store).await;
        answers
    }

    async fn ask_for_runs(&mut self, store: &dyn Store, next: i64) {
        let runs = store.load_runs((0..KEYS).map(RunKey).collect()).await.unwrap();
        for run in runs.into_iter().flatten() {
            let key = run.run.made.run;
            assert!(key.0 < next, "keys are not given twice");
            self.details.insert(key, store.run_details(key).await.unwrap());
            if let Some((tree, start)) = run.run.made.origin {
                self.closed.insert(key, store.closed_run(tree, start).await.unwrap());
            }
            self.runs.insert(key, run);
        }
    }

    async fn ask_for_lists(&mut self, store: &dyn Store) {
        let namespaces: BTreeSet<Arc<str>> =
            self.queues.iter().map(|queue| queue.made.namespace.clone()).collect();
        let queues: Vec<_> = self.queues.iter().map(|queue| Some(queue.queue)).chain([None]).collect();
        let lifespans = [None, Some(Lifespan::Open), Some(Lifespan::Completed), Some(Lifespan::Deleted)];
        for namespace in &namespaces {
            for queue in &queues {
                for lifespan in lifespans {
                    for paused in [None, Some(true), Some(false)] {
                        let (namespace, queue) = (namespace.clone(), *queue);
                        let query =
                            ScheduleQuery { namespace, lifespan, paused, queue, ..Default::default() };
                        self.schedules.push(schedules(store, query).await);
                    }
                }
                let outcomes = [Outcome::Succeeded, Outcome::Failed, Outcome::TimedOut, Outcome::Cancelled];
                let closed = outcomes.map(Some).into_iter().chain([Some(Outcome::Terminated), None]);
                let states =
                    [RunFilter::Ready, RunFilter::BackingOff, RunFilter::Running, RunFilter::DeadLetter];
                let filters = closed.map(RunFilter::Closed).chain(states).map(Some).chain([None]);
                for filter in filters {
                    let query = RunQuery {
                        namespace: namespace.clone(),
                        queue: *queue,
                        filter,
                        ..Default::default()
                    };
                    self.listed.push(runs(store, query).await);
                }
            }
            for tree in self.trees.keys() {
                let query =
                    RunQuery { namespace: namespace.clone(), tree: Some(*tree), ..Default::default() };
                self.listed.push(runs(store, query).await);
            }
        }
    }

    /// Everything is the same, and schedules are where their names say.
    pub fn compare(self, found: &Answers, shards: u32) {
        let moved = |tree: StoredTree| StoredTree { shard: shard_of(&tree.key, shards), ..tree };
        let expected = Answers {
            trees: self.trees.into_iter().map(|(key, tree)| (key, moved(tree))).collect(),
            names: self.names.into_iter().map(|tree| tree.map(moved)).collect(),
            ..self
        };
        assert_eq!(expected.trees, found.trees);
        assert_eq!(expected.timers, found.timers);
        assert_eq!(expected.ledger, found.ledger);
        assert_eq!(expected.runs, found.runs);
        assert!(expected == *found, "{expected:#?}\n{found:#?}");
    }
}

async fn schedules(store: &dyn Store, query: ScheduleQuery) -> (Vec<TreeKey>, u64) {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.schedules(ScheduleQuery { after, count: 50, ..query.clone() }).await.unwrap();
        found.extend(page.items.iter().map(|tree| tree.tree));
        after = page.next;
        if after.is_none() {
            return (found, store.count_schedules(query).await.unwrap());
        }
    }
}

async fn runs(store: &dyn Store, query: RunQuery) -> Vec<StoredRun> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let page = store.runs(RunQuery { before, count: 50, ..query.clone() }).await.unwrap();
        found.extend(page.items);
        let Some(next) = page.next else { return found };
        before = Some(RunKey(next.parse().expect("a key")));
    }
}

/// Workers get the same runs, in the same order, until nothing is left that may go.
pub async fn claims(file: &dyn Store, moved: &dyn Store) {
    let latest = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(1_800_000_000);
    for queue in file.queues(None).await.unwrap() {
        for step in 0..40 {
            let claim = Claim {
                queue: queue.queue,
                worker: ["one", "two", "three"][step % 3].into(),
                runs_max: 1 + step % 4,
                now: latest + SignedDuration::from_secs(600 + 7 * step as i64),
                keeper: Default::default(),
            };
            let taken = (file.claim(claim.clone()).await.unwrap(), moved.claim(claim).await.unwrap());
            assert_eq!(taken.0, taken.1, "queue {}, step {step}", queue.made.name);
            if taken.0 == Taken::default() && step > 10 {
                break;
            }
        }
    }
}
