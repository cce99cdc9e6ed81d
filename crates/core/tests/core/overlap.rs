//! While a run is in progress, the overlap policy decides: who waits, who is skipped, who stops the other.

use punctual_core::OverlapPolicy::{AllowAll, BufferAll, BufferOne, CancelOther, Skip, TerminateOther};
use punctual_core::{
    NotStarted, Outcome::Cancelled, Outcome::Succeeded, Skip as SkipCause, StopKind, Supersede,
};
use punctual_sim::bed::{Bed, every};

#[test]
fn skip_starts_nothing_while_a_run_is_in_progress() {
    let mut bed = Bed::with(every("1h").overlap(Skip));
    bed.advance_to("02:30");
    assert_eq!(bed.run_times(), ["01:00"]);
    bed.expect_not_started("02:00", NotStarted::Skipped(SkipCause::Overlap));

    bed.complete("01:00", Succeeded).advance_to("03:00");

    assert_eq!(bed.run_times(), ["01:00", "03:00"]);
    assert_eq!(bed.describe().counters.skipped, 1);
    bed.expect_every_occurrence_decided_once();
}

#[test]
fn buffer_one_lets_the_first_blocked_start_wait_and_skips_later_ones() {
    let mut bed = Bed::with(every("1h").overlap(BufferOne));
    bed.advance_to("03:00"); // the 01:00 run is still in progress
    assert_eq!(bed.waiting(), ["02:00"]);
    bed.expect_not_started("03:00", NotStarted::Skipped(SkipCause::Overlap));

    bed.complete("01:00", Succeeded);

    assert_eq!(bed.run_times(), ["01:00", "02:00"]);
    bed.expect_every_occurrence_decided_once();
}

#[test]
fn buffer_all_drains_in_order() {
    let mut bed = Bed::with(every("1h").overlap(BufferAll));
    bed.advance_to("04:00");
    assert_eq!(bed.waiting(), ["02:00", "03:00", "04:00"]);

    bed.complete("01:00", Succeeded).complete("02:00", Succeeded).complete("03:00", Succeeded);

    assert_eq!(bed.run_times(), ["01:00", "02:00", "03:00", "04:00"]);
    assert!(bed.waiting().is_empty());
    bed.expect_every_occurrence_decided_once();
}

#[test]
fn allow_all_starts_beside_others() {
    let mut bed = Bed::with(every("1h").overlap(AllowAll));
    bed.advance_to("03:00");
    assert_eq!(bed.run_times(), ["01:00", "02:00", "03:00"]);
}

#[test]
fn cancel_other_asks_once_and_waits_for_the_end() {
    let mut bed = Bed::with(every("1h").overlap(CancelOther));
    bed.advance_to("02:30");
    assert_eq!(bed.stops.len(), 1);
    assert_eq!(bed.stops[0].2, StopKind::Cancel);
    assert_eq!(bed.run_times(), ["01:00"]);

    bed.complete("01:00", Cancelled);

    assert_eq!(bed.run_times(), ["01:00", "02:00"]);
    bed.expect_every_occurrence_decided_once();
}

#[test]
fn terminate_other_wins_over_an_earlier_cancel() {
    let mut bed = Bed::with(every("1h").overlap(CancelOther));
    bed.advance_to("02:00");
    bed.update(|plan| plan.policies.overlap = TerminateOther).unwrap();
    bed.advance_to("03:00");
    let kinds: Vec<StopKind> = bed.stops.iter().map(|stop| stop.2).collect();
    assert_eq!(kinds, [StopKind::Cancel, StopKind::Terminate]);
}

#[test]
fn with_nothing_in_progress_the_newest_of_a_backlog_takes_the_place() {
    let mut bed = Bed::with(every("1h").overlap(TerminateOther));
    bed.away_until("03:30");
    assert_eq!(bed.run_times(), ["03:00"]);
    bed.expect_not_started("01:00", NotStarted::Superseded(Supersede::LaterStart));
    bed.expect_not_started("02:00", NotStarted::Superseded(Supersede::LaterStart));
    bed.expect_every_occurrence_decided_once();
}

/// Those that would start beside the others are stopped before they start, and leave a verdict.
#[test]
fn a_request_to_stop_everything_supersedes_what_would_start_beside() {
    let waiting = [(1, AllowAll), (2, CancelOther), (3, AllowAll)];
    let decision = punctual_core::decide(&waiting, true, 0);
    assert_eq!((decision.overlapping, decision.kept, decision.superseded), (vec![], vec![2], vec![1, 3]));
    assert!(decision.cancel && !decision.terminate);
    let decision = punctual_core::decide(&waiting, false, 1);
    assert_eq!((decision.overlapping, decision.chosen), (vec![1, 3], vec![2]));
}

#[test]
fn concurrency_counts_runs_before_the_policy_asks() {
    let mut bed = Bed::with(every("1h").overlap(Skip).policies(|policies| policies.concurrency = 2));
    bed.advance_to("03:00");
    assert_eq!(bed.run_times(), ["01:00", "02:00"]);
    bed.expect_not_started("03:00", NotStarted::Skipped(SkipCause::Overlap));

    bed.complete("01:00", Succeeded).advance_to("04:00");

    assert_eq!(bed.run_times(), ["01:00", "02:00", "04:00"]);
}

/// Found by comparison with the oracle: whoever waits is looked at again when there is more room.
#[test]
fn more_room_lets_those_that_wait_go_first() {
    let mut bed = Bed::with(every("1h").overlap(BufferAll).on_a_queue());
    bed.advance_to("02:00");
    bed.update(|plan| plan.policies.concurrency = 2).unwrap();
    assert_eq!(bed.run_times(), ["01:00", "02:00"]);
}

#[test]
fn more_actions_let_those_that_wait_for_one_go() {
    let mut plan = every("1h").overlap(AllowAll);
    plan.remaining_actions = Some(1);
    let mut bed = Bed::with(plan);
    bed.dispatcher = punctual_sim::bed::Dispatcher::Hangs;
    bed.advance_to("02:00");
    assert_eq!(bed.waiting(), ["02:00"]);
    let lift = punctual_core::Update { remaining_actions: Some(None), ..Default::default() };
    bed.command(punctual_core::ScheduleTree::update, lift).unwrap();
    assert!(bed.waiting().is_empty());
    assert_eq!(bed.describe().starts.in_progress.len(), 2);
}

#[test]
fn a_run_on_a_queue_starts_with_the_commit() {
    let mut bed = Bed::with(every("1h").on_a_queue());
    bed.advance_to("01:00");
    assert_eq!(bed.run_times(), ["01:00"]);
    assert_eq!(bed.commits, 2); // create, and one for the start
    bed.advance_to("02:00");
    bed.expect_not_started("02:00", NotStarted::Skipped(SkipCause::Overlap));
}
