//! A run on a queue: what it is to do, how long it may take, and what follows when an attempt ends badly.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::schedule::Payload;
use crate::start::Outcome;

/// What a run on a queue is to do, frozen when the run is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunAction {
    /// The queue that workers claim it from.
    pub queue: Arc<str>,
    /// The name of the user's function.
    pub handler: Arc<str>,
    /// What the function is given.
    pub input: Payload,
    /// How often an attempt is made.
    pub retry: RetryPolicy,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Lower ones are claimed sooner; zero is the usual one.
    pub priority: i16,
    /// What the limits of one key in a queue apply to; empty for none.
    pub key: Arc<str>,
    /// A call that the node itself makes, instead of a worker's function, as a record of its own.
    pub call: Option<Payload>,
}

/// How often an attempt is made, and how long the waits between are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all, a dead worker's included; at least 1.
    pub attempts_max: u32,
    /// The wait before the second attempt.
    pub backoff_first: SignedDuration,
    /// Each wait is this many hundredths of the one before.
    pub backoff_percent: u32,
    /// The longest wait.
    pub backoff_max: SignedDuration,
    /// Kinds of failure that no further attempt can mend.
    pub non_retryable: Vec<Arc<str>>,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            attempts_max: 3,
            backoff_first: SignedDuration::from_secs(1),
            backoff_percent: 200,
            backoff_max: SignedDuration::from_secs(60),
            non_retryable: Vec::new(),
        }
    }
}

/// How long things may take; nothing means no bound of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// One attempt, from being claimed to its end.
    pub start_to_close: Option<SignedDuration>,
    /// The whole run, from being made to its end, waits and attempts included.
    pub schedule_to_close: Option<SignedDuration>,
    /// The silence of a worker; nothing means the lease that the worker asked for.
    pub heartbeat: Option<SignedDuration>,
}

/// Why an attempt ended badly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A word that programs can compare.
    pub kind: Arc<str>,
    /// For people.
    pub message: Arc<str>,
    /// Anything else, for the next run or for programs.
    pub details: Option<Payload>,
    /// Whether another attempt may help.
    pub retryable: bool,
}

impl Failure {
    /// A failure that another attempt may mend.
    pub fn new(kind: &str, message: &str) -> Failure {
        Failure { kind: kind.into(), message: message.into(), details: None, retryable: true }
    }
}

/// What whoever made an attempt wishes for the wait before the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// No less than this.
    AtLeast(SignedDuration),
    /// This, whatever the policy says.
    Exactly(SignedDuration),
}

/// What follows when an attempt has ended badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Another attempt, not before this instant.
    Retry {
        /// The earliest instant.
        not_before: Timestamp,
    },
    /// The run is over.
    Close {
        /// How it ended.
        outcome: Outcome,
    },
}

impl RunAction {
    /// The same without its input, for those who only need to know how to retry.
    pub fn without_input(&self) -> RunAction {
        RunAction { input: Arc::new([]), call: None, ..self.clone() }
    }

    /// When the whole run must be over.
    pub fn last_time(&self, created_at: Timestamp) -> Option<Timestamp> {
        self.timeouts.schedule_to_close.and_then(|length| created_at.checked_add(length).ok())
    }

    /// When an attempt must be over, be it by its own bound or by the run's.
    pub fn attempt_deadline(&self, created_at: Timestamp, started_at: Timestamp) -> Option<Timestamp> {
        let own = self.timeouts.start_to_close.and_then(|length| started_at.checked_add(length).ok());
        own.into_iter().chain(self.last_time(created_at)).min()
    }

    /// What follows when attempt number `attempt`, counted from one, ended with `outcome` for the reason of `failure`, and whoever
    /// made it wishes for a wait.
    pub fn after(
        &self,
        now: Timestamp,
        created_at: Timestamp,
        attempt: u32,
        outcome: Outcome,
        failure: &Failure,
        wish: Option<Wish>,
    ) -> NextStep {
        let hopeless = !failure.retryable || self.retry.non_retryable.contains(&failure.kind);
        let wait = match wish {
            None => self.backoff(attempt),
            Some(Wish::AtLeast(wait)) => self.backoff(attempt).max(wait),
            Some(Wish::Exactly(wait)) => wait.max(SignedDuration::ZERO),
        };
        let not_before = now.checked_add(wait).unwrap_or(Timestamp::MAX);
        let too_late = self.last_time(created_at).is_some_and(|last| not_before >= last);
        if hopeless || too_late || attempt >= self.retry.attempts_max.max(1) {
            return NextStep::Close { outcome };
        }
        NextStep::Retry { not_before }
    }

    fn backoff(&self, failed_attempts: u32) -> SignedDuration {
        let (mut millis, most) = (self.retry.backoff_first.as_millis(), self.retry.backoff_max.as_millis());
        for _ in 1..failed_attempts.min(64) {
            millis = (millis * i128::from(self.retry.backoff_percent) / 100).min(most);
        }
        SignedDuration::from_millis(millis.clamp(0, most.max(0)) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(attempts_max: u32) -> RunAction {
        RunAction {
            queue: "q".into(),
            handler: "h".into(),
            input: b"".as_slice().into(),
            retry: RetryPolicy {
                attempts_max,
                non_retryable: vec!["Fatal".into()],
                ..RetryPolicy::default()
            },
            timeouts: Timeouts {
                schedule_to_close: Some(SignedDuration::from_secs(100)),
                ..Timeouts::default()
            },
            ..RunAction::default()
        }
    }

    #[test]
    fn waits_double_up_to_the_longest_and_attempts_end() {
        let (zero, failure) = (Timestamp::UNIX_EPOCH, Failure::new("Oops", ""));
        let wait = |attempt| match action(20).after(zero, zero, attempt, Outcome::Failed, &failure, None) {
            NextStep::Retry { not_before } => Some(not_before.as_second()),
            NextStep::Close { .. } => None,
        };
        assert_eq!([1, 2, 3, 7, 19, 20].map(wait), [Some(1), Some(2), Some(4), Some(60), Some(60), None]);
    }

    #[test]
    fn nothing_is_tried_again_that_cannot_help() {
        let (zero, action) = (Timestamp::UNIX_EPOCH, action(5));
        let closed = NextStep::Close { outcome: Outcome::Failed };
        let fatal = Failure::new("Fatal", "");
        assert_eq!(action.after(zero, zero, 1, Outcome::Failed, &fatal, None), closed);
        let refused = Failure { retryable: false, ..Failure::new("Oops", "") };
        assert_eq!(action.after(zero, zero, 1, Outcome::Failed, &refused, None), closed);
        let late = zero + SignedDuration::from_secs(99);
        assert_eq!(action.after(late, zero, 1, Outcome::Failed, &Failure::new("Oops", ""), None), closed);
    }
    #[test]
    fn a_wish_moves_the_next_attempt_but_not_the_end_of_the_run() {
        let (zero, failure) = (Timestamp::UNIX_EPOCH, Failure::new("Oops", ""));
        let wait =
            |attempt, wish| match action(20).after(zero, zero, attempt, Outcome::Failed, &failure, wish) {
                NextStep::Retry { not_before } => Some(not_before.as_second()),
                NextStep::Close { .. } => None,
            };
        let seconds = SignedDuration::from_secs;
        assert_eq!(wait(3, Some(Wish::AtLeast(seconds(1)))), Some(4));
        assert_eq!(wait(3, Some(Wish::AtLeast(seconds(9)))), Some(9));
        assert_eq!(wait(3, Some(Wish::Exactly(seconds(1)))), Some(1));
        assert_eq!(wait(3, Some(Wish::Exactly(seconds(-1)))), Some(0));
        assert_eq!(wait(3, Some(Wish::Exactly(seconds(100)))), None);
        assert_eq!(wait(20, Some(Wish::Exactly(seconds(1)))), None);
    }
}
