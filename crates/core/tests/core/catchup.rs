//! After an outage the catch-up policy decides, in bounded work, and nothing is lost without a verdict.

use jiff::SignedDuration;
use punctual_core::OverlapPolicy::{AllowAll, BufferAll};
use punctual_core::{CatchupCount, Miss, NotStarted, Outcome::Succeeded};
use punctual_sim::bed::{Bed, Dispatcher, every};

#[test]
fn what_is_older_than_the_window_is_missed_as_one_range() {
    let plan = every("1s").policies(|policies| policies.catchup_window = Some(SignedDuration::from_secs(30)));
    let mut bed = Bed::with(plan.overlap(AllowAll));
    bed.away_until("10:00");
    assert_eq!(bed.runs.len(), 31);
    let missed: Vec<_> = bed.ledger.iter().filter(|entry| entry.count > 1).collect();
    assert_eq!(missed.len(), 1);
    assert_eq!(missed[0].count, 10 * 3600 - 31);
    assert_eq!(bed.describe().counters.missed, 10 * 3600 - 31);
    bed.expect_not_started("05:00", NotStarted::Missed(Miss::Window));
    bed.expect_every_occurrence_decided_once();
}

#[test]
fn a_backlog_beyond_the_buffer_is_dropped_in_the_ledger() {
    let mut bed = Bed::with(every("1s").overlap(BufferAll).limits(|limits| limits.buffered_starts_max = 10));
    bed.away_until("00:01");
    assert_eq!(bed.run_times(), ["00:00:01"]);
    assert_eq!(bed.waiting().len(), 9);
    bed.expect_not_started("00:00:11", NotStarted::Dropped);
    bed.expect_not_started("00:01:00", NotStarted::Dropped);
    assert_eq!(bed.describe().counters.dropped, 50);
    bed.expect_every_occurrence_decided_once();
}

/// Runs that never end cannot make a schedule grow without end.
#[test]
fn runs_in_progress_are_bounded_and_what_finds_no_place_is_dropped() {
    let mut bed = Bed::with(every("1h").overlap(AllowAll).limits(|limits| limits.starts_max = 3));
    bed.advance_to("05:00");
    assert_eq!(bed.run_times(), ["01:00", "02:00", "03:00"]);
    bed.expect_not_started("04:00", NotStarted::Dropped);
    bed.complete("01:00", Succeeded).advance_to("06:00");
    assert_eq!(bed.run_times(), ["01:00", "02:00", "03:00", "06:00"]);
    bed.expect_every_occurrence_decided_once();
}

#[test]
fn only_the_latest_are_wanted_where_the_policy_says_so() {
    let plan =
        every("1h").overlap(AllowAll).policies(|policies| policies.catchup_count = CatchupCount::Latest(2));
    let mut bed = Bed::with(plan);
    bed.away_until("05:30");
    assert_eq!(bed.run_times(), ["04:00", "05:00"]);
    bed.expect_not_started("03:00", NotStarted::Missed(Miss::Count));
    assert_eq!(bed.describe().counters.missed, 3);
    bed.expect_every_occurrence_decided_once();

    bed.advance_to("06:00");
    assert_eq!(bed.run_times(), ["04:00", "05:00", "06:00"]);
}

#[test]
fn late_starts_keep_their_pace() {
    let pace = SignedDuration::from_mins(10);
    let mut bed =
        Bed::with(every("1h").overlap(AllowAll).policies(|policies| policies.catchup_pace = Some(pace)));
    bed.away_until("03:30").advance_to("03:55");
    let started: Vec<String> =
        bed.runs.iter().map(|run| run.started_at.to_string()[11..16].to_owned()).collect();
    assert_eq!(started, ["03:30", "03:40", "03:50"]);
}

#[test]
fn a_start_that_waits_too_long_in_the_buffer_is_missed_when_it_leaves() {
    let window = SignedDuration::from_mins(90);
    let mut bed =
        Bed::with(every("1h").overlap(BufferAll).policies(|policies| policies.catchup_window = Some(window)));
    bed.advance_to("04:00");
    bed.complete("01:00", Succeeded);
    assert_eq!(bed.run_times(), ["01:00", "03:00"]);
    bed.expect_not_started("02:00", NotStarted::Missed(Miss::Window));
    bed.expect_every_occurrence_decided_once();
}

#[test]
fn a_century_away_is_decided_in_bounded_work() {
    let mut bed = Bed::with(every("1s"));
    bed.away_until("2099-01-01T00:00:00Z");
    assert_eq!(bed.runs.len(), 1);
    assert!(bed.ledger.len() < 2_100);
    assert!(bed.ledger.iter().any(|entry| entry.at_least));
}

#[test]
fn limited_actions_are_consumed_by_real_starts() {
    let mut plan = every("1h").overlap(AllowAll);
    plan.remaining_actions = Some(2);
    let mut bed = Bed::with(plan);
    bed.dispatcher = Dispatcher::Refuses;
    bed.advance_to("01:00");
    assert_eq!(bed.describe().remaining_actions, Some(2));

    bed.dispatcher = Dispatcher::Works;
    bed.advance_to("05:00");

    assert_eq!(bed.run_times(), ["02:00", "03:00"]);
    assert_eq!(bed.describe().remaining_actions, Some(0));
    assert!(bed.describe().upcoming.is_empty());
    bed.expect_every_occurrence_decided_once();
}
