//! Intervals with exclusions. Ticks are no product of days and times, so what can never meet a tick is left out,
//! and the days on which at least one tick survives are found once; a search then never leaves the day it looks
//! at without knowing where to go.

use super::Meter;
use crate::civil::{DAY_MAX, DAY_MIN, SECONDS_PER_DAY};
use crate::days::bits::DayBits;
use crate::error::Error;
use crate::interval::Ticks;
use crate::spec::{Fold, Gap};
use crate::time_of_day::TimeOfDay;
use crate::wall::{Search, WallRule};
use crate::zone::Zone;

/// Intervals under exclusions.
#[derive(Clone, Debug)]
pub(crate) struct SparseTicks(Box<[Sparse]>);

/// One interval, the walls that it may show, and the days (in UTC) on which it does.
#[derive(Clone, Debug)]
struct Sparse {
    ticks: Ticks,
    /// What is not excluded, as far as a tick can meet it.
    allowed: Box<[WallRule]>,
    days: DayBits,
}

impl SparseTicks {
    pub(super) fn new(
        ticks: Vec<Ticks>,
        allowed: &[WallRule],
        zone: &Zone,
        meter: &mut Meter,
    ) -> Result<SparseTicks, Error> {
        let mut offsets: Vec<i64> = zone.stretches().iter().map(|stretch| stretch.offset).collect();
        offsets.sort_unstable();
        offsets.dedup();
        let mut sparse = Vec::with_capacity(ticks.len());
        for ticks in ticks {
            let mut met = Vec::new();
            for rule in allowed {
                meter.step(50 * offsets.len() as u64, DOING)?;
                let time = meetings(ticks, &offsets, rule.time);
                if !time.is_empty() {
                    met.push(WallRule { days: rule.days.clone(), time });
                }
            }
            let days = live_days(ticks, open(&met, zone), meter)?;
            sparse.push(Sparse { ticks, allowed: met.into(), days });
        }
        Ok(SparseTicks(sparse.into()))
    }

    pub(crate) fn next(&self, zone: &Zone, after: i64) -> Option<i64> {
        self.0.iter().filter_map(|sparse| sparse.next(open(&sparse.allowed, zone), after)).min()
    }

    pub(crate) fn previous(&self, zone: &Zone, before: i64) -> Option<i64> {
        self.0.iter().filter_map(|sparse| sparse.previous(open(&sparse.allowed, zone), before)).max()
    }

    pub(crate) fn matches(&self, zone: &Zone, instant: i64) -> bool {
        self.0.iter().any(|sparse| {
            sparse.ticks.contains(instant)
                && sparse.days.contains(day_of(instant))
                && open(&sparse.allowed, zone).matches(instant)
        })
    }
}

const DOING: &str = "finding the times of an interval that its exclusions leave";

fn open<'a>(allowed: &'a [WallRule], zone: &'a Zone) -> Search<'a> {
    Search { rules: allowed, zone, gap: Gap::Skip, fold: Fold::Both, excluded: &[] }
}

/// The times on which a tick can ever fall, under one of these offsets. Through the days, ticks reach every second of
/// the day that is equal to theirs modulo what the period and a day have in common, and no other.
fn meetings(ticks: Ticks, offsets: &[i64], time: TimeOfDay) -> TimeOfDay {
    let common = common_divisor(ticks.period, SECONDS_PER_DAY);
    let mut met = TimeOfDay { hours: 0, minutes: 0, seconds: 0 };
    for offset in offsets {
        let wanted = (ticks.phase + offset).rem_euclid(common);
        for hour in (0..24).filter(|hour| time.hours >> hour & 1 == 1) {
            for minute in (0..60).filter(|minute| time.minutes >> minute & 1 == 1) {
                let first = (wanted - hour * 3600 - minute * 60).rem_euclid(common);
                let reached =
                    (first..60).step_by(common as usize).fold(0, |bits, second| bits | 1u64 << second);
                let seconds = reached & time.seconds;
                if seconds != 0 {
                    met.hours |= 1 << hour;
                    met.minutes |= 1 << minute;
                    met.seconds |= seconds;
                }
            }
        }
    }
    met
}

fn common_divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// The days with a surviving tick. Each day is walked from its start to the first one and from its end to the last one,
/// so that the steps of a search from either end are counted here.
fn live_days(ticks: Ticks, shown: Search<'_>, meter: &mut Meter) -> Result<DayBits, Error> {
    let mut days = DayBits::none();
    let cost = 1 + shown.rules.len() as u64 / 8;
    let mut second = i64::from(DAY_MIN) * SECONDS_PER_DAY - 1;
    loop {
        meter.step(cost, DOING)?;
        let tick = ticks.after(second);
        let day = tick.div_euclid(SECONDS_PER_DAY);
        if day > i64::from(DAY_MAX) {
            return Ok(days);
        }
        if shown.matches(tick) {
            days.insert(day as i32);
            let end = (day + 1) * SECONDS_PER_DAY;
            let mut last = ticks.before(end);
            while !shown.matches(last) {
                meter.step(cost, DOING)?;
                match shown.previous(last) {
                    Some(open) => last = ticks.before(open + 1),
                    None => break,
                }
            }
            second = end - 1;
        } else {
            match shown.next(tick) {
                Some(open) => second = open - 1,
                None => return Ok(days),
            }
        }
    }
}

impl Sparse {
    fn next(&self, shown: Search<'_>, after: i64) -> Option<i64> {
        let mut second = after;
        loop {
            let tick = self.ticks.after(second);
            let day = day_of(tick);
            if !self.days.contains(day) {
                second = i64::from(self.days.at_or_after(day)?) * SECONDS_PER_DAY - 1;
            } else if shown.matches(tick) {
                return Some(tick);
            } else {
                second = shown.next(tick)? - 1;
            }
        }
    }

    fn previous(&self, shown: Search<'_>, before: i64) -> Option<i64> {
        let mut second = before;
        loop {
            let tick = self.ticks.before(second);
            let day = day_of(tick);
            if !self.days.contains(day) {
                second = (i64::from(self.days.at_or_before(day)?) + 1) * SECONDS_PER_DAY;
            } else if shown.matches(tick) {
                return Some(tick);
            } else {
                second = shown.previous(tick)? + 1;
            }
        }
    }
}

/// The day of an instant; just outside of 2000 to 2100 when it lies beyond.
fn day_of(instant: i64) -> i32 {
    instant.div_euclid(SECONDS_PER_DAY).clamp(i64::from(DAY_MIN) - 1, i64::from(DAY_MAX) + 1) as i32
}
