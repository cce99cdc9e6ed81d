//! Rules on the wall clock, and the search for the next or previous second that fits one of them.

use crate::civil::{CivilDay, DAY_MAX, DAY_MIN, SECONDS_PER_DAY};
use crate::days::DaySet;
use crate::spec::{Fold, Gap};
use crate::time_of_day::TimeOfDay;
use crate::zone::{Stretch, Zone};

/// Some times on some days: every combination of both.
#[derive(Clone, Debug)]
pub(crate) struct WallRule {
    pub(crate) days: DaySet,
    pub(crate) time: TimeOfDay,
}

impl WallRule {
    pub(crate) fn is_empty(&self) -> bool {
        self.time.is_empty() || self.days.is_empty()
    }
}

/// Further apart than any two offsets: a stretch that begins this long after another shows later walls only.
const OFFSETS_APART: i64 = 4 * SECONDS_PER_DAY;

/// A search over a set of rules in one zone.
///
/// It walks the zone's stretches in order. `known` carries what was learnt from one stretch to the next: the
/// rules have no wall between its two ends. So a spec that fires every few years asks its rules once, not
/// once for every change of the clock in between.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a> {
    pub(crate) rules: &'a [WallRule],
    pub(crate) zone: &'a Zone,
    pub(crate) gap: Gap,
    pub(crate) fold: Fold,
    /// What was cut out of the rules; an occurrence that moves out of a gap must not land in it.
    pub(crate) excluded: &'a [WallRule],
}

impl Search<'_> {
    /// The first instant after this one.
    #[inline]
    pub(crate) fn next(&self, after: i64) -> Option<i64> {
        let stretches = self.zone.stretches();
        let (mut index, mut stretch) = self.zone.stretch_at(after + 1);
        let mut known = (i64::MAX, i64::MIN);
        loop {
            if self.gap == Gap::After && stretch.start > after && self.moved(stretch) {
                return Some(stretch.start);
            }
            let (low, high) = stretch.walls(self.fold);
            let low = low.max(after + 1 + stretch.offset);
            if !(known.0 <= low && low <= known.1) {
                known = (low, first_wall(self.rules, low).unwrap_or(i64::MAX));
            }
            if known.1 < high {
                return Some(known.1 - stretch.offset);
            }
            index += 1;
            // Far enough from the start no stretch can show a wall before `low` again, so all that end
            // before the next wall can be passed over.
            if index < stretches.len() && stretches[index].start > after + OFFSETS_APART {
                if known.1 == i64::MAX {
                    return None;
                }
                index = index.max(self.zone.stretch_at(known.1 - OFFSETS_APART).0);
            }
            stretch = stretches.get(index)?;
        }
    }

    /// The last instant before this one.
    pub(crate) fn previous(&self, before: i64) -> Option<i64> {
        let stretches = self.zone.stretches();
        let (mut index, mut stretch) = self.zone.stretch_at(before - 1);
        let mut known = (i64::MAX, i64::MIN);
        loop {
            let (low, high) = stretch.walls(self.fold);
            let last = (high - 1).min(before - 1 + stretch.offset);
            if !(known.0 <= last && last <= known.1) {
                known = (last_wall(self.rules, last).unwrap_or(i64::MIN), last);
            }
            if known.0 >= low && known.0 != i64::MIN {
                return Some(known.0 - stretch.offset);
            }
            if self.gap == Gap::After && stretch.start < before && self.moved(stretch) {
                return Some(stretch.start);
            }
            index = index.checked_sub(1)?;
            let end = stretch.start;
            if end < before - OFFSETS_APART {
                if known.0 == i64::MIN {
                    return None;
                }
                index = index.min(self.zone.stretch_at(known.0 + OFFSETS_APART).0);
            }
            stretch = &stretches[index];
        }
    }

    /// Whether a rule fits this instant.
    pub(crate) fn matches(&self, instant: i64) -> bool {
        let (_, stretch) = self.zone.stretch_at(instant);
        let (low, high) = stretch.walls(self.fold);
        let wall = instant + stretch.offset;
        let shown = low <= wall && wall < high && contains(self.rules, wall);
        shown || (self.gap == Gap::After && stretch.start == instant && self.moved(stretch))
    }

    /// Whether a rule names a wall of the gap before this stretch, and its first instant may take its place.
    fn moved(&self, stretch: &Stretch) -> bool {
        stretch.gap().is_some_and(|(from, to)| {
            first_wall(self.rules, from).is_some_and(|wall| wall < to) && !contains(self.excluded, to)
        })
    }
}

/// The first wall second at or after this one that fits a rule.
#[inline]
pub(crate) fn first_wall(rules: &[WallRule], from: i64) -> Option<i64> {
    let (day, second) = match split(from) {
        (day, _) if day > i64::from(DAY_MAX) => return None,
        (day, _) if day < i64::from(DAY_MIN) => (DAY_MIN, 0),
        (day, second) => (day as i32, second),
    };
    let civil = CivilDay::of(day);
    let tomorrow = join(day + 1, 0);
    let mut best = i64::MAX;
    for rule in rules {
        if rule.days.contains(day, civil)
            && let Some(found) = rule.time.at_or_after(second)
        {
            best = best.min(join(day, found));
        } else if best >= tomorrow
            && let Some(later) = rule.days.at_or_after(day + 1)
        {
            best = best.min(join(later, rule.time.first()));
        }
    }
    (best != i64::MAX).then_some(best)
}

/// The last wall second at or before this one that fits a rule.
pub(crate) fn last_wall(rules: &[WallRule], from: i64) -> Option<i64> {
    let (day, second) = match split(from) {
        (day, _) if day < i64::from(DAY_MIN) => return None,
        (day, _) if day > i64::from(DAY_MAX) => (DAY_MAX, 86_399),
        (day, second) => (day as i32, second),
    };
    let civil = CivilDay::of(day);
    let today = join(day, 0);
    let mut best = i64::MIN;
    for rule in rules {
        if rule.days.contains(day, civil)
            && let Some(found) = rule.time.at_or_before(second)
        {
            best = best.max(join(day, found));
        } else if best < today
            && let Some(earlier) = rule.days.at_or_before(day - 1)
        {
            best = best.max(join(earlier, rule.time.last()));
        }
    }
    (best != i64::MIN).then_some(best)
}

/// Whether a rule fits this wall second.
pub(crate) fn contains(rules: &[WallRule], wall: i64) -> bool {
    let (day, second) = split(wall);
    if day < i64::from(DAY_MIN) || day > i64::from(DAY_MAX) {
        return false;
    }
    let (day, civil) = (day as i32, CivilDay::of(day as i32));
    rules.iter().any(|rule| rule.time.contains(second) && rule.days.contains(day, civil))
}

#[inline]
fn split(wall: i64) -> (i64, u32) {
    (wall.div_euclid(SECONDS_PER_DAY), wall.rem_euclid(SECONDS_PER_DAY) as u32)
}

#[inline]
fn join(day: i32, second: u32) -> i64 {
    i64::from(day) * SECONDS_PER_DAY + i64::from(second)
}
