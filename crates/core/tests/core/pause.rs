//! A paused schedule starts nothing but manual starts, costs nothing, and says what passed by.

use jiff::SignedDuration;
use punctual_core::OverlapPolicy::AllowAll;
use punctual_core::{
    NotStarted, OnResume, Outcome::Failed, Outcome::Succeeded, Pause, Phase, Resume, ScheduleTree, Trigger,
    Why,
};
use punctual_sim::bed::{Bed, at, every};

fn pause(bed: &mut Bed, until: Option<&str>) {
    bed.command(ScheduleTree::pause, Pause { note: "maintenance".into(), until: until.map(at) }).unwrap();
}

#[test]
fn what_passes_by_is_one_range_and_stays_undone() {
    let mut bed = Bed::with(every("1m").overlap(AllowAll));
    bed.advance_to("00:01");
    pause(&mut bed, None);
    bed.advance_to("10:00");
    assert_eq!(bed.why("05:00"), Why::WhilePaused);

    bed.command(ScheduleTree::resume, Resume::default()).unwrap();
    bed.advance_to("10:01");

    assert_eq!(bed.run_times(), ["00:01", "10:01"]);
    bed.expect_not_started("05:00", NotStarted::Paused);
    assert_eq!(bed.describe().counters.paused, 599);
    assert_eq!(bed.ledger.iter().filter(|entry| entry.count > 1).count(), 1);
    bed.expect_every_occurrence_decided_once();
}

#[test]
fn it_can_be_caught_up_instead() {
    let mut bed = Bed::with(every("1h").overlap(AllowAll));
    pause(&mut bed, None);
    bed.advance_to("03:30");
    bed.command(ScheduleTree::resume, Resume { on_resume: Some(OnResume::CatchUp) }).unwrap();
    assert_eq!(bed.run_times(), ["01:00", "02:00", "03:00"]);
    bed.expect_every_occurrence_decided_once();
}

#[test]
fn a_pause_with_an_end_resumes_by_itself() {
    let mut bed = Bed::with(every("1h"));
    pause(&mut bed, Some("02:30"));
    bed.advance_to("03:00");
    assert_eq!(bed.run_times(), ["03:00"]);
    assert!(bed.describe().pause.is_none());
    bed.expect_not_started("02:00", NotStarted::Paused);
}

#[test]
fn manual_starts_work_while_paused() {
    let mut bed = Bed::with(every("1h"));
    pause(&mut bed, None);
    bed.advance_to("00:30");
    bed.command(ScheduleTree::trigger, Trigger::default()).unwrap();
    assert_eq!(bed.run_times(), ["00:30"]);
}

#[test]
fn it_pauses_itself_after_enough_failures_in_a_row() {
    let mut bed = Bed::with(every("1h").policies(|policies| policies.pause_after_failures = Some(2)));
    bed.advance_to("01:00").complete("01:00", Failed).advance_to("02:00").complete("02:00", Succeeded);
    bed.advance_to("03:00").complete("03:00", Failed);
    assert!(bed.describe().pause.is_none());

    bed.advance_to("04:00").complete("04:00", Failed);

    let note = bed.describe().pause.unwrap().note;
    assert_eq!(&*note, "paused after 2 failures in a row, the last: run-2022-06-01T04:00:00Z");
    bed.advance_to("06:00");
    assert_eq!(bed.runs.len(), 4);
}

/// Found by comparison with the oracle: a deferred start slipped through when more room came while paused.
#[test]
fn a_start_that_waits_does_not_slip_through_a_pause() {
    let mut bed = Bed::with(every("1h").overlap(punctual_core::OverlapPolicy::BufferOne).on_a_queue());
    bed.advance_to("02:00");
    pause(&mut bed, None);
    bed.update(|plan| plan.policies.concurrency = 2).unwrap();
    bed.command(ScheduleTree::trigger, Trigger::default()).unwrap();
    bed.expect_not_started("02:00", NotStarted::Paused);
}

#[test]
fn a_pause_holds_back_what_waits_and_what_is_being_tried_again() {
    let mut bed = Bed::with(every("1h"));
    bed.dispatcher = punctual_sim::bed::Dispatcher::Fails;
    bed.advance_to("01:00");
    pause(&mut bed, None);
    bed.dispatcher = punctual_sim::bed::Dispatcher::Works;
    bed.advance_to(at("01:00") + SignedDuration::from_secs(30));
    assert!(matches!(bed.why("01:00"), Why::OnItsWay { phase: Phase::Doubtful { .. } }));
    bed.advance_to("01:02");
    assert!(bed.runs.is_empty());
    bed.expect_not_started("01:00", NotStarted::Paused);
}
