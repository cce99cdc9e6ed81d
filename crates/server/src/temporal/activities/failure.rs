//! Failures as SDKs report them, and what is kept of them.

use jiff::{SignedDuration, Timestamp};
use punctual_api::v1;
use punctual_core::{Failure as RunFailure, Wish};

use super::super::wire::common::Payloads;
use super::super::wire::enums::TimeoutType;
use super::super::wire::failure::failure::FailureInfo;
use super::super::wire::failure::{ApplicationFailureInfo, Failure};
use super::report::keep;
use crate::convert::run::log_text;

/// Causes of causes that are told.
const CAUSES_MAX: usize = 10;

/// Bytes of the words for people; the rest of longer ones is cut.
const MESSAGE_BYTES_MAX: usize = 4_096;

/// Bytes of the word for programs.
const KIND_BYTES_MAX: usize = 200;

/// What is kept of a failure, and how long the worker wishes to wait before the next attempt.
pub(in crate::temporal) fn read(mut failure: Failure) -> (RunFailure, Option<Wish>) {
    let message = words(&failure);
    let encoded = failure.encoded_attributes.take();
    let Kind { word, retryable, details, wish } = kind(failure.failure_info.take());
    // Where the words are encrypted, what was encrypted is worth more than nothing.
    let details = details.or(encoded.map(|one| Payloads { payloads: vec![one] }));
    let mut kept = RunFailure::new(cut(&word, KIND_BYTES_MAX), cut(&message, MESSAGE_BYTES_MAX));
    kept.details = keep(details).unwrap_or_default();
    kept.retryable = retryable;
    (kept, wish)
}

/// Where it happened, as lines of the run's log.
pub(super) fn log(failure: &Failure, now: Timestamp) -> String {
    let traces = causes(failure).filter(|cause| !cause.stack_trace.is_empty());
    let lines = traces.map(|cause| v1::LogLine {
        text: format!("{}\n{}", cause.message, cause.stack_trace.trim_end()),
        ..v1::LogLine::default()
    });
    // Lines are bounded there, and their times are ours.
    log_text(&lines.collect::<Vec<_>>(), 0, now).unwrap_or_default()
}

struct Kind {
    word: String,
    retryable: bool,
    details: Option<Payloads>,
    wish: Option<Wish>,
}

fn kind(info: Option<FailureInfo>) -> Kind {
    let plain = |word: &str, retryable: bool, details: Option<Payloads>| Kind {
        word: word.into(),
        retryable,
        details,
        wish: None,
    };
    match info {
        None => plain("error", true, None),
        Some(FailureInfo::ApplicationFailureInfo(info)) => application(info),
        Some(FailureInfo::TimeoutFailureInfo(info)) => {
            let again = matches!(info.timeout_type(), TimeoutType::StartToClose | TimeoutType::Heartbeat);
            plain("timeout", again, info.last_heartbeat_details)
        }
        Some(FailureInfo::CanceledFailureInfo(info)) => plain("cancelled", false, info.details),
        Some(FailureInfo::TerminatedFailureInfo(_)) => plain("terminated", false, None),
        Some(FailureInfo::ServerFailureInfo(info)) => plain("server", !info.non_retryable, None),
        Some(FailureInfo::ResetWorkflowFailureInfo(info)) => {
            plain("reset", true, info.last_heartbeat_details)
        }
        Some(FailureInfo::ActivityFailureInfo(_)) => plain("activity", true, None),
        Some(FailureInfo::ChildWorkflowExecutionFailureInfo(_)) => plain("child_workflow", true, None),
        Some(FailureInfo::NexusOperationExecutionFailureInfo(_)) => plain("nexus_operation", true, None),
        Some(FailureInfo::NexusHandlerFailureInfo(_)) => plain("nexus_handler", true, None),
    }
}

fn application(info: ApplicationFailureInfo) -> Kind {
    let wait = info.next_retry_delay.and_then(|wait| {
        SignedDuration::from_secs(wait.seconds).checked_add(SignedDuration::from_nanos(wait.nanos.into()))
    });
    Kind {
        word: if info.r#type.is_empty() { "error".into() } else { info.r#type },
        retryable: !info.non_retryable,
        details: info.details,
        wish: wait.map(Wish::Exactly),
    }
}

/// The message, and those of its causes.
fn words(failure: &Failure) -> String {
    let all = causes(failure).map(|cause| cause.message.as_str()).filter(|message| !message.is_empty());
    all.collect::<Vec<_>>().join("; caused by: ")
}

fn causes(failure: &Failure) -> impl Iterator<Item = &Failure> {
    std::iter::successors(Some(failure), |failure| failure.cause.as_deref()).take(CAUSES_MAX)
}

fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=text.len().min(bytes_max)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporal::payloads;
    use crate::temporal::wire::{common, failure as wire};

    fn application_of(info: ApplicationFailureInfo) -> Failure {
        Failure {
            message: "it broke".into(),
            stack_trace: "at line 7\n".into(),
            failure_info: Some(FailureInfo::ApplicationFailureInfo(info)),
            cause: Some(Box::new(Failure { message: "the pipe".into(), ..Failure::default() })),
            ..Failure::default()
        }
    }

    #[test]
    fn the_type_is_the_kind_and_the_wait_is_the_workers() {
        let payload = common::Payload { data: b"7".as_slice().into(), ..Default::default() };
        let details = Some(Payloads { payloads: vec![payload] });
        let next_retry_delay = Some(prost_types::Duration { seconds: 2, nanos: 500_000_000 });
        let info = ApplicationFailureInfo {
            r#type: "CardDeclined".into(),
            non_retryable: true,
            details: details.clone(),
            next_retry_delay,
            ..ApplicationFailureInfo::default()
        };
        let (kept, wish) = read(application_of(info));
        assert_eq!((&*kept.kind, &*kept.message), ("CardDeclined", "it broke; caused by: the pipe"));
        assert!(!kept.retryable);
        assert_eq!(Some(payloads::read(&kept.details.unwrap())), details);
        assert_eq!(wish, Some(Wish::Exactly(SignedDuration::from_millis(2_500))));
        let (kept, wish) = read(application_of(ApplicationFailureInfo::default()));
        assert_eq!((&*kept.kind, kept.retryable, wish), ("error", true, None));
        let log = log(&application_of(ApplicationFailureInfo::default()), Timestamp::UNIX_EPOCH);
        assert!(log.contains("at line 7"), "{log}");
    }

    #[test]
    fn what_no_attempt_can_mend_is_known_by_its_kind() {
        let retryable = |info| read(Failure { failure_info: Some(info), ..Failure::default() }).0.retryable;
        let timeout = |kind: TimeoutType| {
            FailureInfo::TimeoutFailureInfo(wire::TimeoutFailureInfo {
                timeout_type: kind.into(),
                ..Default::default()
            })
        };
        assert!(retryable(timeout(TimeoutType::StartToClose)));
        assert!(!retryable(timeout(TimeoutType::ScheduleToClose)));
        assert!(!retryable(FailureInfo::CanceledFailureInfo(Default::default())));
        assert!(!retryable(FailureInfo::TerminatedFailureInfo(Default::default())));
        assert!(!retryable(FailureInfo::ServerFailureInfo(wire::ServerFailureInfo { non_retryable: true })));
        assert!(read(Failure::default()).0.retryable);
    }

    #[test]
    fn long_words_are_cut_and_a_chain_ends() {
        let mut failure = Failure { message: "ä".repeat(9_000), ..Failure::default() };
        for _ in 0..100 {
            failure =
                Failure { message: "again".into(), cause: Some(Box::new(failure)), ..Failure::default() };
        }
        assert_eq!(causes(&failure).count(), CAUSES_MAX);
        let long = Failure { message: "ä".repeat(9_000), ..Failure::default() };
        assert_eq!(read(long).0.message.len(), MESSAGE_BYTES_MAX);
    }
}
