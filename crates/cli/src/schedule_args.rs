//! The options that describe what a schedule does and how its starts get along, the same for create and update.

use std::str::FromStr;

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use crate::wire::words::{OnResumeName, OverlapName};
use crate::wire::{payload, time};

const ACTION: &str = "What it does";
const POLICIES: &str = "How starts get along";
const ATTEMPTS: &str = "Attempts and timeouts";

/// Action, policies, attempts and timeouts.
#[derive(Debug, Args)]
pub struct ScheduleArgs {
    /// The queue that its runs wait on; it must be declared [default: default]
    #[arg(short, long, value_name = "NAME", help_heading = ACTION)]
    pub queue: Option<String>,

    /// The function of the worker [default: the schedule's id]
    #[arg(long, value_name = "NAME", help_heading = ACTION)]
    pub handler: Option<String>,

    /// What to give it: JSON, @file, or - for stdin
    #[arg(long, value_name = "JSON", help_heading = ACTION)]
    input: Option<String>,

    /// The first part of every run's name [default: the schedule's id]
    #[arg(long, value_name = "TEXT", help_heading = ACTION)]
    run_id_base: Option<String>,

    /// What to do while a run is in progress [default: skip]
    #[arg(long, value_name = "POLICY", help_heading = POLICIES)]
    overlap: Option<OverlapName>,

    /// Runs that may be in progress before the overlap policy asks [default: 1]
    #[arg(long, value_name = "N", help_heading = POLICIES)]
    concurrency: Option<OrNone<u32>>,

    /// How late a start may still happen, at least 10s [default: 365 days]
    #[arg(long, value_name = "DURATION", help_heading = POLICIES)]
    catchup_window: Option<OrNone<String>>,

    /// After an outage start only the latest N of what came due [default: all]
    #[arg(long, value_name = "N", help_heading = POLICIES)]
    catchup_latest: Option<OrNone<u32>>,

    /// The least time between two starts that are late [default: none]
    #[arg(long, value_name = "DURATION", help_heading = POLICIES)]
    catchup_pace: Option<OrNone<String>>,

    /// Pause after N failures in a row [default: never]
    #[arg(long, value_name = "N", help_heading = POLICIES)]
    pause_after_failures: Option<OrNone<u32>>,

    /// What becomes of the time spent paused [default: skip]
    #[arg(long, value_name = "POLICY", help_heading = POLICIES)]
    on_resume: Option<OnResumeName>,

    /// Starts of the spec that may still happen [default: no limit]
    #[arg(long, value_name = "N", help_heading = POLICIES)]
    remaining: Option<OrNone<u32>>,

    /// Attempts in all, those of a lost worker included [default: 3]
    #[arg(long, value_name = "N", help_heading = ATTEMPTS)]
    retry_attempts: Option<OrNone<u32>>,

    /// The wait before the second attempt; it doubles with each further one, up to a minute [default: 1s]
    #[arg(long, value_name = "DURATION", help_heading = ATTEMPTS)]
    retry_backoff: Option<OrNone<String>>,

    /// How long one attempt may take [default: no bound]
    #[arg(long, value_name = "DURATION", help_heading = ATTEMPTS)]
    start_to_close: Option<OrNone<String>>,

    /// How long the run may take, all attempts and waits included [default: no bound]
    #[arg(long, value_name = "DURATION", help_heading = ATTEMPTS)]
    schedule_to_close: Option<OrNone<String>>,

    /// The longest silence of a worker [default: the lease that it claimed with]
    #[arg(long, value_name = "DURATION", help_heading = ATTEMPTS)]
    heartbeat_timeout: Option<OrNone<String>>,
}

/// A value, or the word `none` that takes it back.
#[derive(Clone, Debug)]
enum OrNone<T> {
    Given(T),
    None,
}

impl<T: FromStr> FromStr for OrNone<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<OrNone<T>, T::Err> {
        if text.eq_ignore_ascii_case("none") { Ok(OrNone::None) } else { text.parse().map(OrNone::Given) }
    }
}

impl<T: Clone> OrNone<T> {
    fn value(&self) -> Option<T> {
        match self {
            OrNone::Given(value) => Some(value.clone()),
            OrNone::None => None,
        }
    }
}

impl OrNone<String> {
    fn duration(&self, option: &'static str) -> Result<Option<prost_types::Duration>> {
        self.value().map(|text| time::duration(option, &text).map(time::duration_to_wire)).transpose()
    }
}

/// The parts of a schedule that options speak of, and the mask that names exactly them.
#[derive(Debug, Default)]
pub struct Given {
    pub action: v1::Action,
    pub policies: v1::Policies,
    pub remaining_actions: Option<u32>,
    pub mask: Vec<String>,
}

/// Takes one option over, if it was given: its value into a field, its path into the mask.
macro_rules! take {
    ($given:ident, $option:expr, $path:literal, $field:expr, |$value:ident| $take:expr) => {
        if let Some($value) = &$option {
            $field = $take;
            $given.mask.push($path.to_owned());
        }
    };
}

impl ScheduleArgs {
    pub fn given(&self) -> Result<Given> {
        let mut given = Given::default();
        let action = self.queue_action(&mut given)?;
        given.action.kind = Some(v1::action::Kind::Queue(action));
        take!(given, self.run_id_base, "action.run_id_base", given.action.run_id_base, |base| base.clone());
        self.take_policies(&mut given)?;
        take!(given, self.remaining, "remaining_actions", given.remaining_actions, |count| count.value());
        Ok(given)
    }

    fn queue_action(&self, given: &mut Given) -> Result<v1::QueueAction> {
        let (mut action, mut retry) = (v1::QueueAction::default(), v1::RetryPolicy::default());
        let mut timeouts = v1::Timeouts::default();
        take!(given, self.queue, "action.queue.queue", action.queue, |name| name.clone());
        take!(given, self.handler, "action.queue.handler", action.handler, |name| name.clone());
        take!(given, self.input, "action.queue.input", action.input, |text| {
            Some(payload::from_option("--input", text)?)
        });
        take!(given, self.retry_attempts, "action.queue.retry.attempts_max", retry.attempts_max, |count| {
            count.value()
        });
        take!(given, self.retry_backoff, "action.queue.retry.backoff_first", retry.backoff_first, |text| {
            text.duration("--retry-backoff")?
        });
        take!(
            given,
            self.start_to_close,
            "action.queue.timeouts.start_to_close",
            timeouts.start_to_close,
            |text| text.duration("--start-to-close")?
        );
        take!(
            given,
            self.schedule_to_close,
            "action.queue.timeouts.schedule_to_close",
            timeouts.schedule_to_close,
            |text| text.duration("--schedule-to-close")?
        );
        take!(given, self.heartbeat_timeout, "action.queue.timeouts.heartbeat", timeouts.heartbeat, |text| {
            text.duration("--heartbeat-timeout")?
        });
        let has_retry = retry != v1::RetryPolicy::default();
        let has_timeouts = timeouts != v1::Timeouts::default();
        Ok(v1::QueueAction {
            retry: has_retry.then_some(retry),
            timeouts: has_timeouts.then_some(timeouts),
            ..action
        })
    }

    fn take_policies(&self, given: &mut Given) -> Result<()> {
        let mut policies = v1::Policies::default();
        take!(given, self.overlap, "policies.overlap", policies.overlap, |name| (*name).into());
        take!(given, self.concurrency, "policies.concurrency", policies.concurrency, |count| count.value());
        take!(given, self.catchup_window, "policies.catchup_window", policies.catchup_window, |text| {
            text.duration("--catchup-window")?
        });
        take!(given, self.catchup_latest, "policies.catchup_count", policies.catchup_count, |count| {
            count.value()
        });
        take!(given, self.catchup_pace, "policies.catchup_pace", policies.catchup_pace, |text| {
            text.duration("--catchup-pace")?
        });
        take!(
            given,
            self.pause_after_failures,
            "policies.pause_after_failures",
            policies.pause_after_failures,
            |count| count.value()
        );
        take!(given, self.on_resume, "policies.on_resume", policies.on_resume, |name| (*name).into());
        given.policies = policies;
        Ok(())
    }
}
