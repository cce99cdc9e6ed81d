//! A shard writes every change once, whatever comes between its reading and its writing.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{
    Command, Completion, Outcome, OverlapPolicy, Policies, Rejection, RequestId, StartId, Trigger,
};
use punctual_engine::shard::{Assignment, Event, Refusal, Settings, Target, Ticket};
use punctual_engine::{Verb, Work};
use punctual_store::{Batch, Closing, Conflict, LiveRun, RunWrite, Sequence, Store, StoreError, Unit};

use crate::bench::{Bench, at, every, key, now_or_never};

fn allow_all() -> Policies {
    Policies { overlap: OverlapPolicy::AllowAll, ..Policies::default() }
}

#[test]
fn a_schedule_is_created_once_and_starts_on_time() {
    let mut bench = Bench::new();
    let created = bench.create(every(10, "a", allow_all()));
    assert_eq!(bench.answer(created).as_ref().unwrap().revision.0, 1);

    bench.advance(35);

    let runs = bench.claim(100);
    let nominal: Vec<_> = runs.iter().map(|run| run.made.origin.unwrap().1.nominal_time()).collect();
    assert_eq!(nominal, ["00:00:10", "00:00:20", "00:00:30"].map(|time| at(&format!("2026-01-01T{time}Z"))));
    assert_eq!(bench.claim(100), []);
}

#[test]
fn what_happens_is_told_line_by_line_only_while_somebody_follows() {
    let mut bench = Bench::new();
    bench.create(every(10, "a", allow_all()));
    let mut lines_of_ten_seconds = |followed| {
        bench.shard.is_followed(followed);
        bench.effects.clear();
        bench.advance(10);
        assert_eq!(bench.claim(100).len(), 1, "it starts all the same");
        bench.effects.iter().filter(|effect| effect.contains("Noted")).count()
    };
    assert_eq!([true, false, true].map(&mut lines_of_ten_seconds), [2, 0, 2]);
}

#[test]
fn a_herd_is_started_whole_however_little_of_it_is_fetched_together() {
    let mut bench = Bench::new();
    for number in 0..100 {
        bench.create(every(10, &format!("s{number}"), allow_all()));
    }
    bench.advance(10);
    assert_eq!(bench.claim(1_000).len(), 100);
}

#[test]
fn a_name_that_is_taken_is_refused_and_the_same_request_is_answered_again() {
    let mut bench = Bench::new();
    let first = bench.create(every(10, "a", allow_all()));
    let again = bench.create(every(10, "a", allow_all()));
    let mut other = every(10, "a", allow_all());
    other.request = RequestId::new("another");
    let other = bench.create(other);

    assert_eq!(bench.answer(first), bench.answer(again));
    assert_eq!(*bench.answer(other), Err(Refusal::Rejected(Rejection::AlreadyExists)));
}

#[test]
fn two_creations_of_one_name_at_the_same_time_make_one_schedule() {
    let mut bench = Bench::new();
    bench.holds_batches = true;
    let first = bench.create(every(10, "a", allow_all()));
    let mut other = every(10, "a", allow_all());
    other.request = RequestId::new("another");
    let other = bench.create(other);
    release(&mut bench);

    assert!(bench.answer(first).is_ok());
    assert_eq!(*bench.answer(other), Err(Refusal::Rejected(Rejection::AlreadyExists)));
}

/// Writes what was held back, and all that follows.
fn release(bench: &mut Bench) {
    bench.holds_batches = false;
    for (batch, units) in std::mem::take(&mut bench.held) {
        let answer = Ok(bench.store.commit_now(&units));
        bench.event(Event::Committed { batch, answer });
    }
}

#[test]
fn a_deleted_schedule_gives_up_its_name() {
    let mut bench = Bench::new();
    bench.create(every(10, "a", allow_all()));
    let request = RequestId::new("delete");
    bench.ask("a", Work::Change(Verb::Delete(Command { request, body: () })));
    let before = bench.stored("a").unwrap();
    let mut again = every(86_400, "a", allow_all());
    again.request = RequestId::new("again");

    let again = bench.create(again);

    assert!(bench.answer(again).is_ok());
    assert_ne!(bench.stored("a").unwrap().tree, before.tree);
    // The old one stays for its retention, and then goes without taking the name with it.
    bench.advance(8 * 24 * 3_600);
    assert!(bench.stored("a").is_some());
    assert_eq!(bench.claim(10).len(), 8);
}

#[test]
fn a_conflict_sends_only_that_tree_round_again() {
    let mut bench = Bench::new();
    bench.create(every(10, "a", allow_all()));
    bench.create(every(10, "b", allow_all()));
    // Somebody else, without the shard, pauses "a" behind the owner's back.
    let mut guest = Bench::on(bench.store.clone(), bench.now, Settings::default());
    guest.pause("a", "guest");
    assert!(guest.stored("a").unwrap().sequence > Sequence(1));
    // The guest took the shard with it; give the owner its epoch back by taking it anew.
    let mut owner = Bench::on(bench.store.clone(), bench.now, Settings::default());
    owner.advance(10);
    let starts: Vec<StartId> = owner.claim(10).iter().map(|run| run.made.origin.unwrap().1).collect();
    assert_eq!(starts.len(), 1, "only b starts, a is paused");

    // The guest still believes to be the owner: it is refused, and stops.
    guest.advance(30);
    assert!(guest.fenced);
    assert_eq!(guest.claim(10).len(), 0);
}

#[test]
fn a_lost_answer_doubles_nothing() {
    let mut bench = Bench::new();
    bench.create(every(10, "a", allow_all()));
    bench.holds_batches = true;
    bench.advance(10);
    let (batch, units) = bench.held.remove(0);

    // It is written, and nobody is told.
    let written = bench.store.commit_now(&units);
    assert_eq!(written, [Ok(())]);
    bench.holds_batches = false;
    bench.event(Event::Committed { batch, answer: Err(StoreError::unavailable("the line is cut")) });
    bench.advance(5);

    assert_eq!(bench.claim(10).len(), 1);
    bench.advance(5);
    assert_eq!(bench.claim(10).len(), 1);
}

#[test]
fn work_is_tried_again_until_the_database_answers() {
    let mut bench = Bench::new();
    bench.create(every(10, "a", allow_all()));
    bench.holds_batches = true;
    let paused = bench.pause("a", "p");
    for _ in 0..3 {
        let (batch, _) = bench.held.remove(0);
        bench.event(Event::Committed { batch, answer: Err(StoreError::unavailable("away")) });
        assert!(!bench.answers.contains_key(&paused));
        bench.advance(3);
    }
    release(&mut bench);

    assert!(bench.answer(paused).is_ok());
    bench.advance(20);
    assert_eq!(bench.claim(10).len(), 0);
}

#[test]
fn a_client_is_told_when_others_are_always_faster() {
    let mut bench = Bench::new();
    bench.create(every(10, "a", allow_all()));
    bench.holds_batches = true;
    let paused = bench.pause("a", "p");
    for _ in 0..5 {
        let (batch, _) = bench.held.remove(0);
        let conflict = Conflict::Sequence { expected: Sequence(1), found: Some(Sequence(2)) };
        bench.event(Event::Committed { batch, answer: Ok(vec![Err(StoreError::Conflict(conflict))]) });
    }
    assert_eq!(*bench.answer(paused), Err(Refusal::Aborted { tries: 5 }));
}

#[test]
fn a_broken_record_quarantines_one_schedule_and_no_other() {
    let mut bench = Bench::new();
    bench.create(every(10, "a", allow_all()));
    bench.create(every(10, "b", allow_all()));
    let stored = bench.stored("a").unwrap();
    let unit = Unit {
        tree: Some(punctual_store::TreeWrite {
            tree: stored.tree,
            shard: stored.shard,
            epoch: None,
            expected: punctual_store::Expected::At(stored.sequence),
            definition: None,
            view: None,
            state: Arc::new([9, 9, 9]),
            completion: None,
            due_time: Some(at("2026-01-01T00:00:10Z")),
            ledger: Vec::new(),
            retired: false,
        }),
        runs: Vec::new(),
        request: None,
    };
    let broken = Batch::of(vec![unit]);
    assert_eq!(bench.store.commit_now(&broken), [Ok(())]);

    let mut owner = Bench::on(bench.store.clone(), bench.now, Settings::default());
    owner.advance(25);

    assert_eq!(owner.claim(10).len(), 2, "b goes on");
    assert!(
        owner.effects.iter().any(|effect| effect.contains("Quarantined") && effect.contains("version is 9"))
    );
    for request in ["p", "q", "r"] {
        let asked = owner.pause("a", request);
        assert!(matches!(owner.answer(asked), Err(Refusal::Quarantined(_))), "nobody waits in vain");
    }
}

#[test]
fn a_herd_is_worked_off_in_batches_and_memory_stays_bounded() {
    let settings = Settings { units_max: 50, loads_max: 40, trees_max: 100, ..Settings::default() };
    let mut bench = Bench::on(Bench::new().store, at("2026-01-01T00:00:00.5Z"), settings.clone());
    for index in 0..500 {
        bench.create(every(10, &format!("s{index}"), allow_all()));
    }
    let mut owner = Bench::on(bench.store.clone(), bench.now, settings);
    owner.advance(10);

    assert_eq!(owner.claim(1_000).len(), 500);
    assert!(owner.batches.iter().all(|units| *units <= 50), "{:?}", owner.batches);
    assert!(owner.shard.size().1 <= 150, "{:?}", owner.shard.size());
    owner.advance(10);
    assert_eq!(owner.claim(1_000).len(), 500);
}

#[test]
fn an_idle_shard_has_nothing_to_do_until_its_next_timer() {
    let mut bench = Bench::new();
    bench.create(every(3_600, "a", allow_all()));
    bench.settle();
    assert_eq!(bench.shard.next_time(), Some(at("2026-01-01T01:00:00Z")));
    let far = bench.now + SignedDuration::from_mins(30);
    let mut effects = Vec::new();
    bench.shard.flush(far, &mut effects);
    assert!(effects.is_empty());
    let depth = now_or_never(bench.store.queue_depth(bench.queue)).unwrap();
    assert_eq!(depth.ready, 0);
    assert_eq!(key("a").schedule.as_ref(), "a");
}

/// A worker's word that a run has ended.
fn report(live: &LiveRun, attempt: u32, closed_at: Timestamp) -> Assignment {
    let (run, (tree, start)) = (live.made.run, live.made.origin.unwrap());
    let outcome = Outcome::Succeeded;
    let completion = Completion { start, outcome, payload: None, completed_at: closed_at };
    let closing = Closing { outcome, closed_at, payload: None };
    Assignment {
        ticket: Some(Ticket(900 + u64::from(attempt))),
        target: Target::Tree(tree),
        work: Work::Change(Verb::Complete(completion)),
        runs: vec![RunWrite::Close { run, attempt: Some(attempt), closing }],
        tries: 0,
    }
}

/// The storm found it: by the clocks of two nodes a run began 33 µs before the one in its way had ended.
#[test]
fn an_end_by_a_clock_that_is_ahead_is_not_after_the_run_that_follows() {
    let mut bench = Bench::new();
    let one_waits = Policies { overlap: OverlapPolicy::BufferOne, ..Policies::default() };
    bench.create(every(10, "a", one_waits));
    bench.advance(10);
    let first = bench.claim(1).remove(0);
    bench.advance(10);
    assert!(bench.claim(1).is_empty(), "the second one waits");

    let ahead = bench.now + SignedDuration::from_millis(5);
    let mut effects = Vec::new();
    bench.shard.handle(bench.now, Event::Submit(report(&first, 1, ahead)), &mut effects);
    bench.settle();

    let second = bench.claim(1).remove(0);
    let ended = now_or_never(bench.store.load_runs(vec![first.made.run])).unwrap().remove(0).unwrap();
    assert!(ended.closing.unwrap().closed_at <= second.made.created_at);
}

/// The simulator found it: an old report in the same unit took the one that counts down with it.
#[test]
fn a_report_that_counts_is_heard_beside_a_late_one() {
    let mut bench = Bench::new();
    bench.create(every(10, "a", allow_all()));
    bench.advance(10);
    let first = bench.claim(1).remove(0);
    let run = first.made.run;
    let failure = Arc::new([]);
    let retry = RunWrite::Retry { run, attempt: 1, not_before: bench.now, failure };
    let units = [retry, RunWrite::Release { run }].map(|write| Unit { runs: vec![write], ..Unit::default() });
    assert_eq!(bench.store.commit_now(&Batch::of(units.into())), [Ok(()), Ok(())]);
    assert_eq!(bench.claim(1)[0].attempt, 2);

    let (late, good) = (report(&first, 1, bench.now), report(&first, 2, bench.now));
    let mut effects = Vec::new();
    bench.shard.handle(bench.now, Event::Submit(late), &mut effects);
    bench.shard.handle(bench.now, Event::Submit(good), &mut effects);
    assert!(effects.is_empty());
    bench.settle();

    assert_eq!(*bench.answer(Ticket(901)), Err(Refusal::RunMoved));
    assert!(bench.answer(Ticket(902)).is_ok());
}

/// The simulator found it: a unit of many transitions took more keys than there were, and made starts without runs.
#[test]
fn every_start_has_its_run_when_keys_are_scarce() {
    let settings = Settings { keys_min: 2, ..Settings::default() };
    let mut bench = Bench::on(Bench::new().store, at("2026-01-01T00:00:00.5Z"), settings);
    bench.create(every(3_600, "a", allow_all()));
    let mut effects = Vec::new();
    for index in 0..300 {
        let request = RequestId::new(&format!("t{index}"));
        let command = Command { request, body: Trigger::default() };
        let (target, work) = (Target::Name(key("a")), Work::Change(Verb::Trigger(command)));
        let assignment = Assignment { ticket: None, target, work, runs: Vec::new(), tries: 0 };
        bench.shard.handle(bench.now, Event::Submit(assignment), &mut effects);
    }
    bench.settle();
    assert_eq!(bench.claim(1_000).len(), 300);
}

#[test]
fn keys_that_were_drawn_long_ago_are_not_used() {
    let settings = Settings { keys_age_max: SignedDuration::from_secs(1), ..Settings::default() };
    let mut bench = Bench::on(Bench::new().store, at("2026-01-01T00:00:00.5Z"), settings);
    bench.create(every(60, "a", allow_all()));
    // Somebody else draws keys in between: a run that is made later has a higher one all the same.
    let between = now_or_never(bench.store.reserve(1)).unwrap();
    bench.advance(61);
    let runs = bench.claim(9);
    assert_eq!(runs.len(), 1);
    assert!(runs[0].made.run.0 > between, "{} was drawn before {between}", runs[0].made.run);
}
