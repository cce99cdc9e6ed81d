//! Days and months of 2000 to 2100 as plain numbers, with what a search asks of them in one small table.
//!
//! A day is counted from 1970-01-01, a month from January 2000. Everything is computed when the crate is
//! compiled; looking a month up costs a multiplication and at most one correction.

use crate::limits::{YEAR_MAX, YEAR_MIN};

pub(crate) const SECONDS_PER_DAY: i64 = 86_400;

/// Years from [`YEAR_MIN`] to [`YEAR_MAX`].
pub(crate) const YEARS: usize = (YEAR_MAX - YEAR_MIN + 1) as usize;
pub(crate) const MONTHS: usize = YEARS * 12;

/// 2000-01-01 and 2100-12-31.
pub(crate) const DAY_MIN: i32 = days_before_year(YEAR_MIN as i32);
pub(crate) const DAY_MAX: i32 = days_before_year(YEAR_MAX as i32 + 1) - 1;

/// What a search needs to know of one month.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Month {
    /// The day number of its first day.
    pub(crate) first_day: i32,
    /// 28 to 31.
    pub(crate) len: u8,
    /// The weekday of its first day; 0 is Sunday.
    pub(crate) first_weekday: u8,
}

static TABLE: [Month; MONTHS] = month_table();

/// The month with this index, counted from January 2000.
#[inline]
pub(crate) fn month(index: usize) -> Month {
    TABLE[index]
}

/// A day between 2000 and 2100, and where it stands in its month.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CivilDay {
    /// Index of the month, counted from January 2000.
    pub(crate) month_index: usize,
    /// 1 to 31.
    pub(crate) day_of_month: u32,
}

impl CivilDay {
    /// Places a day number; the caller has checked that it lies within the table.
    #[inline]
    pub(crate) fn of(day: i32) -> CivilDay {
        debug_assert!((DAY_MIN..=DAY_MAX).contains(&day), "{day} is outside of the table");
        let since = (day - DAY_MIN) as usize;
        // 65536 / 2153 is just under the mean length of a month, so the guess is right or one off.
        let mut index = ((since * 2153) >> 16).min(MONTHS - 1);
        if TABLE[index].first_day > day {
            index -= 1;
        } else if index + 1 < MONTHS && TABLE[index + 1].first_day <= day {
            index += 1;
        }
        CivilDay { month_index: index, day_of_month: (day - TABLE[index].first_day + 1) as u32 }
    }

    pub(crate) fn year(self) -> i16 {
        YEAR_MIN + (self.month_index / 12) as i16
    }

    /// 1 to 12.
    pub(crate) fn month_of_year(self) -> u32 {
        (self.month_index % 12) as u32 + 1
    }
}

/// The number of a date, or nothing when it is before 2000 or after 2100.
pub(crate) fn day_of_date(date: jiff::civil::Date) -> Option<i32> {
    if !(YEAR_MIN..=YEAR_MAX).contains(&date.year()) {
        return None;
    }
    let index = (date.year() - YEAR_MIN) as usize * 12 + date.month() as usize - 1;
    Some(month(index).first_day + date.day() as i32 - 1)
}

/// The date of a day number between 2000 and 2100.
pub(crate) fn date_of_day(day: i32) -> jiff::civil::Date {
    let civil = CivilDay::of(day);
    jiff::civil::date(civil.year(), civil.month_of_year() as i8, civil.day_of_month as i8)
}

const fn days_before_year(year: i32) -> i32 {
    let past = year - 1;
    past * 365 + past / 4 - past / 100 + past / 400 - 719_162
}

const fn month_table() -> [Month; MONTHS] {
    const LENGTHS: [u8; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut table = [Month { first_day: 0, len: 0, first_weekday: 0 }; MONTHS];
    let mut day = DAY_MIN;
    let mut index = 0;
    while index < MONTHS {
        let year = YEAR_MIN as i32 + (index / 12) as i32;
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let len = LENGTHS[index % 12] + (index % 12 == 1 && leap) as u8;
        table[index] = Month { first_day: day, len, first_weekday: ((day + 4) % 7) as u8 };
        day += len as i32;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_agrees_with_the_time_library() {
        let mut date = jiff::civil::date(2000, 1, 1);
        for day in DAY_MIN..=DAY_MAX {
            let civil = CivilDay::of(day);
            assert_eq!((civil.year(), civil.month_of_year() as i8), (date.year(), date.month()));
            assert_eq!(civil.day_of_month as i8, date.day());
            let month = month(civil.month_index);
            let weekday = (u32::from(month.first_weekday) + civil.day_of_month - 1) % 7;
            assert_eq!(weekday as i8, date.weekday().to_sunday_zero_offset());
            assert_eq!(month.len as i8, date.days_in_month());
            assert_eq!(day_of_date(date), Some(day));
            assert_eq!(date_of_day(day), date);
            date = date.tomorrow().unwrap();
        }
        assert_eq!(date, jiff::civil::date(2101, 1, 1));
        assert_eq!(day_of_date(date), None);
    }
}
