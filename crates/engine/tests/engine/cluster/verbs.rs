//! Any node serves any verb, and the owner acts on it in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use punctual_core::{Command, Note, Pause, RequestId};
use punctual_engine::{Engine, EngineError, RunSearch, Verb};

use crate::town::{Town, WAIT, claim_for, key, schedule, trigger};

async fn two_nodes() -> (Town, Engine, Engine) {
    let town = Town::new(4);
    let (one, two) = (town.join("one").await, town.join("two").await);
    town.settles(&[(&one, 2), (&two, 2)]).await;
    (town, one, two)
}

fn delete(request: &str) -> Verb {
    Verb::Delete(Command { request: RequestId::new(request), body: () })
}

fn pause() -> Verb {
    Verb::Pause(Command { request: RequestId::new("p"), body: Pause { note: "".into(), until: None } })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_made_elsewhere_starts_at_its_owner_and_a_pause_elsewhere_holds() {
    let (town, owner, guest) = two_nodes().await;
    let name = town.name_at(&owner).await;
    let mut events = owner.watch();
    guest.create(schedule(&name, "c", Some(1), None)).await.unwrap();

    // The owner's own log tells of it: nobody else wakes the schedule.
    let started = async {
        loop {
            let happened = events.recv().await.unwrap();
            if let Note::RunStarted(start) = happened.note {
                return (start.nominal_time(), happened.at);
            }
        }
    };
    let (nominal, at) = tokio::time::timeout(WAIT, started).await.unwrap();
    assert!(at.duration_since(nominal).as_millis() < 900, "due at {nominal}, started at {at}");

    guest.change(&key(&name), pause()).await.unwrap();
    while claim_for(&owner, Duration::ZERO).await.is_some() {}
    assert!(claim_for(&owner, Duration::from_millis(2_200)).await.is_none(), "nothing starts any more");
    assert!(owner.describe(&key(&name)).await.unwrap().description.pause.is_some());
    owner.stop(WAIT).await;
    guest.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_node_has_answered_the_next_one_knows() {
    let (town, one, two) = two_nodes().await;
    let names = [town.name_at(&one).await, town.name_at(&two).await];
    // The same name again and again, each verb at the other node: nobody may answer from what it remembers.
    for round in 0..30 {
        let (here, there) = if round % 2 == 0 { (&one, &two) } else { (&two, &one) };
        for name in &names {
            here.create(schedule(name, &format!("c{round}"), None, None)).await.unwrap();
            trigger(there, name, &format!("t{round}")).await;
            here.change(&key(name), pause()).await.unwrap();
            there.change(&key(name), delete(&format!("d{round}"))).await.unwrap();
        }
    }
    let command = Command { request: RequestId::new("late"), body: Default::default() };
    let refused = one.change(&key(&names[0]), Verb::Trigger(command)).await;
    assert!(matches!(refused, Err(EngineError::Rejected(_) | EngineError::NotFound(_))), "{refused:?}");
    let runs = one.list_runs("default", RunSearch { count: 100, ..RunSearch::default() }).await.unwrap();
    assert_eq!(runs.runs.len(), 60, "every trigger made one run");
    one.stop(WAIT).await;
    two.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_declared_elsewhere_is_known_where_its_schedules_are_driven() {
    let (town, owner, guest) = two_nodes().await;
    let name = town.name_at(&owner).await;
    guest.create_queue("default", "fresh", Default::default()).await.unwrap();
    let mut new = schedule(&name, "c", Some(1), None);
    new.action.queue = "fresh".into();
    guest.create(new).await.unwrap();

    let claimed = guest.claim("default", "fresh", "w", 1, WAIT, None).await.unwrap();

    assert_eq!(claimed.len(), 1);
    assert!(owner.quarantined().await.unwrap().is_empty());
    owner.stop(WAIT).await;
    guest.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_refused_while_shards_move() {
    let town = Town::new(6);
    let (one, two) = (town.join("one").await, town.join("two").await);
    for number in 0..6 {
        one.create(schedule(&format!("s{number}"), "c", None, None)).await.unwrap();
    }
    let moving = Arc::new(AtomicBool::new(true));
    let client = |engine: &Engine, who: &'static str| {
        let (engine, moving) = (engine.clone(), moving.clone());
        tokio::spawn(async move {
            let mut count = 0;
            while moving.load(Ordering::SeqCst) {
                trigger(&engine, &format!("s{}", count % 6), &format!("{who}-{count}")).await;
                count += 1;
            }
            count
        })
    };
    let clients = [client(&one, "a"), client(&two, "b")];

    for round in 0..5 {
        let three = town.join(&format!("three-{round}")).await;
        town.settles(&[(&one, 2), (&two, 2), (&three, 2)]).await;
        assert!(three.stop(WAIT).await);
        town.settles(&[(&one, 3), (&two, 3)]).await;
    }

    moving.store(false, Ordering::SeqCst);
    let mut asked = 0;
    for client in clients {
        asked += client.await.unwrap();
    }
    let runs = punctual_store::Store::live_runs(&*town.store, Default::default(), None, usize::MAX);
    assert_eq!(runs.await.unwrap().len(), asked, "every trigger made one run");
    one.stop(WAIT).await;
    two.stop(WAIT).await;
}
