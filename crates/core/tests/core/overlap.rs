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

#[test]
fn concurrency_counts_runs_before_the_policy_asks() {
    let mut bed = Bed::with(every("1h").overlap(Skip).policies(|policies| policies.concurrency = 2));
    bed.advance_to("03:00");
    assert_eq!(bed.run_times(), ["01:00", "02:00"]);
    bed.expect_not_started("03:00", NotStarted::Skipped(SkipCause::Overlap));

    bed.complete("01:00", Succeeded).advance_to("04:00");

    assert_eq!(bed.run_times(), ["01:00", "02:00", "04:00"]);
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
