//! The peers behind one small face: the next second after a second.

use std::str::FromStr;

use anyhow::{Context, Result};
use chrono::{DateTime, TimeZone};
use chrono_tz::Tz;

/// The crate `cron`.
pub struct Cron {
    schedule: cron::Schedule,
    zone: Tz,
}

impl Cron {
    /// Nothing when there is no text: the peer cannot say it.
    pub fn new(text: &str, zone: &str) -> Result<Option<Cron>> {
        if text.is_empty() {
            return Ok(None);
        }
        let schedule = cron::Schedule::from_str(text).with_context(|| format!("cron: {text}"))?;
        Ok(Some(Cron { schedule, zone: zone_of(zone)? }))
    }

    pub fn next(&self, after: i64) -> Option<i64> {
        let after: DateTime<Tz> = self.zone.timestamp_opt(after, 0).single()?;
        self.schedule.after(&after).next().map(|time| time.timestamp())
    }
}

/// The crate `croner`.
pub struct Croner {
    cron: croner::Cron,
    zone: Tz,
}

impl Croner {
    /// Nothing when there is no text: the peer cannot say it.
    pub fn new(text: &str, zone: &str) -> Result<Option<Croner>> {
        if text.is_empty() {
            return Ok(None);
        }
        let cron = croner::Cron::from_str(text).with_context(|| format!("croner: {text}"))?;
        Ok(Some(Croner { cron, zone: zone_of(zone)? }))
    }

    pub fn next(&self, after: i64) -> Option<i64> {
        let after: DateTime<Tz> = self.zone.timestamp_opt(after, 0).single()?;
        self.cron.find_next_occurrence(&after, false).ok().map(|time| time.timestamp())
    }
}

fn zone_of(name: &str) -> Result<Tz> {
    Tz::from_str(name).map_err(|error| anyhow::anyhow!("{name}: {error}"))
}
