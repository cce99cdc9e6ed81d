//! The end of a run reaches the owner of its schedule, wherever the worker turned to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use punctual_core::Outcome;
use punctual_engine::{AttemptEnd, Claimed, Engine, EngineConfig, Recorded, SystemClock};
use punctual_store::{Listener, News, RunKey, Store};

use crate::town::{Town, WAIT, claim, report, schedule, trigger, until};

/// Two nodes, and a run of a schedule that the first one drives, which a worker took from the second.
async fn taken_elsewhere(lease: SignedDuration) -> (Town, Engine, Engine, Claimed) {
    let town = Town::new(2);
    let config =
        |node: &str| EngineConfig { node: node.into(), shard_lease: lease, ..EngineConfig::default() };
    let one = town.join_with(Arc::new(SystemClock), config("one")).await;
    let two = town.join_with(Arc::new(SystemClock), config("two")).await;
    town.settles(&[(&one, 1), (&two, 1)]).await;
    let name = town.name_at(&one).await;
    one.create(schedule(&name, "c", None, None)).await.unwrap();
    trigger(&one, &name, "t").await;
    let claimed = claim(&two).await;
    (town, one, two, claimed)
}

/// What was told until now.
fn told(listener: &mut Listener) -> Vec<News> {
    std::iter::from_fn(|| listener.try_recv().ok()).collect()
}

async fn outcome(engine: &Engine, run: RunKey) -> Option<Outcome> {
    engine.run("default", run).await.unwrap().stored.closing.map(|closing| closing.outcome)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_owner_writes_the_end_of_a_run() {
    let (town, one, two, claimed) = taken_elsewhere(SignedDuration::from_secs(5)).await;
    let mut listener = town.store.listen().unwrap();
    let result = Some(b"a result"[..].into());

    assert_eq!(report(&two, &claimed, AttemptEnd::Succeeded(result.clone())).await, Recorded::Closed);

    let told = told(&mut listener);
    assert!(told.iter().any(|news| matches!(news, News::Ending(_))), "{told:?}");
    assert!(!told.iter().any(|news| matches!(news, News::Tree { .. })), "a guest wrote it: {told:?}");
    let stored = one.run("default", claimed.live.made.run).await.unwrap().stored;
    assert_eq!(stored.closing.unwrap().payload, result);
    // To say it again is harmless, at whichever node.
    for engine in [&one, &two] {
        assert_eq!(report(engine, &claimed, AttemptEnd::Succeeded(result.clone())).await, Recorded::Closed);
    }
    until("nobody has it any more", async || {
        [&one, &two].iter().all(|engine| engine.metrics().running.get() == 0)
    })
    .await;
    one.stop(WAIT).await;
    two.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_says_nothing_is_waited_for_as_long_as_its_lease() {
    let (_town, one, two, claimed) = taken_elsewhere(SignedDuration::from_secs(1)).await;

    one.crash();
    let began = Instant::now();

    assert_eq!(report(&two, &claimed, AttemptEnd::Succeeded(None)).await, Recorded::Closed);
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!(outcome(&two, claimed.live.made.run).await, Some(Outcome::Succeeded));
    two.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_is_too_large_for_news_is_written_by_a_guest() {
    let (town, one, two, claimed) = taken_elsewhere(SignedDuration::from_secs(5)).await;
    let mut listener = town.store.listen().unwrap();
    let large = Some(vec![b'x'; 100_000].into());

    assert_eq!(report(&two, &claimed, AttemptEnd::Succeeded(large.clone())).await, Recorded::Closed);

    let told = told(&mut listener);
    assert!(!told.iter().any(|news| matches!(news, News::Ending(_))), "{} pieces of news", told.len());
    let stored = one.run("default", claimed.live.made.run).await.unwrap().stored;
    assert_eq!(stored.closing.unwrap().payload, large);
    one.stop(WAIT).await;
    two.stop(WAIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_are_told_of_when_somebody_wants_some() {
    let town = Town::new(2);
    let (one, two) = (town.join("one").await, town.join("two").await);
    town.settles(&[(&one, 1), (&two, 1)]).await;
    one.create(schedule("s", "c", None, None)).await.unwrap();
    let mut listener = town.store.listen().unwrap();
    for number in 0..5 {
        trigger(&one, "s", &format!("t{number}")).await;
    }
    let ready = |told: &[News]| told.iter().filter(|news| matches!(news, News::Ready(_))).count();
    assert_eq!(ready(&told(&mut listener)), 0, "nobody waits");

    // They are there; whoever comes finds them, and whoever waits after that is told.
    for _ in 0..5 {
        report(&two, &claim(&two).await, AttemptEnd::Succeeded(None)).await;
    }
    let waiting = tokio::spawn({
        let two = two.clone();
        async move { claim(&two).await }
    });
    until("it is known that one is wanted", async || {
        told(&mut listener).iter().any(|news| matches!(news, News::Wanted { .. }))
    })
    .await;
    trigger(&one, "s", "t5").await;
    let began = Instant::now();
    report(&two, &waiting.await.unwrap(), AttemptEnd::Succeeded(None)).await;
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    one.stop(WAIT).await;
    two.stop(WAIT).await;
}
