//! The options that describe a spec, the same for every command.

use std::path::PathBuf;

use anyhow::Result;
use clap::{ArgGroup, Args};
use jiff::Timestamp;

use crate::request::Request;

mod build;
mod calendar;
mod choices;
mod files;

use choices::{DialectName, FoldName, GapName, RollName};

/// Cron strings and all other options of a spec.
#[derive(Debug, Args)]
pub struct SpecArgs {
    /// Cron strings, each in quotes; it fires when any of them does
    #[arg(value_name = "EXPR")]
    expressions: Vec<String>,

    #[command(flatten)]
    options: SpecOptions,
}

impl SpecArgs {
    /// Reads and checks the spec.
    pub fn request(&self, now: Timestamp) -> Result<Request> {
        self.options.request(&self.expressions, now)
    }

    /// Reads and checks a spec that may be a part of one, or none at all. The zone is for local times, if no option names one.
    pub fn part(&self, zone: &str, now: Timestamp) -> Result<Request> {
        build::part(&self.options, &self.expressions, zone, now)
    }

    /// The fields of a spec that the options speak of, as an update mask names them.
    pub fn fields(&self) -> Vec<&'static str> {
        let SpecOptions { every, at, calendar, zone, tzif, gap, fold, .. } = &self.options;
        let SpecOptions { exclude, exclude_date, exclude_dates, only_dates, business_closed, .. } =
            &self.options;
        let SpecOptions { start, end, jitter, .. } = &self.options;
        let given = [
            ("crons", !self.expressions.is_empty()),
            ("intervals", !every.is_empty()),
            ("times", !at.is_empty()),
            ("calendar_texts", !calendar.is_empty()),
            ("zone", zone.is_some() || tzif.is_some()),
            ("zone_data", zone.is_some() || tzif.is_some()),
            ("gap", gap.is_some()),
            ("fold", fold.is_some()),
            ("exclusion_crons", !exclude.is_empty()),
            ("exclusion_dates", !exclude_date.is_empty() || exclude_dates.is_some()),
            ("calendar_rules", only_dates.is_some()),
            ("business_calendar", business_closed.is_some()),
            ("start_time", start.is_some()),
            ("end_time", end.is_some()),
            ("jitter", jitter.is_some()),
        ];
        given.into_iter().filter(|(_, given)| *given).map(|(field, _)| field).collect()
    }

    /// Whether there is anything that could fire.
    pub fn has_source(&self) -> bool {
        let sources = ["crons", "intervals", "times", "calendar_texts"];
        self.fields().iter().any(|field| sources.contains(field))
    }
}

/// All options of a spec but the cron strings.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("date_files").multiple(true))]
pub struct SpecOptions {
    /// How to read cron strings [default: temporal]
    #[arg(long, value_name = "NAME", help_heading = SOURCES)]
    dialect: Option<DialectName>,

    /// Also fire every so often, as in 90m or 5h/45m
    #[arg(long, value_name = "DURATION[/PHASE]", help_heading = SOURCES)]
    every: Vec<String>,

    /// Count every --every from this instant
    #[arg(long, value_name = "INSTANT", requires = "every", help_heading = SOURCES)]
    anchor: Option<String>,

    /// Also fire at this instant
    #[arg(long, value_name = "INSTANT", help_heading = SOURCES)]
    at: Vec<String>,

    /// Also fire by a calendar, as in 'hour=9 minute=30 day_of_week=mon-fri'
    #[arg(long, value_name = "FIELDS", help_heading = SOURCES)]
    calendar: Vec<String>,

    /// The time zone, by its IANA name; UTC if neither this nor a cron string names one
    #[arg(short, long, aliases = ["tz", "timezone"], value_name = "NAME", help_heading = TIME_ZONE)]
    zone: Option<String>,

    /// Take the time zone from a TZif file, as in /usr/share/zoneinfo
    #[arg(long, value_name = "FILE", help_heading = TIME_ZONE)]
    tzif: Option<PathBuf>,

    /// What becomes of a local time that the clock skips [default: skip]
    #[arg(long, value_name = "POLICY", help_heading = TIME_ZONE)]
    gap: Option<GapName>,

    /// What becomes of a local time that the clock repeats [default: both]
    #[arg(long, value_name = "POLICY", help_heading = TIME_ZONE)]
    fold: Option<FoldName>,

    /// Never fire when this cron string does
    #[arg(long, value_name = "CRON", help_heading = EXCLUSIONS)]
    exclude: Vec<String>,

    /// Never fire on this date
    #[arg(long, value_name = "DATE", help_heading = EXCLUSIONS)]
    exclude_date: Vec<String>,

    /// Never fire on the dates in a file, one a line
    #[arg(long, value_name = "FILE", group = "date_files", help_heading = EXCLUSIONS)]
    exclude_dates: Option<PathBuf>,

    /// Only fire on the dates in a file, one a line
    #[arg(long, value_name = "FILE", group = "date_files", help_heading = EXCLUSIONS)]
    only_dates: Option<PathBuf>,

    /// Where to go from a date that a file forbids [default: skip]
    #[arg(long, value_name = "WAY", requires = "date_files", help_heading = EXCLUSIONS)]
    roll: Option<RollName>,

    /// Dates closed for business besides weekends, one a line, for 3B, LB and 15WB of the quartz dialect
    #[arg(long, value_name = "FILE", help_heading = EXCLUSIONS)]
    business_closed: Option<PathBuf>,

    /// Never fire before this instant
    #[arg(long, value_name = "INSTANT", help_heading = BOUNDS)]
    start: Option<String>,

    /// Never fire after this instant
    #[arg(long, value_name = "INSTANT", help_heading = BOUNDS)]
    end: Option<String>,

    /// Spread due times over this much
    #[arg(long, value_name = "DURATION", help_heading = BOUNDS)]
    jitter: Option<String>,

    /// Draw jitter and H from this text, such as the name of the schedule
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, help_heading = BOUNDS)]
    seed: String,
}

const SOURCES: &str = "When it fires";
const TIME_ZONE: &str = "Time zone";
const EXCLUSIONS: &str = "When it does not";
const BOUNDS: &str = "Bounds and jitter";

impl SpecOptions {
    /// Reads and checks the spec with these cron strings.
    pub fn request(&self, expressions: &[String], now: Timestamp) -> Result<Request> {
        build::request(self, expressions, now)
    }
}
