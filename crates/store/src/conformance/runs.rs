//! The life of a run: made, tried again, released, stopped, closed, and what it told on its way.

use jiff::Timestamp;
use punctual_core::{Origin, Outcome, RequestKey, StartId, StopKind};

use super::Subject;
use super::support::{Bed, at, bytes, closing, start};
use crate::{
    Closing, Conflict, LiveRun, LiveState, NewRun, RunDetails, RunKey, RunWrite, StoreError, StoredRun,
    TreeKey,
};

pub(super) async fn exercise(subject: &impl Subject) {
    a_new_run_is_ready(subject).await;
    live_runs_come_by_key(subject).await;
    a_failed_attempt_backs_off(subject).await;
    only_the_attempt_that_runs_can_end(subject).await;
    the_harder_stop_stays(subject).await;
    a_closed_run_is_kept_as_it_was(subject).await;
    a_start_finds_its_closed_run(subject).await;
    details_of_an_old_attempt_are_ignored(subject).await;
    changes_of_a_run_that_is_gone_are_harmless(subject).await;
}

fn moved(run: RunKey) -> Result<(), StoreError> {
    Err(StoreError::Conflict(Conflict::RunMoved { run }))
}

async fn load(bed: &Bed, run: RunKey) -> StoredRun {
    let mut runs = bed.store.load_runs(vec![run]).await.expect("the store answers");
    runs.remove(0).expect("the run is kept")
}

async fn a_new_run_is_ready(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let origin =
        Some((TreeKey(5), StartId { nominal_ms: -7, origin: Origin::Request(RequestKey(u64::MAX)) }));
    let made = NewRun { origin, due_time: Timestamp::MAX, ..bed.new_run().await };
    bed.write_runs(vec![RunWrite::Insert(made.clone())]).await.expect("it is new");

    let live = LiveRun {
        made: made.clone(),
        attempt: 0,
        state: LiveState::Ready,
        stop: None,
        failure: None,
        keeper: Default::default(),
    };
    assert_eq!(bed.live().await, std::slice::from_ref(&live));
    let unknown = RunKey(made.run.0 + 1_000);
    let found = bed.store.load_runs(vec![unknown, made.run, made.run]).await.expect("the store answers");
    let stored = Some(StoredRun { run: live, closing: None, is_dead_letter: false });
    assert_eq!(found, [None, stored.clone(), stored], "answers come in the order asked for");
    assert_eq!(
        bed.write_runs(vec![RunWrite::Insert(made.clone())]).await,
        moved(made.run),
        "a key is used once"
    );
}

async fn live_runs_come_by_key(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let first = bed.store.reserve(5).await.expect("keys are given");
    // Later keys may be written earlier: two engines have blocks of their own.
    for place in [3, 0, 4, 1, 2] {
        let made = super::support::new_run(RunKey(first + place), bed.queue);
        bed.write_runs(vec![RunWrite::Insert(made)]).await.expect("it is new");
    }
    let keys = async |after: Option<i64>, count| -> Vec<i64> {
        let live = bed
            .store
            .live_runs(Default::default(), after.map(RunKey), count)
            .await
            .expect("the store answers");
        live.iter().map(|live| live.made.run.0 - first).collect()
    };
    assert_eq!(keys(None, 9).await, [0, 1, 2, 3, 4]);
    assert_eq!(keys(None, 2).await, [0, 1], "at most this many");
    assert_eq!(keys(Some(first + 1), 2).await, [2, 3], "after one of them");
    assert_eq!(keys(Some(first + 4), 9).await, [0; 0]);
}

async fn a_failed_attempt_backs_off(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let run = bed.running().await.made.run;
    let retry = RunWrite::Retry { run, attempt: 1, not_before: at(500), failure: bytes("oops") };
    bed.write_runs(vec![retry.clone()]).await.expect("the attempt runs");

    let live = load(&bed, run).await.run;
    assert_eq!(live.state, LiveState::BackingOff { not_before: at(500) });
    assert_eq!((live.attempt, live.failure), (1, Some(bytes("oops"))));
    assert_eq!(bed.claim(9).await, [], "it may not be claimed yet");
    assert_eq!(bed.write_runs(vec![retry]).await, moved(run), "the attempt is over");

    bed.write_runs(vec![RunWrite::Release { run }]).await.expect("it backs off");
    assert_eq!(load(&bed, run).await.run.state, LiveState::Ready);
    bed.write_runs(vec![RunWrite::Release { run }]).await.expect("releasing twice is harmless");
    let claimed = bed.claim(9).await;
    assert_eq!((claimed.len(), claimed[0].attempt), (1, 2), "a new attempt begins");
    assert_eq!(claimed[0].failure, Some(bytes("oops")), "it is told about the failure before");
    bed.write_runs(vec![RunWrite::Release { run }]).await.expect("releasing a running one is harmless");
    assert!(matches!(load(&bed, run).await.run.state, LiveState::Running { .. }), "and changes nothing");
}

async fn only_the_attempt_that_runs_can_end(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let ready = bed.ready().await.run;
    let close = |run, attempt| RunWrite::Close { run, attempt, closing: closing(Outcome::Succeeded) };
    let retry = |run, attempt| RunWrite::Retry { run, attempt, not_before: at(5), failure: bytes("oops") };
    assert_eq!(bed.write_runs(vec![close(ready, Some(0))]).await, moved(ready), "no attempt has begun");
    assert_eq!(bed.write_runs(vec![retry(ready, 0)]).await, moved(ready), "no attempt has begun");

    let run = bed.running().await.made.run;
    for attempt in [0, 2] {
        assert_eq!(bed.write_runs(vec![close(run, Some(attempt))]).await, moved(run), "another attempt runs");
        assert_eq!(bed.write_runs(vec![retry(run, attempt)]).await, moved(run), "another attempt runs");
    }
    assert_eq!(bed.write_runs(vec![close(run, Some(1))]).await, Ok(()));
    for again in [close(run, Some(1)), close(run, None), retry(run, 1)] {
        assert_eq!(bed.write_runs(vec![again]).await, moved(run), "it has ended");
    }
}

async fn the_harder_stop_stays(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let run = bed.ready().await.run;
    for (kind, expected) in [
        (StopKind::Cancel, StopKind::Cancel),
        (StopKind::Cancel, StopKind::Cancel),
        (StopKind::Terminate, StopKind::Terminate),
        (StopKind::Cancel, StopKind::Terminate),
    ] {
        bed.write_runs(vec![RunWrite::Stop { run, kind }]).await.expect("it is live");
        assert_eq!(load(&bed, run).await.run.stop, Some(expected));
    }
    let claimed = bed.claim(1).await;
    assert_eq!(claimed[0].stop, Some(StopKind::Terminate), "the worker is told");
}

async fn a_closed_run_is_kept_as_it_was(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let running = bed.running().await;
    let run = running.made.run;
    let outcomes = [Outcome::Failed, Outcome::TimedOut, Outcome::Cancelled, Outcome::Terminated];
    let ended = closing(Outcome::Succeeded);
    let close = RunWrite::Close { run, attempt: Some(1), closing: ended.clone() };
    let stop = RunWrite::Stop { run, kind: StopKind::Cancel };
    bed.write_runs(vec![stop, close]).await.expect("the attempt runs");

    let expected = LiveRun { stop: Some(StopKind::Cancel), ..running };
    assert_eq!(
        load(&bed, run).await,
        StoredRun { run: expected, closing: Some(ended), is_dead_letter: false }
    );
    assert_eq!(bed.live().await, [], "live and closed runs are apart");
    for outcome in outcomes {
        let made = bed.ready().await;
        let ended = Closing { outcome, closed_at: Timestamp::MAX, payload: None };
        let close = RunWrite::Close { run: made.run, attempt: None, closing: ended.clone() };
        bed.write_runs(vec![close]).await.expect("it may be in any state");
        let stored = load(&bed, made.run).await;
        assert_eq!(stored.closing, Some(ended));
        assert_eq!((stored.run.state, stored.run.made), (LiveState::Ready, made));
    }
}

async fn a_start_finds_its_closed_run(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let tree = bed.tree("nightly").await;
    let manual = StartId { nominal_ms: 5, origin: Origin::Request(RequestKey(u64::MAX)) };
    let mut keys = Vec::new();
    for (place, start) in [start(5), start(6), manual].into_iter().enumerate() {
        let made = NewRun { origin: Some((tree, start)), ..bed.new_run().await };
        bed.write_runs(vec![RunWrite::Insert(made.clone())]).await.expect("it is new");
        if place != 1 {
            let ended = closing(Outcome::Failed);
            let close = RunWrite::Close { run: made.run, attempt: None, closing: ended };
            bed.write_runs(vec![close]).await.expect("it is live");
        }
        keys.push(made.run);
    }
    let found = async |tree, start| bed.store.closed_run(tree, start).await.expect("the store answers");
    assert_eq!(found(tree, start(5)).await, Some(keys[0]));
    assert_eq!(found(tree, start(6)).await, None, "it has not ended");
    assert_eq!(found(tree, manual).await, Some(keys[2]), "a manual start is another one");
    assert_eq!(found(tree, start(7)).await, None, "it never was");
    assert_eq!(found(TreeKey(tree.0 + 1_000), start(5)).await, None, "another schedule has other starts");
}

async fn details_of_an_old_attempt_are_ignored(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let run = bed.running().await.made.run;
    let details = async || bed.store.run_details(run).await.expect("the store answers");
    let tell = async |attempt, progress: Option<&str>, log_tail: Option<&str>| {
        let (progress, log_tail) = (progress.map(bytes), log_tail.map(bytes));
        bed.write_runs(vec![RunWrite::Details { run, attempt, progress, log_tail }]).await
    };
    assert_eq!(details().await, RunDetails::default(), "nothing was told");

    tell(1, Some("half"), None).await.expect("the attempt runs");
    tell(1, None, Some("a line")).await.expect("the attempt runs");
    let expected = RunDetails { progress: Some(bytes("half")), log_tail: Some(bytes("a line")) };
    assert_eq!(details().await, expected, "what is not told stays");
    tell(0, Some("old"), Some("old")).await.expect("it is harmless");
    tell(2, Some("new"), Some("new")).await.expect("it is harmless");
    assert_eq!(details().await, expected, "another attempt's are ignored");
    tell(1, Some("all"), Some("another")).await.expect("the attempt runs");
    let close = RunWrite::Close { run, attempt: Some(1), closing: closing(Outcome::Succeeded) };
    bed.write_runs(vec![close]).await.expect("the attempt runs");
    tell(1, Some("late"), None).await.expect("it is harmless");
    let expected = RunDetails { progress: Some(bytes("all")), log_tail: Some(bytes("another")) };
    assert_eq!(details().await, expected, "the last ones are kept");
}

async fn changes_of_a_run_that_is_gone_are_harmless(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let run = RunKey(bed.key().await);
    let tell = RunWrite::Details { run, attempt: 0, progress: Some(bytes("x")), log_tail: None };
    for write in [RunWrite::Release { run }, RunWrite::Stop { run, kind: StopKind::Cancel }, tell] {
        assert_eq!(bed.write_runs(vec![write]).await, Ok(()));
    }
    assert_eq!(bed.store.run_details(run).await, Ok(RunDetails::default()));
    assert_eq!(bed.live().await, []);
}
