//! Runs, what workers get of them, and what workers report.

use jiff::Timestamp;
use punctual_api::v1;
use punctual_core::{Failure, Outcome};
use punctual_engine::{AttemptEnd, Claimed, Directive, PulseAnswer, Recorded, RunView};
use punctual_store::record::decode_failure;
use punctual_store::{LiveState, RunDetails, RunFilter, RunKey, StoredRun};

use super::describe::origin;
use super::payload::{self, bytes};
use super::time::{instant, to_wire};
use super::word;
use crate::limits::LOG_LINE_BYTES_MAX;
use crate::status::{Fault, found};

/// A run's key from its text.
pub(crate) fn run_key(field: &str, text: &str) -> Result<RunKey, Fault> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits);
    let fault = || Fault::field(field, format!("expected a whole number as text, found {}", found(text)));
    number.map(RunKey).ok_or_else(fault)
}

/// A run without its payloads, as lists show it.
pub(crate) fn listed(view: &RunView) -> v1::Run {
    let StoredRun { run, closing, is_dead_letter } = &view.stored;
    let (origin_kind, request_key) =
        run.made.origin.map(|(_, start)| origin(start.origin)).unwrap_or_default();
    let (state, worker, started_at, next) = match &run.state {
        LiveState::Ready => (v1::run_state::Word::Queued, None, None, None),
        LiveState::BackingOff { not_before } => {
            (v1::run_state::Word::BackingOff, None, None, Some(*not_before))
        }
        LiveState::Running { worker, started_at } => {
            (v1::run_state::Word::Running, Some(worker.to_string()), Some(*started_at), None)
        }
    };
    let is_open = closing.is_none();
    v1::Run {
        run_id: run.made.run.to_string(),
        name: view.body.name.to_string(),
        namespace: view.body.namespace.to_string(),
        schedule_id: view.body.schedule.to_string(),
        queue: view.body.action.queue.to_string(),
        handler: view.body.action.handler.to_string(),
        nominal_time: run.made.origin.map(|(_, start)| to_wire(start.nominal_time())),
        due_time: Some(to_wire(run.made.due_time)),
        state: if is_open { state } else { v1::run_state::Word::Closed }.into(),
        outcome: closing.as_ref().map(|closing| outcome_word(closing.outcome)).unwrap_or_default().into(),
        attempt: run.attempt,
        worker_id: worker.unwrap_or_default(),
        created_at: Some(to_wire(run.made.created_at)),
        started_at: started_at.map(to_wire),
        closed_at: closing.as_ref().map(|closing| to_wire(closing.closed_at)),
        next_attempt_time: next.filter(|_| is_open).map(to_wire),
        cancel_requested: run.stop.is_some(),
        origin: origin_kind.into(),
        request_key,
        priority: run.made.priority.into(),
        key: run.made.key.to_string(),
        deduplication_id: run.made.dedup.as_deref().unwrap_or_default().to_owned(),
        dead_letter: *is_dead_letter,
        ..v1::Run::default()
    }
}

/// A run with everything.
pub(crate) fn described(view: &RunView, details: &RunDetails) -> v1::Run {
    let StoredRun { run, closing, .. } = &view.stored;
    let last = &view.body.last;
    let (mut result, mut failure) = (None, run.failure.as_deref().map(last_failure));
    if let Some(closing) = closing {
        match closing.outcome {
            Outcome::Succeeded => {
                (result, failure) = (closing.payload.as_deref().and_then(payload::payload), None);
            }
            Outcome::Failed | Outcome::TimedOut | Outcome::Cancelled | Outcome::Terminated => {
                failure = closing.payload.as_deref().map(last_failure).or(failure);
            }
        }
    }
    v1::Run {
        input: payload::payload(&view.body.action.input),
        result,
        failure,
        progress: details.progress.as_deref().and_then(payload::payload),
        last_result: last.result.as_deref().and_then(payload::payload),
        last_failure: last.failure.as_deref().map(last_failure),
        ..listed(view)
    }
}

/// The failure of a record. One without words is a failure all the same.
pub(crate) fn last_failure(record: &[u8]) -> v1::Failure {
    let Ok(failure) = decode_failure(record) else { return v1::Failure::default() };
    v1::Failure {
        kind: failure.kind.to_string(),
        message: failure.message.to_string(),
        details: failure.details.as_deref().and_then(payload::payload),
        retryable: Some(failure.retryable),
    }
}

/// How a run ended.
pub(crate) fn outcome_word(outcome: Outcome) -> v1::outcome::Word {
    match outcome {
        Outcome::Succeeded => v1::outcome::Word::Succeeded,
        Outcome::Failed => v1::outcome::Word::Failed,
        Outcome::TimedOut => v1::outcome::Word::TimedOut,
        Outcome::Cancelled => v1::outcome::Word::Cancelled,
        Outcome::Terminated => v1::outcome::Word::Terminated,
    }
}

/// The part of a run's life that a list asks for; an outcome means closed runs.
pub(crate) fn filter(state: i32, outcome: i32, dead_letters: bool) -> Result<Option<RunFilter>, Fault> {
    if dead_letters {
        return match (state, outcome) {
            (0, 0) => Ok(Some(RunFilter::DeadLetter)),
            _ => Err(Fault::field(
                "dead_letters",
                "is given together with state or outcome, expected it alone",
            )),
        };
    }
    let outcome = match word("outcome", outcome)? {
        v1::outcome::Word::Unspecified => None,
        v1::outcome::Word::Succeeded => Some(Outcome::Succeeded),
        v1::outcome::Word::Failed => Some(Outcome::Failed),
        v1::outcome::Word::TimedOut => Some(Outcome::TimedOut),
        v1::outcome::Word::Cancelled => Some(Outcome::Cancelled),
        v1::outcome::Word::Terminated => Some(Outcome::Terminated),
    };
    Ok(match (word("state", state)?, outcome) {
        (v1::run_state::Word::Unspecified, None) => None,
        (v1::run_state::Word::Unspecified | v1::run_state::Word::Closed, outcome) => {
            Some(RunFilter::Closed(outcome))
        }
        (_, Some(_)) => {
            return Err(Fault::field(
                "outcome",
                "is given together with a state that has none, expected `closed`",
            ));
        }
        (v1::run_state::Word::Queued, None) => Some(RunFilter::Ready),
        (v1::run_state::Word::BackingOff, None) => Some(RunFilter::BackingOff),
        (v1::run_state::Word::Running, None) => Some(RunFilter::Running),
    })
}

/// A run as its worker needs it.
pub(crate) fn claimed(claimed: &Claimed) -> v1::ClaimedRun {
    let Claimed { live, body, lease_until, deadline } = claimed;
    v1::ClaimedRun {
        run_id: live.made.run.to_string(),
        token: live.attempt,
        handler: body.action.handler.to_string(),
        input: payload::payload(&body.action.input),
        nominal_time: live.made.origin.map(|(_, start)| to_wire(start.nominal_time())),
        due_time: Some(to_wire(live.made.due_time)),
        attempt: live.attempt,
        schedule_id: body.schedule.to_string(),
        last_result: body.last.result.as_deref().and_then(payload::payload),
        last_failure: body.last.failure.as_deref().map(last_failure),
        lease_expires_time: Some(to_wire(*lease_until)),
        start_to_close_deadline: deadline.map(to_wire),
        name: body.name.to_string(),
        last_progress: None,
    }
}

/// What a worker is told about one of its runs.
pub(crate) fn directive(answer: &PulseAnswer) -> v1::RunDirective {
    let (word, lease_until) = match answer.directive {
        Directive::GoOn { lease_until } => (v1::directive::Word::GoOn, Some(lease_until)),
        Directive::Cancel { lease_until } => (v1::directive::Word::Cancel, Some(lease_until)),
        Directive::Gone => (v1::directive::Word::Gone, None),
    };
    v1::RunDirective {
        run_id: answer.run.to_string(),
        directive: word.into(),
        lease_expires_time: lease_until.map(to_wire),
    }
}

/// How an attempt ended.
pub(crate) fn end(wire: Option<v1::run_completion::End>) -> Result<AttemptEnd, Fault> {
    use v1::run_completion::End;
    match wire {
        None => Err(Fault::field("", "has no end, expected one of result, failure, cancelled")),
        Some(End::Result(result)) => Ok(AttemptEnd::Succeeded(bytes("result", Some(&result))?)),
        Some(End::Cancelled(())) => Ok(AttemptEnd::Cancelled),
        Some(End::Failure(wire)) => {
            let mut failure = Failure::new(&wire.kind, &wire.message);
            failure.details = bytes("failure.details", wire.details.as_ref())?;
            failure.retryable = wire.retryable.unwrap_or(true);
            Ok(AttemptEnd::Failed(failure, None))
        }
    }
}

/// What became of a report.
pub(crate) fn report(run: RunKey, recorded: Recorded) -> v1::RunReport {
    let (word, next) = match recorded {
        Recorded::Closed => (v1::report::Word::Recorded, None),
        Recorded::Retried { not_before } => (v1::report::Word::Retried, Some(not_before)),
        Recorded::Stale => (v1::report::Word::Stale, None),
    };
    v1::RunReport { run_id: run.to_string(), state: word.into(), next_attempt_time: next.map(to_wire) }
}

/// Log lines as they are kept: one line each, with time and attempt in front.
pub(crate) fn log_text(lines: &[v1::LogLine], attempt: u32, now: Timestamp) -> Result<String, Fault> {
    let mut text = String::new();
    for line in lines {
        let at = instant("log_lines.logged_at", line.logged_at.as_ref())?.unwrap_or(now);
        let attempt = if line.attempt == 0 { attempt } else { line.attempt };
        let end =
            (0..=line.text.len().min(LOG_LINE_BYTES_MAX)).rev().find(|end| line.text.is_char_boundary(*end));
        let words =
            line.text[..end.unwrap_or(0)].replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r");
        text.push_str(&format!("{at} {attempt} {words}\n"));
    }
    Ok(text)
}

/// The lines that are kept of a log.
pub(crate) fn log_lines(tail: &[u8]) -> Vec<v1::LogLine> {
    String::from_utf8_lossy(tail).lines().map(log_line).collect()
}

fn log_line(line: &str) -> v1::LogLine {
    let mut parts = line.splitn(3, ' ');
    let (at, attempt) =
        (parts.next().and_then(|at| at.parse().ok()), parts.next().and_then(|n| n.parse().ok()));
    match (at, attempt) {
        (Some(at), Some(attempt)) => v1::LogLine {
            logged_at: Some(to_wire(at)),
            attempt,
            text: unescape(parts.next().unwrap_or_default()),
        },
        // An embedded engine may have kept lines of another form.
        _ => v1::LogLine { logged_at: None, attempt: 0, text: line.to_owned() },
    }
}

fn unescape(text: &str) -> String {
    let (mut plain, mut letters) = (String::with_capacity(text.len()), text.chars());
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, false) => plain.push(letter),
            (_, true) => match letters.next() {
                Some('n') => plain.push('\n'),
                Some('r') => plain.push('\r'),
                Some(other) => plain.push(other),
                None => plain.push('\\'),
            },
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_come_back_whole() {
        let now = Timestamp::UNIX_EPOCH;
        let line = |text: &str| v1::LogLine { logged_at: Some(to_wire(now)), attempt: 2, text: text.into() };
        let lines = [line("plain"), line("two\nlines \\n and a slash\\"), line(""), line("  spaces  ")];
        let text = log_text(&lines, 1, now).unwrap();
        assert_eq!(log_lines(text.as_bytes()), lines);
    }
}
