//! The options on attempts and timeouts, the same for schedules and for runs without one.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use crate::or_none::OrNone;

const ATTEMPTS: &str = "Attempts and timeouts";

/// How attempts follow each other, and how long things may take.
#[derive(Debug, Args)]
pub struct AttemptArgs {
    /// Attempts in all, those of a lost worker included [default: 3]
    #[arg(long, visible_alias = "attempts", value_name = "N", help_heading = ATTEMPTS)]
    retry_attempts: Option<OrNone<u32>>,

    /// The wait before the second attempt; it doubles with each further one, up to a minute [default: 1s]
    #[arg(long, value_name = "DURATION", help_heading = ATTEMPTS)]
    retry_backoff: Option<OrNone<String>>,

    /// How long one attempt may take [default: no bound; for a call a day, for a command an hour]
    #[arg(long, value_name = "DURATION", help_heading = ATTEMPTS)]
    start_to_close: Option<OrNone<String>>,

    /// How long the run may take, all attempts and waits included [default: no bound]
    #[arg(long, value_name = "DURATION", help_heading = ATTEMPTS)]
    schedule_to_close: Option<OrNone<String>>,

    /// The longest silence of a worker [default: the lease that it claimed with]
    #[arg(long, value_name = "DURATION", help_heading = ATTEMPTS)]
    heartbeat_timeout: Option<OrNone<String>>,
}

/// Each option with the field that it sets, for whoever has one and needs the other.
pub const NAMES: [(&str, &str); 5] = [
    ("--retry-attempts", "retry.attempts_max"),
    ("--retry-backoff", "retry.backoff_first"),
    ("--start-to-close", "timeouts.start_to_close"),
    ("--schedule-to-close", "timeouts.schedule_to_close"),
    ("--heartbeat-timeout", "timeouts.heartbeat"),
];

/// What the options say, and the paths of exactly these fields.
#[derive(Debug, Default)]
pub struct Attempts {
    retry: v1::RetryPolicy,
    timeouts: v1::Timeouts,
    pub paths: Vec<&'static str>,
}

impl Attempts {
    /// How attempts follow each other, if anything was said.
    pub fn retry(&self) -> Option<v1::RetryPolicy> {
        (self.retry != v1::RetryPolicy::default()).then(|| self.retry.clone())
    }

    /// How long things may take, if anything was said.
    pub fn timeouts(&self) -> Option<v1::Timeouts> {
        (self.timeouts != v1::Timeouts::default()).then_some(self.timeouts)
    }
}

impl AttemptArgs {
    pub fn given(&self) -> Result<Attempts> {
        let Attempts { mut retry, mut timeouts, mut paths } = Attempts::default();
        let [(_, attempts), backoff, start_to_close, schedule_to_close, heartbeat] = NAMES;
        if let Some(count) = &self.retry_attempts {
            retry.attempts_max = count.value();
            paths.push(attempts);
        }
        for ((option, path), text, field) in [
            (backoff, &self.retry_backoff, &mut retry.backoff_first),
            (start_to_close, &self.start_to_close, &mut timeouts.start_to_close),
            (schedule_to_close, &self.schedule_to_close, &mut timeouts.schedule_to_close),
            (heartbeat, &self.heartbeat_timeout, &mut timeouts.heartbeat),
        ] {
            if let Some(text) = text {
                *field = text.duration(option)?;
                paths.push(path);
            }
        }
        Ok(Attempts { retry, timeouts, paths })
    }
}
