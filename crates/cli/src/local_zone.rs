//! The zone of a spec, as needed to read and to show local times.

use std::{env, fs};

use anyhow::Result;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone, TimeZoneDatabase};
use punctual_spec::{Zone, Zones};

/// A link to the zone's data, on systems that have one.
const SYSTEM_ZONE_FILE: &str = "/etc/localtime";

/// A time zone by name, or from TZif bytes under a label.
#[derive(Clone, Debug)]
pub struct LocalZone {
    name: String,
    zone: TimeZone,
}

/// The instant that a local time was taken to mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The only one.
    Plain(Timestamp),
    /// The local time does not exist; this is the first instant after the gap.
    AfterGap(Timestamp),
    /// The local time exists twice; this is the first of both.
    FirstOfTwo(Timestamp),
}

impl Reading {
    pub fn instant(self) -> Timestamp {
        match self {
            Reading::Plain(instant) | Reading::AfterGap(instant) | Reading::FirstOfTwo(instant) => instant,
        }
    }
}

impl LocalZone {
    /// Finds a bundled zone exactly as a spec would, with the same errors.
    pub fn named(name: &str) -> Result<LocalZone> {
        let name = Zones::bundled().get(name)?.name().to_owned();
        let zone = TimeZoneDatabase::bundled().get(&name)?;
        Ok(LocalZone { name, zone })
    }

    /// Reads a zone exactly as a spec would, with the same errors.
    pub fn from_tzif(name: &str, bytes: &[u8]) -> Result<LocalZone> {
        let name = Zone::from_tzif(name, bytes)?.name().to_owned();
        let zone = TimeZone::tzif(&name, bytes)?;
        Ok(LocalZone { name, zone })
    }

    /// The zone without surprises.
    pub fn utc() -> LocalZone {
        LocalZone { name: "UTC".to_owned(), zone: TimeZone::UTC }
    }

    /// The zone of the person at this machine: `TZ`, else the system's own, else UTC.
    pub fn of_the_user() -> LocalZone {
        let named = |name: &str| LocalZone::named(name.trim_start_matches(':')).ok();
        if let Some(zone) = env::var("TZ").ok().and_then(|name| named(&name)) {
            return zone;
        }
        let target = fs::read_link(SYSTEM_ZONE_FILE).ok();
        let name = target.as_ref().and_then(|path| path.to_str()?.split_once("zoneinfo/"));
        name.and_then(|(_, name)| named(name)).unwrap_or_else(LocalZone::utc)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn wall(&self, instant: Timestamp) -> DateTime {
        self.zone.to_datetime(instant)
    }

    pub fn offset(&self, instant: Timestamp) -> Offset {
        self.zone.to_offset(instant)
    }

    /// The instant of a wall time; nothing if it is out of the time library's range.
    pub fn read(&self, wall: DateTime) -> Option<Reading> {
        match self.zone.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(wall).ok().map(Reading::Plain),
            AmbiguousOffset::Fold { before, .. } => before.to_timestamp(wall).ok().map(Reading::FirstOfTwo),
            AmbiguousOffset::Gap { after, .. } => {
                // Under the new offset, a wall time of the gap is an instant before the change.
                let before_change = after.to_timestamp(wall).ok()?;
                let change = self.zone.following(before_change).find(|change| change.offset() == after)?;
                Some(Reading::AfterGap(change.timestamp()))
            }
        }
    }
}
