//! Each verb does what it says, once, and refuses with a reason.

use punctual_core::OverlapPolicy::{AllowAll, BufferAll};
use punctual_core::{
    Backfill, CancelBackfill, Command, Lifecycle, NotStarted, Outcome::Succeeded, Pause, Rejection,
    RequestId, Revision, ScheduleTree, Skip, SkipOccurrence, Supersede, Trigger, UnskipOccurrence, Update,
    Verdict, Why,
};
use punctual_sim::bed::{Bed, at, cron, every};

fn backfill(from: &str, through: &str) -> Backfill {
    Backfill { from: at(from), through: at(through), overlap: Some(AllowAll), pace: None, note: "".into() }
}

#[test]
fn a_repeated_request_gets_the_same_answer_and_changes_nothing() {
    let mut bed = Bed::with(every("1h").overlap(AllowAll));
    let trigger = || Command { request: RequestId::new("same"), body: Trigger::default() };
    let first = bed.apply(ScheduleTree::trigger, trigger()).unwrap();
    let again = bed.apply(ScheduleTree::trigger, trigger()).unwrap();
    assert_eq!(first, again);
    assert_eq!(bed.runs.len(), 1);
    assert_eq!(bed.describe().revision, Revision(2));
    assert_eq!(bed.tree.created_before(&RequestId::new("create")).unwrap().revision, Revision(1));
    assert_eq!(bed.tree.created_before(&RequestId::new("another")), Err(Rejection::AlreadyExists));
}

#[test]
fn an_update_may_name_the_revision_that_it_saw() {
    let mut bed = Bed::with(every("1h"));
    let update = |expected| Update { expected_revision: Some(Revision(expected)), ..Update::default() };
    assert!(bed.command(ScheduleTree::update, update(1)).is_ok());
    let refused = bed.command(ScheduleTree::update, update(1)).unwrap_err();
    assert_eq!(refused.to_string(), "revision is 2, request expected 1");
}

#[test]
fn an_update_may_name_the_limit_that_it_saw() {
    let mut bed = Bed::with(every("1h").overlap(AllowAll));
    let limit = |remaining, seen| Update {
        remaining_actions: Some(remaining),
        expected_remaining: seen,
        ..Update::default()
    };
    bed.command(ScheduleTree::update, limit(Some(5), Some(None))).unwrap();
    let revision = bed.describe().revision;
    bed.advance_to("01:00");
    assert_eq!((bed.describe().remaining_actions, bed.describe().revision), (Some(4), revision));
    let refused = bed.command(ScheduleTree::update, limit(Some(9), Some(Some(5))));
    assert!(matches!(refused, Err(Rejection::RevisionMismatch { .. })), "{refused:?}");
    bed.command(ScheduleTree::update, limit(Some(9), Some(Some(4)))).unwrap();
    assert_eq!(bed.describe().remaining_actions, Some(9));
}

#[test]
fn an_update_pauses_triggers_and_backfills_at_once_or_not_at_all() {
    let mut bed = Bed::with(every("1h").overlap(AllowAll));
    let pause = |note: &str| Some(Some(Box::new(Pause { note: note.into(), until: Some(at("05:00")) })));
    let all = |backfills| Update {
        pause: pause("why"),
        trigger: Some(Box::default()),
        backfills,
        ..Update::default()
    };
    let upside_down = backfill("2022-05-31T12:00:00Z", "2022-05-31T10:00:00Z");
    assert!(bed.command(ScheduleTree::update, all(vec![upside_down])).is_err());
    assert!(bed.describe().pause.is_none() && bed.runs.is_empty(), "nothing of it happened");

    let range = backfill("2022-05-31T10:00:00Z", "2022-05-31T12:00:00Z");
    let answer = bed.command(ScheduleTree::update, all(vec![range])).unwrap();

    assert_eq!((answer.keys.len(), bed.runs.len()), (2, 4));
    assert_eq!(&*bed.describe().pause.unwrap().note, "why");
    let same = Update {
        pause: Some(Some(Box::new(Pause { note: "why".into(), until: None }))),
        ..Update::default()
    };
    bed.command(ScheduleTree::update, same).unwrap();
    assert_eq!(bed.describe().pause.unwrap().until, Some(at("05:00")), "the same pause goes on");
    bed.command(ScheduleTree::update, Update { pause: Some(None), ..Update::default() }).unwrap();
    assert!(bed.describe().pause.is_none());
}

#[test]
fn one_occurrence_can_be_skipped_and_unskipped() {
    let mut bed = Bed::with(every("1h").overlap(AllowAll));
    for hour in ["01:00", "02:00"] {
        bed.command(ScheduleTree::skip, SkipOccurrence { nominal_time: at(hour) }).unwrap();
    }
    assert_eq!(bed.why("01:00"), Why::WillBeSkipped);
    bed.command(ScheduleTree::unskip, UnskipOccurrence { nominal_time: at("02:00") }).unwrap();
    let never = bed.command(ScheduleTree::skip, SkipOccurrence { nominal_time: at("01:30") });
    assert_eq!(never, Err(Rejection::NotFound("a coming occurrence at that time")));

    bed.advance_to("03:00");

    assert_eq!(bed.run_times(), ["02:00", "03:00"]);
    bed.expect_not_started("01:00", NotStarted::Skipped(Skip::User));
    bed.expect_every_occurrence_decided_once();
}

#[test]
fn a_backfill_includes_both_ends_and_ends_by_itself() {
    let mut bed = Bed::with(every("1h"));
    let answer = bed
        .command(ScheduleTree::backfill, backfill("2022-05-31T10:00:00Z", "2022-05-31T12:00:00Z"))
        .unwrap();
    assert_eq!(answer.keys.len(), 1);
    assert_eq!(bed.runs.len(), 3);
    assert!(bed.describe().backfills.is_empty());
}

#[test]
fn a_backfill_waits_for_room_and_can_be_cancelled() {
    let mut bed = Bed::with(every("1h").overlap(BufferAll).limits(|limits| {
        limits.buffered_starts_max = 20;
        limits.buffer_reserve = 5;
    }));
    let range = Backfill { overlap: None, ..backfill("2022-05-01T00:00:00Z", "2022-05-31T00:00:00Z") };
    let key = bed.command(ScheduleTree::backfill, range).unwrap().keys[0];
    assert_eq!(bed.runs.len(), 1);
    assert!(bed.waiting().len() <= 5);
    assert_eq!(bed.describe().backfills[0].key, key);

    bed.command(ScheduleTree::cancel_backfill, CancelBackfill { key }).unwrap();

    assert!(bed.waiting().is_empty() && bed.describe().backfills.is_empty());
    let cancelled = Verdict::NotStarted(NotStarted::Superseded(Supersede::BackfillCancelled));
    assert!(bed.ledger.iter().any(|entry| entry.verdict == cancelled));
    assert_eq!(bed.runs.len(), 1); // the run goes on
    let again = bed.command(ScheduleTree::cancel_backfill, CancelBackfill { key });
    assert_eq!(again, Err(Rejection::NotFound("the backfill")));
}

#[test]
fn a_backfill_keeps_its_pace() {
    let mut bed = Bed::with(cron("0 * * * *"));
    let range = Backfill {
        pace: Some(jiff::SignedDuration::from_secs(60)),
        ..backfill("2022-05-31T10:00:00Z", "2022-05-31T12:00:00Z")
    };
    bed.command(ScheduleTree::backfill, range).unwrap();
    assert_eq!(bed.runs.len(), 1);
    bed.advance_to("00:01");
    assert_eq!(bed.runs.len(), 2);
    bed.advance_to("00:02");
    assert_eq!(bed.runs.len(), 3);
}

#[test]
fn a_deleted_schedule_gives_its_waiting_starts_a_verdict_and_refuses_commands() {
    let mut bed = Bed::with(every("1h").overlap(BufferAll));
    bed.advance_to("03:00");
    bed.command(ScheduleTree::delete, ()).unwrap();
    bed.expect_not_started("02:00", NotStarted::Superseded(Supersede::Delete));
    assert_eq!(bed.command(ScheduleTree::trigger, Trigger::default()), Err(Rejection::Closed));
    assert!(matches!(bed.describe().lifecycle, Lifecycle::Deleted { .. }));

    bed.complete("01:00", Succeeded); // the run in progress still reports
    assert_eq!(bed.describe().recent.len(), 1);
    bed.advance_to("2022-06-09T00:00:00Z");
    assert!(bed.retired);
}

/// A start that was in flight as its schedule was deleted, and that nobody ever answered for.
#[test]
fn nothing_of_a_deleted_schedule_ends_silently() {
    let mut bed = Bed::with(every("1h"));
    bed.dispatcher = punctual_sim::bed::Dispatcher::Hangs;
    bed.advance_to("01:00");
    bed.command(ScheduleTree::delete, ()).unwrap();
    assert!(matches!(bed.why("01:00"), Why::OnItsWay { .. }));
    bed.advance_to("2022-06-09T00:00:00Z");
    assert!(bed.retired);
    bed.expect_not_started("01:00", NotStarted::Superseded(Supersede::Delete));
}

#[test]
fn a_schedule_can_begin_paused_triggered_and_backfilled() {
    let mut plan = every("1h").overlap(AllowAll);
    plan.initial.pause = Some(Pause { note: "not yet".into(), until: None });
    plan.initial.trigger = Some(Trigger::default());
    plan.initial.backfills = vec![backfill("2022-05-31T10:00:00Z", "2022-05-31T11:00:00Z")];
    let mut bed = Bed::with(plan);
    bed.advance_to("05:00");
    assert_eq!(bed.runs.len(), 3);
    assert_eq!(bed.describe().revision, Revision(1));
}

#[test]
fn a_list_shows_what_matters() {
    let mut bed = Bed::with(every("1h").overlap(BufferAll));
    bed.advance_to("03:30");
    let shown = bed.tree.visibility(&bed.limits);
    assert_eq!((shown.running, shown.buffered, shown.paused), (1, 2, false));
    assert_eq!((shown.next_time, shown.last_completed_at), (Some(at("04:00")), None));
    bed.complete("01:00", Succeeded);
    bed.command(ScheduleTree::pause, Pause { note: "".into(), until: None }).unwrap();
    let shown = bed.tree.visibility(&bed.limits);
    assert_eq!((shown.paused, shown.next_time, shown.last_completed_at), (true, None, Some(at("03:30"))));
}

#[test]
fn why_answers_for_any_instant() {
    let mut bed = Bed::with(every("1h").overlap(BufferAll));
    bed.advance_to("02:30");
    assert!(matches!(bed.why("01:00"), Why::Decided { verdict: Verdict::Started, .. }));
    assert!(matches!(bed.why("02:00"), Why::OnItsWay { .. }));
    assert_eq!(bed.why("03:00"), Why::Coming { due_time: at("03:00") });
    assert!(matches!(bed.why("02:15"), Why::NoOccurrence { previous: Some(_), next: Some(_) }));
    assert_eq!(bed.why("2022-05-31T01:00:00Z"), Why::BeforeCreation);
}

#[test]
fn a_refused_command_leaves_nothing_behind() {
    let mut bed = Bed::with(every("1h").limits(|limits| limits.backfills_max = 0));
    let before = bed.describe().revision;
    let refused = bed.command(ScheduleTree::backfill, backfill("00:00", "00:30")).unwrap_err();
    assert_eq!(refused.to_string(), "there are too many backfills at a time");
    assert_eq!(bed.describe().revision, before);
}
