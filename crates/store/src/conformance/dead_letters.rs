//! Dead letters: what ended badly, until somebody has dealt with it; and attempts that go on in other hands.

use jiff::Timestamp;
use punctual_core::Outcome;

use super::Subject;
use super::query::all_runs;
use super::support::{Bed, at, bytes, closing, new_queue, start};
use crate::{
    Conflict, LiveState, NewRun, QueueKey, Retention, RunFilter, RunKey, RunQuery, RunWrite, StoreError,
};

pub(super) async fn exercise(subject: &impl Subject) {
    what_ends_badly_is_a_dead_letter(subject).await;
    dead_letters_come_in_pages(subject).await;
    dead_letters_go_like_all_runs(subject).await;
    an_attempt_goes_on_in_other_hands(subject).await;
}

fn moved(run: RunKey) -> Result<(), StoreError> {
    Err(StoreError::Conflict(Conflict::RunMoved { run }))
}

fn bury(run: RunKey) -> Vec<RunWrite> {
    vec![RunWrite::Bury { run }]
}

async fn end(bed: &Bed, run: RunKey, outcome: Outcome) {
    let close = RunWrite::Close { run, attempt: None, closing: closing(outcome) };
    bed.write_runs(vec![close]).await.expect("it is live");
}

async fn dead(bed: &Bed, query: RunQuery) -> Vec<RunKey> {
    let query = RunQuery { filter: Some(RunFilter::DeadLetter), ..query };
    let found = all_runs(&*bed.store, &query).await;
    assert!(found.iter().all(|run| run.is_dead_letter && run.closing.is_some()));
    found.iter().map(|run| run.run.made.run).collect()
}

fn of_default() -> RunQuery {
    RunQuery { namespace: "default".into(), count: 100, ..RunQuery::default() }
}

async fn what_ends_badly_is_a_dead_letter(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let outcomes =
        [Outcome::Failed, Outcome::TimedOut, Outcome::Succeeded, Outcome::Cancelled, Outcome::Terminated];
    let mut runs = Vec::new();
    for outcome in outcomes {
        let run = bed.ready().await.run;
        assert_eq!(bed.write_runs(bury(run)).await, moved(run), "it has not ended");
        end(&bed, run, outcome).await;
        runs.push(run);
    }
    assert_eq!(dead(&bed, of_default()).await, [runs[1], runs[0]], "failed or timed out, the latest first");
    let stored = bed.store.load_runs(runs.clone()).await.expect("the store answers");
    let flags: Vec<bool> = stored.into_iter().map(|run| run.expect("it is kept").is_dead_letter).collect();
    assert_eq!(flags, [true, true, false, false, false]);

    bed.write_runs(bury(runs[1])).await.expect("it is one");
    assert_eq!(dead(&bed, of_default()).await, [runs[0]]);
    assert_eq!(bed.write_runs(bury(runs[1])).await, moved(runs[1]), "somebody was faster");
    assert_eq!(bed.write_runs(bury(runs[2])).await, moved(runs[2]), "it went well");
    let unknown = RunKey(bed.key().await);
    assert_eq!(bed.write_runs(bury(unknown)).await, moved(unknown));
    let again = RunWrite::Insert(bed.new_run().await);
    let both = vec![RunWrite::Bury { run: runs[1] }, again];
    assert_eq!(bed.write_runs(both).await, moved(runs[1]), "whoever tries it again must be the first");
    assert_eq!(bed.live().await, [], "and makes no run otherwise");
    let failed = RunQuery { filter: Some(RunFilter::Closed(Some(Outcome::TimedOut))), ..of_default() };
    assert_eq!(all_runs(&*bed.store, &failed).await.len(), 1, "how it ended does not change");
}

async fn dead_letters_come_in_pages(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let tree = bed.tree("nightly").await;
    let create = async |namespace, name| -> QueueKey {
        bed.store.create_queue(new_queue(namespace, name)).await.expect("it is declared").queue
    };
    let queues = [bed.queue, create("default", "other").await, create("elsewhere", "work").await];
    let mut runs: Vec<(RunKey, usize, bool)> = Vec::new();
    for place in 0..24_usize {
        let origin = (place % 4 == 0).then(|| (tree, start(place as i64)));
        let made = NewRun { queue: queues[place % 3], origin, ..bed.new_run().await };
        bed.write_runs(vec![RunWrite::Insert(made.clone())]).await.expect("it is new");
        end(&bed, made.run, if place % 5 == 0 { Outcome::Succeeded } else { Outcome::Failed }).await;
        if place % 5 != 0 {
            runs.insert(0, (made.run, place % 3, place % 4 == 0));
        }
    }
    let wanted = |wanted: &dyn Fn(usize, bool) -> bool| -> Vec<RunKey> {
        runs.iter().filter(|(_, queue, of_tree)| wanted(*queue, *of_tree)).map(|(run, ..)| *run).collect()
    };
    for count in [1, 2, 5, 100] {
        let query = RunQuery { count, ..of_default() };
        assert_eq!(dead(&bed, query.clone()).await, wanted(&|queue, _| queue < 2));
        let of_queue = RunQuery { queue: Some(queues[1]), ..query.clone() };
        assert_eq!(dead(&bed, of_queue).await, wanted(&|queue, _| queue == 1));
        let of_tree = RunQuery { tree: Some(tree), ..query.clone() };
        assert_eq!(dead(&bed, of_tree).await, wanted(&|queue, of_tree| queue < 2 && of_tree));
        let elsewhere = RunQuery { namespace: "elsewhere".into(), ..query.clone() };
        assert_eq!(dead(&bed, elsewhere).await, wanted(&|queue, _| queue == 2));
        let foreign = RunQuery { queue: Some(queues[2]), ..query.clone() };
        assert_eq!(dead(&bed, foreign).await, []);
        let before = RunQuery { before: Some(runs[7].0), ..query };
        let expected: Vec<RunKey> = wanted(&|queue, _| queue < 2);
        let expected: Vec<RunKey> = expected.into_iter().filter(|run| *run < runs[7].0).collect();
        assert_eq!(dead(&bed, before).await, expected);
    }
}

async fn dead_letters_go_like_all_runs(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let run = bed.ready().await.run;
    end(&bed, run, Outcome::Failed).await;
    let retention = Retention {
        runs_before: at(100),
        ledger_before: Timestamp::MIN,
        runs_max: None,
        ledger_max: None,
        rows_max: 9,
    };
    assert_eq!(bed.store.retire(retention).await, Ok(1));
    assert_eq!(dead(&bed, of_default()).await, []);
    assert_eq!(bed.write_runs(bury(run)).await, moved(run));
}

async fn an_attempt_goes_on_in_other_hands(subject: &impl Subject) {
    let bed = Bed::new(subject).await;
    let ready = bed.ready().await.run;
    let hand_over = |run, attempt| vec![RunWrite::HandOver { run, attempt, worker: "outside".into() }];
    assert_eq!(bed.write_runs(hand_over(ready, 0)).await, moved(ready), "nobody has it");
    let running = bed.running().await;
    let run = running.made.run;
    assert_eq!(bed.write_runs(hand_over(run, 2)).await, moved(run), "another attempt runs");
    bed.write_runs(hand_over(run, 1)).await.expect("it runs");

    let live = bed.live().await.into_iter().find(|live| live.made.run == run).expect("it is live");
    let state = LiveState::Running { worker: "outside".into(), started_at: at(77) };
    assert_eq!((live.state, live.attempt), (state, 1), "the attempt is the same");
    let retry = RunWrite::Retry { run, attempt: 1, not_before: at(5), failure: bytes("oops") };
    bed.write_runs(vec![retry]).await.expect("whoever has it reports its end");
    assert_eq!(bed.write_runs(hand_over(run, 1)).await, moved(run), "the attempt is over");
}
