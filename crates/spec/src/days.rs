//! The days that a rule names: a pattern that repeats by the shape of the month, or a plain list.

use std::sync::{Arc, OnceLock};

use crate::civil::{CivilDay, DAY_MAX, DAY_MIN, MONTHS, YEARS, month};
use bits::DayBits;

pub(crate) mod bits;

/// A set of days between 2000 and 2100.
#[derive(Clone, Debug)]
pub(crate) enum DaySet {
    /// Weekdays, days of the month and everything relative to a month.
    Pattern(Pattern),
    /// Any set at all: business days, rolled days, days with holes cut out.
    Listed(Arc<DayBits>),
}

/// Days by year, month, and shape of the month.
///
/// Whether the 14th is a Friday, the last weekday or the third Monday depends on just two things: how long
/// the month is and on which weekday it begins. So 4 x 7 masks hold every rule that a month can be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// Bit n is the year 2000 + n; only years with at least one day in the set are kept.
    years: u128,
    /// Bit n is the month n + 1.
    months: u16,
    /// By length of the month minus 28, then by its first weekday; bit n is the day of the month n.
    shapes: [[u32; 7]; 4],
}

pub(crate) const ALL_YEARS: u128 = (1 << YEARS) - 1;
pub(crate) const ALL_MONTHS: u16 = (1 << 12) - 1;

impl Pattern {
    /// Builds a pattern from the days of each shape of month: `(length, first weekday)` to a mask, bit n for day n.
    pub(crate) fn new(years: u128, months: u16, days: impl Fn(u8, u8) -> u32) -> Pattern {
        let mut shapes = [[0; 7]; 4];
        for (by_length, len) in shapes.iter_mut().zip(28..) {
            for (mask, first_weekday) in by_length.iter_mut().zip(0..) {
                *mask = days(len, first_weekday) & days_up_to(len);
            }
        }
        Pattern::trimmed(years, months, shapes)
    }

    /// Every day.
    pub(crate) fn all() -> Pattern {
        Pattern::new(ALL_YEARS, ALL_MONTHS, |_, _| u32::MAX)
    }

    /// Drops the years without a day, so that a search never walks through one.
    fn trimmed(years: u128, months: u16, shapes: [[u32; 7]; 4]) -> Pattern {
        let mut pattern = Pattern { years: 0, months, shapes };
        for kind in year_kinds() {
            let live = BitsOf(months).any(|of_year| pattern.days_of(kind.example * 12 + of_year) != 0);
            pattern.years |= if live { years & kind.years } else { 0 };
        }
        pattern
    }

    #[inline]
    fn days_of(&self, month_index: usize) -> u32 {
        let month = month(month_index);
        self.shapes[month.len as usize - 28][month.first_weekday as usize]
    }

    /// The days of one month as a mask, bit n for day n.
    #[inline]
    fn mask(&self, month_index: usize) -> u32 {
        let held = self.years >> (month_index / 12) & 1 == 1 && self.months >> (month_index % 12) & 1 == 1;
        if held { self.days_of(month_index) } else { 0 }
    }

    fn next(&self, from: CivilDay) -> Option<i32> {
        let mut year = from.month_index / 12;
        let mut of_year = from.month_index % 12;
        let mut days = u32::MAX << from.day_of_month;
        if self.years >> year & 1 == 0 {
            (year, of_year, days) = (self.year_after(year)?, 0, u32::MAX);
        }
        loop {
            let mut months = self.months as u32 >> of_year << of_year;
            while months != 0 {
                let here = months.trailing_zeros() as usize;
                let index = year * 12 + here;
                let found = self.days_of(index) & if here == of_year { days } else { u32::MAX };
                if found != 0 {
                    return Some(month(index).first_day + found.trailing_zeros() as i32 - 1);
                }
                months &= months - 1;
            }
            // A year that is kept has a day, so the second round finds one.
            (year, of_year, days) = (self.year_after(year)?, 0, u32::MAX);
        }
    }

    fn previous(&self, from: CivilDay) -> Option<i32> {
        let mut year = from.month_index / 12;
        let mut of_year = from.month_index % 12;
        let mut days = u32::MAX >> (31 - from.day_of_month);
        if self.years >> year & 1 == 0 {
            (year, of_year, days) = (self.year_before(year)?, 11, u32::MAX);
        }
        loop {
            let mut months = self.months as u32 & ((2 << of_year) - 1);
            while months != 0 {
                let here = months.ilog2() as usize;
                let index = year * 12 + here;
                let found = self.days_of(index) & if here == of_year { days } else { u32::MAX };
                if found != 0 {
                    return Some(month(index).first_day + found.ilog2() as i32 - 1);
                }
                months ^= 1 << here;
            }
            (year, of_year, days) = (self.year_before(year)?, 11, u32::MAX);
        }
    }

    #[inline]
    fn year_after(&self, year: usize) -> Option<usize> {
        let later = self.years >> year >> 1;
        (later != 0).then(|| year + 1 + later.trailing_zeros() as usize)
    }

    #[inline]
    fn year_before(&self, year: usize) -> Option<usize> {
        let earlier = self.years & ((1 << year) - 1);
        (earlier != 0).then(|| earlier.ilog2() as usize)
    }

    fn shapes_with(&self, other: &Pattern, combine: fn(u32, u32) -> u32) -> [[u32; 7]; 4] {
        let mut shapes = self.shapes;
        for (mine, theirs) in shapes.iter_mut().flatten().zip(other.shapes.iter().flatten()) {
            *mine = combine(*mine, *theirs);
        }
        shapes
    }

    fn covers_shapes_of(&self, other: &Pattern) -> bool {
        self.shapes_with(other, |mine, theirs| theirs & !mine).iter().flatten().all(|mask| *mask == 0)
    }
}

impl DaySet {
    pub(crate) fn all() -> DaySet {
        DaySet::Pattern(Pattern::all())
    }

    pub(crate) fn listed(bits: DayBits) -> DaySet {
        DaySet::Listed(Arc::new(bits))
    }

    /// Whether it is a plain list, which costs far more to combine than a pattern.
    pub(crate) fn is_listed(&self) -> bool {
        matches!(self, DaySet::Listed(_))
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            DaySet::Pattern(pattern) => pattern.years == 0,
            DaySet::Listed(bits) => bits.is_empty(),
        }
    }

    #[inline]
    pub(crate) fn contains(&self, day: i32, civil: CivilDay) -> bool {
        match self {
            DaySet::Pattern(pattern) => pattern.mask(civil.month_index) >> civil.day_of_month & 1 == 1,
            DaySet::Listed(bits) => bits.contains(day),
        }
    }

    /// The first day of the set at or after this one.
    #[inline]
    pub(crate) fn at_or_after(&self, day: i32) -> Option<i32> {
        if day > DAY_MAX {
            return None;
        }
        let day = day.max(DAY_MIN);
        match self {
            DaySet::Pattern(pattern) => pattern.next(CivilDay::of(day)),
            DaySet::Listed(bits) => bits.at_or_after(day),
        }
    }

    /// The last day of the set at or before this one.
    #[inline]
    pub(crate) fn at_or_before(&self, day: i32) -> Option<i32> {
        if day < DAY_MIN {
            return None;
        }
        let day = day.min(DAY_MAX);
        match self {
            DaySet::Pattern(pattern) => pattern.previous(CivilDay::of(day)),
            DaySet::Listed(bits) => bits.at_or_before(day),
        }
    }

    /// The same days as a list.
    pub(crate) fn to_bits(&self) -> DayBits {
        match self {
            DaySet::Listed(bits) => (**bits).clone(),
            DaySet::Pattern(pattern) => {
                let mut bits = DayBits::none();
                for index in 0..MONTHS {
                    bits.insert_month(month(index).first_day, pattern.mask(index));
                }
                bits
            }
        }
    }

    pub(crate) fn intersect(&self, other: &DaySet) -> DaySet {
        if let (DaySet::Pattern(a), DaySet::Pattern(b)) = (self, other) {
            let shapes = a.shapes_with(b, |mine, theirs| mine & theirs);
            return DaySet::Pattern(Pattern::trimmed(a.years & b.years, a.months & b.months, shapes));
        }
        let mut bits = self.to_bits();
        bits.retain(&other.to_bits());
        DaySet::listed(bits)
    }

    /// The days of this set that are not in the other.
    pub(crate) fn subtract(&self, other: &DaySet) -> DaySet {
        if let (DaySet::Pattern(a), DaySet::Pattern(b)) = (self, other) {
            let years_covered = a.years & !b.years == 0;
            let months_covered = a.months & !b.months == 0;
            // Patterns are products, so cutting along one side leaves a pattern; anything else a list.
            if years_covered && months_covered {
                let shapes = a.shapes_with(b, |mine, theirs| mine & !theirs);
                return DaySet::Pattern(Pattern::trimmed(a.years, a.months, shapes));
            }
            let shapes_covered = b.covers_shapes_of(a);
            if months_covered && shapes_covered {
                return DaySet::Pattern(Pattern { years: a.years & !b.years, ..a.clone() });
            }
            if years_covered && shapes_covered {
                return DaySet::Pattern(Pattern::trimmed(a.years, a.months & !b.months, a.shapes));
            }
        }
        let mut bits = self.to_bits();
        bits.remove(&other.to_bits());
        DaySet::listed(bits)
    }

    /// Both sets as one, if that is a pattern again.
    pub(crate) fn union_as_pattern(&self, other: &DaySet) -> Option<DaySet> {
        let (DaySet::Pattern(a), DaySet::Pattern(b)) = (self, other) else { return None };
        if a.months == b.months && a.years == b.years {
            let shapes = a.shapes_with(b, |mine, theirs| mine | theirs);
            return Some(DaySet::Pattern(Pattern::trimmed(a.years, a.months, shapes)));
        }
        if a.shapes != b.shapes {
            return None;
        }
        if a.months == b.months {
            return Some(DaySet::Pattern(Pattern { years: a.years | b.years, ..a.clone() }));
        }
        (a.years == b.years).then(|| DaySet::Pattern(Pattern { months: a.months | b.months, ..a.clone() }))
    }

    /// Both sets as one.
    pub(crate) fn union(&self, other: &DaySet) -> DaySet {
        self.union_as_pattern(other).unwrap_or_else(|| {
            let mut bits = self.to_bits();
            bits.insert_all(&other.to_bits());
            DaySet::listed(bits)
        })
    }
}

/// The days of a month that fall on a weekday, bit n for day n.
pub(crate) fn days_of_weekday(first_weekday: u8, weekday: u8) -> u32 {
    const EVERY_SEVENTH: u32 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28;
    EVERY_SEVENTH << ((weekday + 7 - first_weekday) % 7 + 1)
}

/// The days of a month up to its length, bit n for day n.
fn days_up_to(len: u8) -> u32 {
    u32::MAX >> (31 - len) & !1
}

/// Years whose months all have the same shapes: leap or not, and by the weekday of 1 January.
struct YearKind {
    years: u128,
    /// One of the years, counted from 2000.
    example: usize,
}

/// The fourteen kinds of years there are.
fn year_kinds() -> &'static [YearKind] {
    static KINDS: OnceLock<Vec<YearKind>> = OnceLock::new();
    KINDS.get_or_init(|| {
        let shape = |year: usize| (month(year * 12).first_weekday, month(year * 12 + 1).len);
        let mut kinds: Vec<YearKind> = Vec::new();
        for year in 0..YEARS {
            match kinds.iter_mut().find(|kind| shape(kind.example) == shape(year)) {
                Some(kind) => kind.years |= 1 << year,
                None => kinds.push(YearKind { years: 1 << year, example: year }),
            }
        }
        kinds
    })
}

/// The set bits of a number, lowest first.
struct BitsOf(u16);

impl Iterator for BitsOf {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        (self.0 != 0).then(|| {
            let lowest = self.0.trailing_zeros() as usize;
            self.0 &= self.0 - 1;
            lowest
        })
    }
}

#[cfg(test)]
mod tests;
