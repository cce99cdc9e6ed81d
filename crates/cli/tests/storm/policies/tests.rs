//! The checks bite: each says what is wrong with a story in which one thing is.

use super::*;
use crate::plan::Plan;

const AT_ONCE: Bounds = Bounds { late_max: Duration::from_millis(10), stop_max: Duration::from_secs(3) };

fn time(seconds: f64) -> Option<prost_types::Timestamp> {
    let millis = (seconds * 1_000.0) as i64;
    Some(prost_types::Timestamp { seconds: millis / 1_000, nanos: (millis % 1_000 * 1_000_000) as i32 })
}

/// A run for a second, from when until when it was in progress, and how it ended.
fn run(second: f64, from: f64, until: f64, outcome: v1::outcome::Word) -> v1::Run {
    v1::Run {
        nominal_time: time(second),
        due_time: time(second),
        created_at: time(from),
        closed_at: time(until),
        outcome: outcome.into(),
        cancel_requested: outcome == v1::outcome::Word::Cancelled,
        origin: v1::origin::Kind::Spec.into(),
        ..Default::default()
    }
}

fn succeeded(second: f64, from: f64, until: f64) -> v1::Run {
    run(second, from, until, v1::outcome::Word::Succeeded)
}

fn entry(second: f64, decided_at: f64, verdict: Word) -> v1::LedgerEntry {
    let reason = match verdict {
        Word::Superseded => v1::reason::Word::LaterStart,
        _ => v1::reason::Word::Unspecified,
    };
    v1::LedgerEntry {
        from: time(second),
        through: time(second),
        count: 1,
        verdict: verdict.into(),
        reason: reason.into(),
        decided_at: time(decided_at),
        ..Default::default()
    }
}

#[track_caller]
fn holds(overlap: Policy, runs: &[v1::Run], ledger: &[v1::LedgerEntry]) -> Figures {
    check_overlap(&Plan::every_second("a-plan", overlap), runs, ledger, AT_ONCE).unwrap()
}

#[track_caller]
fn is_wrong(overlap: Policy, runs: &[v1::Run], ledger: &[v1::LedgerEntry], said: &str) {
    let wrong = check_overlap(&Plan::every_second("a-plan", overlap), runs, ledger, AT_ONCE).unwrap_err();
    assert!(wrong.contains(said), "{wrong}");
}

#[test]
fn two_at_once_are_found() {
    let runs = [succeeded(1.0, 1.0, 2.5), succeeded(2.0, 2.0, 3.0)];
    is_wrong(Policy::BufferAll, &runs, &[], "runs in progress at once");
    holds(Policy::AllowAll, &runs, &[]);
}

#[test]
fn a_later_start_that_overtakes_an_earlier_one_is_found() {
    let runs = [succeeded(1.0, 3.0, 4.0), succeeded(2.0, 2.0, 3.0)];
    is_wrong(Policy::BufferAll, &runs, &[], "began before an earlier one");
    holds(Policy::BufferAll, &[succeeded(1.0, 2.0, 3.0), succeeded(2.0, 3.0, 4.0)], &[]);
}

#[test]
fn verdicts_that_the_policy_does_not_know_are_found() {
    let runs = [succeeded(1.0, 1.0, 9.0)];
    is_wrong(Policy::BufferAll, &runs, &[entry(2.0, 2.0, Word::Skipped)], "ends no start this way");
    is_wrong(Policy::Skip, &runs, &[entry(2.0, 2.0, Word::Superseded)], "ends no start this way");
    holds(Policy::Skip, &runs, &[entry(2.0, 2.0, Word::Skipped)]);
}

#[test]
fn a_skip_without_a_run_in_its_way_is_found() {
    let runs = [succeeded(1.0, 1.0, 1.9)];
    is_wrong(Policy::Skip, &runs, &[entry(2.0, 2.0, Word::Skipped)], "skipped without a run");
}

#[test]
fn whoever_waits_under_skip_is_found() {
    let runs = [succeeded(1.0, 1.0, 2.5), succeeded(2.0, 2.7, 2.8)];
    // Nothing tells that the second one was known before it began.
    holds(Policy::Skip, &runs, &[]);
    let runs = [succeeded(1.0, 1.0, 2.5), succeeded(2.0, 3.0, 3.1), succeeded(3.0, 3.0, 3.1)];
    is_wrong(Policy::Skip, &runs[..2], &[entry(2.0, 2.1, Word::Skipped)], "wait at");
}

#[test]
fn a_second_one_that_waits_under_buffer_one_is_found() {
    let first = [succeeded(1.0, 1.0, 3.5), succeeded(2.0, 3.5, 4.6)];
    holds(Policy::BufferOne, &first, &[entry(3.0, 3.0, Word::Skipped)]);
    // When the second began, two were waiting: the ones for 3 and 4, known by then, that began later.
    let runs = [
        succeeded(1.0, 1.0, 4.1),
        succeeded(2.0, 4.1, 4.5),
        succeeded(3.0, 4.5, 4.7),
        succeeded(4.0, 4.7, 4.8),
    ];
    is_wrong(Policy::BufferOne, &runs, &[], "2 wait at");
    holds(Policy::BufferAll, &runs, &[]);
}

#[test]
fn a_skip_under_buffer_one_while_nobody_waits_is_found() {
    let runs = [succeeded(1.0, 1.0, 2.5)];
    is_wrong(Policy::BufferOne, &runs, &[entry(2.0, 2.0, Word::Skipped)], "nobody waited");
    let ledger = [entry(2.0, 2.4, Word::Paused), entry(2.0, 2.1, Word::Skipped)];
    holds(Policy::BufferOne, &runs, &ledger);
}

#[test]
fn a_run_that_stays_in_the_way_is_found() {
    let alone = [succeeded(1.0, 1.0, 6.0), succeeded(2.0, 6.0, 7.0)];
    for overlap in [Policy::CancelOther, Policy::TerminateOther] {
        is_wrong(overlap, &alone, &[], "nobody stopped it");
    }
    // Those that came and were superseded count like those that began.
    let superseded = [entry(2.0, 6.0, Word::Superseded)];
    is_wrong(Policy::CancelOther, &alone[..1], &superseded, "nobody stopped it");
    // Whoever was asked may take its time and succeed.
    let asked = v1::Run { cancel_requested: true, ..alone[0].clone() };
    let stops = holds(Policy::CancelOther, &[asked, alone[1].clone()], &[]).stops;
    assert_eq!((stops.count, stops.slowest), (1, Duration::from_secs(4)));
}

#[test]
fn a_free_place_is_nobody_in_the_way() {
    let plan = Plan { concurrency: 2, ..Plan::every_second("two", Policy::CancelOther) };
    let runs = [succeeded(1.0, 1.0, 9.0), succeeded(2.0, 2.0, 2.5), succeeded(3.0, 3.0, 3.5)];
    check_overlap(&plan, &runs, &[], AT_ONCE).unwrap();
    let runs = [succeeded(1.0, 1.0, 9.0), succeeded(2.0, 2.0, 8.0), succeeded(3.0, 8.0, 8.5)];
    assert!(check_overlap(&plan, &runs, &[], AT_ONCE).unwrap_err().contains("nobody stopped it"));
}

#[test]
fn a_stop_that_the_policy_does_not_know_is_found() {
    let ended = |outcome| [run(1.0, 1.0, 2.1, outcome), succeeded(2.0, 2.1, 2.2)];
    let (cancelled, terminated) = (ended(v1::outcome::Word::Cancelled), ended(v1::outcome::Word::Terminated));
    holds(Policy::CancelOther, &cancelled, &[]);
    holds(Policy::TerminateOther, &terminated, &[]);
    is_wrong(Policy::CancelOther, &terminated, &[], "stops no run this way");
    is_wrong(Policy::TerminateOther, &cancelled, &[], "stops no run this way");
    is_wrong(Policy::BufferAll, &cancelled, &[], "stops no run this way");
}

#[test]
fn a_stop_that_nobody_asked_for_is_found() {
    let cancelled = run(1.0, 1.0, 1.5, v1::outcome::Word::Cancelled);
    is_wrong(Policy::CancelOther, &[cancelled, succeeded(2.0, 2.0, 2.2)], &[], "nobody came after it");
    let asked = |until| v1::Run { cancel_requested: true, ..succeeded(1.0, 1.0, until) };
    is_wrong(Policy::CancelOther, &[asked(1.7), succeeded(2.0, 2.0, 2.2)], &[], "nobody came after it");
    // It was asked before its schedule had heard of its end.
    holds(Policy::CancelOther, &[asked(1.8), succeeded(2.0, 2.0, 2.2)], &[]);
}
