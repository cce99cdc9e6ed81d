//! The options that describe what a schedule does and how its starts get along, the same for create and update.

use anyhow::Result;
use clap::Args;
use punctual_api::v1;

use crate::action_args::ActionArgs;
use crate::or_none::OrNone;
use crate::wire::words::{OnResumeName, OverlapName};

const POLICIES: &str = "How starts get along";

/// Action and policies.
#[derive(Debug, Args)]
pub struct ScheduleArgs {
    #[command(flatten)]
    pub action: ActionArgs,

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
}

/// The policies and limits that options speak of, and the mask that names exactly them.
#[derive(Debug, Default)]
pub struct Given {
    pub policies: v1::Policies,
    pub remaining_actions: Option<u32>,
    pub mask: Vec<String>,
}

/// Each option with the field that it sets, for whoever has one and needs the other.
pub const NAMES: [(&str, &str); 8] = [
    ("--overlap", "policies.overlap"),
    ("--concurrency", "policies.concurrency"),
    ("--catchup-window", "policies.catchup_window"),
    ("--catchup-latest", "policies.catchup_count"),
    ("--catchup-pace", "policies.catchup_pace"),
    ("--pause-after-failures", "policies.pause_after_failures"),
    ("--on-resume", "policies.on_resume"),
    ("--remaining", "remaining_actions"),
];

impl ScheduleArgs {
    pub fn given(&self) -> Result<Given> {
        let (mut given, policies) = (Given::default(), &mut v1::Policies::default());
        let [overlap, concurrency, window, count, pace, failures, on_resume, remaining] = NAMES;
        let mut set = |(_, path): (&str, &str)| given.mask.push(path.to_owned());
        if let Some(name) = self.overlap {
            policies.overlap = name.into();
            set(overlap);
        }
        if let Some(name) = self.on_resume {
            policies.on_resume = name.into();
            set(on_resume);
        }
        for (name, number, field) in [
            (concurrency, &self.concurrency, &mut policies.concurrency),
            (count, &self.catchup_latest, &mut policies.catchup_count),
            (failures, &self.pause_after_failures, &mut policies.pause_after_failures),
            (remaining, &self.remaining, &mut given.remaining_actions),
        ] {
            if let Some(number) = number {
                *field = number.value();
                set(name);
            }
        }
        for (name, text, field) in [
            (window, &self.catchup_window, &mut policies.catchup_window),
            (pace, &self.catchup_pace, &mut policies.catchup_pace),
        ] {
            if let Some(text) = text {
                *field = text.duration(name.0)?;
                set(name);
            }
        }
        given.policies = *policies;
        Ok(given)
    }
}
