//! Events of a schedule, as watchers see them.

use punctual_api::v1;
use punctual_core::Note;
use punctual_engine::Happened;

use super::describe::bare_start;
use super::run::outcome_word;
use super::time::to_wire;

/// One thing that happened.
pub(crate) fn event(happened: &Happened) -> v1::WatchEvent {
    use v1::event_kind::Word;
    let (kind, start, text) = match &happened.note {
        Note::Created => (Word::Created, None, "the schedule was created".into()),
        Note::Updated => (Word::Updated, None, "the schedule was updated".into()),
        Note::Paused { after_failures: None } => (Word::Paused, None, "the schedule was paused".into()),
        Note::Paused { after_failures: Some(failures) } => {
            (Word::Paused, None, format!("the schedule was paused after {failures} failures in a row"))
        }
        Note::Resumed => (Word::Resumed, None, "the schedule was resumed".into()),
        Note::StartReadied(start) => {
            (Word::StartReadied, Some(*start), format!("the start of {start} is ready to be dispatched"))
        }
        Note::RunStarted(start) => (Word::RunStarted, Some(*start), format!("the run of {start} began")),
        Note::StartRetried { start, attempts, not_before } => {
            let text = format!("starting {start} failed {attempts} times; again not before {not_before}");
            (Word::StartRetried, Some(*start), text)
        }
        Note::RunCompleted { start, outcome } => {
            let text = format!("the run of {start} ended: {}", outcome_word(*outcome).as_str_name());
            (Word::RunCompleted, Some(*start), text)
        }
        Note::StopRequested(start) => {
            (Word::StopRequested, Some(*start), format!("the run of {start} was asked to stop"))
        }
        Note::BackfillStarted(key) => (Word::BackfillStarted, None, format!("backfill {key} began")),
        Note::BackfillEnded(key) => (Word::BackfillEnded, None, format!("backfill {key} ended")),
        Note::Completed => (Word::Completed, None, "nothing is left to do".into()),
        Note::Deleted => (Word::Deleted, None, "the schedule was deleted".into()),
    };
    let run_id = happened.run.map(|run| run.to_string()).unwrap_or_default();
    let start = start.map(|start| v1::Start {
        phase: phase(kind).into(),
        run_id: run_id.clone(),
        ..bare_start(start)
    });
    let outcome = match &happened.note {
        Note::RunCompleted { outcome, .. } => outcome_word(*outcome),
        _ => v1::outcome::Word::Unspecified,
    };
    v1::WatchEvent {
        time: Some(to_wire(happened.at)),
        schedule_id: happened.key.schedule.to_string(),
        kind: kind.into(),
        start,
        run_id,
        text,
        entry: None,
        outcome: outcome.into(),
        missed_count: 0,
    }
}

fn phase(kind: v1::event_kind::Word) -> v1::phase::Word {
    use v1::event_kind::Word;
    match kind {
        Word::StartReadied | Word::StartRetried => v1::phase::Word::Ready,
        Word::RunStarted | Word::StopRequested => v1::phase::Word::Running,
        _ => v1::phase::Word::Unspecified,
    }
}

/// The watcher was too slow.
pub(crate) fn lagged(missed: u64, now: jiff::Timestamp) -> v1::WatchEvent {
    let text = format!(
        "this watcher was too slow: {missed} events of this server were passed over, maybe of other schedules"
    );
    passed_over(missed, text, now)
}

/// Another server had more to tell than servers tell each other.
pub(crate) fn untold(count: u64, now: jiff::Timestamp) -> v1::WatchEvent {
    let text = format!(
        "too much happens at another server to be told here: {count} events were passed over, maybe of other schedules"
    );
    passed_over(count, text, now)
}

fn passed_over(missed: u64, text: String, now: jiff::Timestamp) -> v1::WatchEvent {
    v1::WatchEvent {
        time: Some(to_wire(now)),
        kind: v1::event_kind::Word::Lagged.into(),
        text,
        missed_count: missed,
        ..v1::WatchEvent::default()
    }
}
