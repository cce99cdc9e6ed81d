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
        let (mut given, mut policies) = (Given::default(), v1::Policies::default());
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
        take!(given, self.remaining, "remaining_actions", given.remaining_actions, |count| count.value());
        given.policies = policies;
        Ok(given)
    }
}
