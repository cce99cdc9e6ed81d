//! Shards are handed over at once: what is due meanwhile starts within milliseconds, not after a lease or a third of one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use punctual_core::Note;
use punctual_engine::{Engine, EngineConfig, Happened, RunSearch, SystemClock};
use punctual_store::{ShardId, Store, shard_of};
use tokio::sync::broadcast;

use crate::town::{Town, WAIT, schedule, until};

const SHARDS: u32 = 8;

/// With so many, spread over each second, each shard has a start every twenty milliseconds.
const SCHEDULES: usize = 400;

/// The database's clock stands still here, so no lease ever runs out; and rounds come only every twenty seconds.
const LEASE: SignedDuration = SignedDuration::from_secs(60);

/// What a hand-over may take, and how late starts may be meanwhile. Loose: other tests share the processors.
const MOST: Duration = Duration::from_millis(500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_due_while_shards_are_handed_over_starts_at_once() {
    let town = Town::new(SHARDS);
    let config =
        |node: &str| EngineConfig { node: node.into(), shard_lease: LEASE, ..EngineConfig::default() };
    let one = town.join_with(Arc::new(SystemClock), config("one")).await;
    let two = town.join_with(Arc::new(SystemClock), config("two")).await;
    town.settles(&[(&one, 4), (&two, 4)]).await;
    for number in 0..SCHEDULES {
        let mut new = schedule(&format!("s{number}"), "c", Some(1), None);
        new.spec = new.spec.jitter(SignedDuration::from_millis(999));
        one.create(new).await.unwrap();
    }
    all_have_started_after(&one, Timestamp::now()).await;

    let drained = HandOver::watch(&town, &two, 4).await;
    one.drain_node("one", true).await.unwrap();
    drained.ends_in_time("drained").await;

    let taken_back = HandOver::watch(&town, &one, 4).await;
    two.drain_node("one", false).await.unwrap();
    taken_back.ends_in_time("taken back").await;

    let left = HandOver::watch(&town, &one, 4).await;
    assert!(two.stop(WAIT).await);
    left.ends_in_time("left").await;
    one.stop(WAIT).await;
}

/// Shards on their way to an heir, from the wish on.
struct HandOver {
    heir: Engine,
    events: broadcast::Receiver<Happened>,
    owned: BTreeSet<ShardId>,
    count: usize,
    wished: (Instant, Timestamp),
}

impl HandOver {
    /// Expects so many shards to move there.
    async fn watch(town: &Town, heir: &Engine, count: usize) -> HandOver {
        let leases = town.store.roster().await.unwrap().leases.into_iter();
        let owned = leases.filter(|lease| lease.node == *heir.node_id()).map(|lease| lease.shard).collect();
        let events = heir.watch();
        HandOver { heir: heir.clone(), events, owned, count, wished: (Instant::now(), Timestamp::now()) }
    }

    /// Waits until each of them has started something there, and looks how late starts were until then.
    async fn ends_in_time(mut self, what: &str) {
        let mut moved = BTreeSet::new();
        while moved.len() < self.count {
            let happened = tokio::time::timeout(WAIT, self.events.recv()).await.unwrap().unwrap();
            let shard = shard_of(&happened.key, SHARDS);
            if matches!(happened.note, Note::RunStarted(_)) && !self.owned.contains(&shard) {
                moved.insert(shard);
            }
        }
        let (took, over_at) = (self.wished.0.elapsed(), Timestamp::now());

        let runs = all_have_started_after(&self.heir, over_at).await;
        let meanwhile = runs.values().flatten().filter(|(due, _)| (self.wished.1..=over_at).contains(due));
        let late: Vec<SignedDuration> = meanwhile.map(|(due, made)| made.duration_since(*due)).collect();
        let longest = late.iter().max().expect("something is due every few milliseconds").unsigned_abs();
        eprintln!(
            "{what}: {} shards moved in {took:?}; of {} starts due meanwhile the latest came after {longest:?}",
            self.count,
            late.len()
        );
        assert!(took < MOST, "{what}: it took {took:?}");
        assert!(longest < MOST, "{what}: a start was {longest:?} late");
    }
}

/// Waits until each schedule has started something that was due after this; gives all starts, when each was due and when it
/// was made.
async fn all_have_started_after(
    engine: &Engine,
    time: Timestamp,
) -> BTreeMap<i64, Vec<(Timestamp, Timestamp)>> {
    let mut starts: BTreeMap<i64, Vec<(Timestamp, Timestamp)>> = BTreeMap::new();
    until("every schedule starts", async || {
        starts.clear();
        let search = RunSearch { count: 100_000, ..RunSearch::default() };
        for run in engine.list_runs("default", search).await.unwrap().runs {
            let made = run.stored.run.made;
            let (tree, _) = made.origin.unwrap();
            starts.entry(tree.0).or_default().push((made.due_time, made.created_at));
        }
        let has_started = |starts: &Vec<(Timestamp, Timestamp)>| starts.iter().any(|(due, _)| *due > time);
        starts.len() == SCHEDULES && starts.values().all(has_started)
    })
    .await;
    starts
}
