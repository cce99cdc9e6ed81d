//! Whoever looks sees the same at every node: what happens, which workers there are, what is broken.

use std::time::Duration;

use punctual_core::Note;
use punctual_engine::{Elsewhere, Engine, Happened};
use punctual_store::{Batch, Expected, News, Store, TreeRef, TreeWrite, Unit, Watch};

use crate::town::{Town, WAIT, claim_for, key, schedule, trigger, until};

async fn two_nodes() -> (Town, Engine, Engine) {
    let town = Town::new(4);
    let (one, two) = (town.join("one").await, town.join("two").await);
    town.settles(&[(&one, 2), (&two, 2)]).await;
    (town, one, two)
}

fn watch(schedule: Option<&str>) -> Watch {
    Watch { namespace: "default".into(), schedule: schedule.map(Into::into) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happens_at_the_owner_is_told_to_whoever_watches_elsewhere_once_and_in_order() {
    let (town, owner, guest) = two_nodes().await;
    let (name, other) = (town.name_at(&owner).await, town.name_at(&guest).await);
    for name in [&name, &other] {
        owner.create(schedule(name, "c", None, None)).await.unwrap();
    }
    let (mut there, mut here) = (guest.watch_elsewhere(), guest.watch());
    let mut at_owner = owner.watch_elsewhere();
    guest.tell_watched(watch(Some(&name)));
    // News come in order: when this one is there, so is the wish.
    let mut news = town.store.listen().unwrap();
    town.store.tell(News::Roster);
    while news.recv().await != Some(News::Roster) {}

    let mut told = Vec::new();
    let mut rounds = 0;
    while told.is_empty() {
        // The owner may be about to hear of the wish: then it tells of the next trigger.
        rounds += 1;
        trigger(&owner, &name, &format!("t{rounds}")).await;
        while let Ok(Ok(Elsewhere::Happened(happened))) =
            tokio::time::timeout(Duration::from_millis(100), there.recv()).await
        {
            told.push(happened);
        }
        assert!(rounds < 100, "nothing is told");
    }

    assert!(told.iter().all(|happened| *happened.key == key(&name)));
    let notes: Vec<&Note> = told.iter().map(|happened| &happened.note).collect();
    assert!(
        matches!(notes[..], [Note::StartReadied(ready), Note::RunStarted(begun)] if ready == begun),
        "{notes:?}"
    );
    assert!(told[1].run.is_some());
    while let Ok(Happened { key: of, .. }) = here.try_recv() {
        assert_ne!(*of, key(&name), "what others tell is not taken for what happened here");
    }
    assert!(at_owner.try_recv().is_err(), "nobody is told of what happened at home");
    owner.stop(WAIT).await;
    guest.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_asks_one_node_is_seen_at_the_other() {
    let (town, one, two) = two_nodes().await;
    let (queue, _) = two.describe_queue("default", "q").await.unwrap();
    let queue = queue.queue;
    assert!(two.workers_of(queue).await.unwrap().is_empty());
    trigger_one(&one, &town).await;
    let claimed = claim_for(&one, WAIT).await.unwrap();

    let seen_at = |engine: Engine| {
        let store = town.store.clone();
        async move {
            until("the worker is seen", async || {
                store.tell(News::Roster);
                let workers = engine.workers_of(queue).await.unwrap();
                workers.iter().any(|seen| &*seen.worker == "w" && seen.running == 1)
            })
            .await;
        }
    };
    seen_at(one.clone()).await;
    seen_at(two.clone()).await;

    assert_eq!(claimed.live.made.queue, queue);
    let stranded = two.stranded_queues(jiff::SignedDuration::ZERO).await.unwrap();
    assert_eq!(stranded, [], "nobody is told that a queue has no worker");
    one.stop(WAIT).await;
    // Its run is looked after by the other one now; nobody counts it twice.
    until("the run is taken over", async || {
        let workers = two.workers_of(queue).await.unwrap();
        let running: Vec<u32> = workers.iter().map(|seen| seen.running).collect();
        running == [1] && two.metrics().running.get() == 1
    })
    .await;
    two.stop(WAIT).await;
}

async fn trigger_one(engine: &Engine, town: &Town) {
    let name = town.name_at(engine).await;
    engine.create(schedule(&name, "c", None, None)).await.unwrap();
    trigger(engine, &name, "t").await;
    trigger(engine, &name, "u").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_that_is_broken_at_its_owner_is_known_everywhere() {
    let (town, owner, guest) = two_nodes().await;
    let name = town.name_at(&owner).await;
    owner.create(schedule(&name, "c", None, None)).await.unwrap();
    let stored = town.store.load_now(&[TreeRef::Name(key(&name))]).remove(0).unwrap();

    // Somebody writes what is no state; the owner hears of it and looks.
    let write = TreeWrite {
        tree: stored.tree,
        shard: stored.shard,
        epoch: None,
        expected: Expected::At(stored.sequence),
        definition: None,
        view: None,
        state: [9, 9, 9][..].into(),
        completion: None,
        due_time: Some(town.now()),
        ledger: Vec::new(),
        retired: false,
    };
    let unit = Unit { tree: Some(write), ..Unit::default() };
    assert_eq!(town.store.commit_now(&Batch::of(vec![unit])), [Ok(())]);

    for engine in [&owner, &guest] {
        until("it is known to be broken", async || {
            town.store.tell(News::Roster);
            let broken = engine.quarantined().await.unwrap();
            broken.get(&stored.tree).is_some_and(|reason| reason.contains("version is 9"))
        })
        .await;
    }
    owner.stop(WAIT).await;
    guest.stop(WAIT).await;
}
