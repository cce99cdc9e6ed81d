//! Intervals with exclusions. Ticks are no product of days and times, so the days on which at least one tick
//! survives are found once; a search then never leaves the day it looks at without knowing where to go.

use super::Meter;
use crate::civil::{DAY_MAX, DAY_MIN, SECONDS_PER_DAY};
use crate::days::bits::DayBits;
use crate::error::Error;
use crate::interval::Ticks;
use crate::spec::{Fold, Gap};
use crate::wall::{Search, WallRule};
use crate::zone::Zone;

/// Intervals, the walls they may show, and the days (in UTC) on which they do.
#[derive(Clone, Debug)]
pub(crate) struct SparseTicks {
    ticks: Box<[(Ticks, DayBits)]>,
    /// Everything that is not excluded.
    allowed: Box<[WallRule]>,
}

impl SparseTicks {
    pub(super) fn new(
        ticks: Vec<Ticks>,
        allowed: Vec<WallRule>,
        zone: &Zone,
        meter: &mut Meter,
    ) -> Result<SparseTicks, Error> {
        let shown = open(&allowed, zone);
        let mut live = Vec::with_capacity(ticks.len());
        for ticks in ticks {
            live.push((ticks, live_days(ticks, shown, meter)?));
        }
        Ok(SparseTicks { ticks: live.into(), allowed: allowed.into() })
    }

    pub(crate) fn next(&self, zone: &Zone, after: i64) -> Option<i64> {
        let shown = open(&self.allowed, zone);
        self.ticks.iter().filter_map(|(ticks, days)| next(*ticks, days, shown, after)).min()
    }

    pub(crate) fn previous(&self, zone: &Zone, before: i64) -> Option<i64> {
        let shown = open(&self.allowed, zone);
        self.ticks.iter().filter_map(|(ticks, days)| previous(*ticks, days, shown, before)).max()
    }

    pub(crate) fn matches(&self, zone: &Zone, instant: i64) -> bool {
        let live = |(ticks, days): &(Ticks, DayBits)| {
            ticks.contains(instant) && day_of(instant).is_some_and(|day| days.contains(day))
        };
        self.ticks.iter().any(live) && open(&self.allowed, zone).matches(instant)
    }
}

fn open<'a>(allowed: &'a [WallRule], zone: &'a Zone) -> Search<'a> {
    Search { rules: allowed, zone, gap: Gap::Skip, fold: Fold::Both, excluded: &[] }
}

fn live_days(ticks: Ticks, shown: Search<'_>, meter: &mut Meter) -> Result<DayBits, Error> {
    let mut days = DayBits::none();
    let mut second = i64::from(DAY_MIN) * SECONDS_PER_DAY - 1;
    loop {
        meter.step(
            1 + shown.rules.len() as u64 / 8,
            "finding the times of an interval that its exclusions leave",
        )?;
        let tick = ticks.after(second);
        let day = tick.div_euclid(SECONDS_PER_DAY);
        if day > i64::from(DAY_MAX) {
            return Ok(days);
        }
        if shown.matches(tick) {
            days.insert(day as i32);
            second = (day + 1) * SECONDS_PER_DAY - 1;
        } else {
            match shown.next(tick) {
                Some(open) => second = open - 1,
                None => return Ok(days),
            }
        }
    }
}

fn next(ticks: Ticks, days: &DayBits, shown: Search<'_>, after: i64) -> Option<i64> {
    let mut second = after;
    loop {
        let tick = ticks.after(second);
        let day = day_of(tick)?;
        if !days.contains(day) {
            second = i64::from(days.at_or_after(day)?) * SECONDS_PER_DAY - 1;
        } else if shown.matches(tick) {
            return Some(tick);
        } else {
            second = shown.next(tick)? - 1;
        }
    }
}

fn previous(ticks: Ticks, days: &DayBits, shown: Search<'_>, before: i64) -> Option<i64> {
    let mut second = before;
    loop {
        let tick = ticks.before(second);
        let day = day_of(tick)?;
        if !days.contains(day) {
            second = (i64::from(days.at_or_before(day)?) + 1) * SECONDS_PER_DAY;
        } else if shown.matches(tick) {
            return Some(tick);
        } else {
            second = shown.previous(tick)? + 1;
        }
    }
}

/// The day of an instant, moved to the border when it lies outside of 2000 to 2100 on the side it came from.
fn day_of(instant: i64) -> Option<i32> {
    let day = instant.div_euclid(SECONDS_PER_DAY);
    i32::try_from(day.clamp(i64::from(DAY_MIN) - 1, i64::from(DAY_MAX) + 1)).ok()
}
