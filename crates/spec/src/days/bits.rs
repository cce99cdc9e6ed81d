//! Any set of days between 2000 and 2100, one bit a day.

use crate::civil::{DAY_MAX, DAY_MIN};

const WORDS: usize = (DAY_MAX - DAY_MIN) as usize / 64 + 1;

/// One bit for each day from 2000-01-01 to 2100-12-31.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DayBits {
    words: Box<[u64; WORDS]>,
}

impl DayBits {
    pub(crate) fn none() -> DayBits {
        DayBits { words: Box::new([0; WORDS]) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Adds a day; days outside of 2000 to 2100 cannot occur and are left out.
    pub(crate) fn insert(&mut self, day: i32) {
        if let Some(place) = place(day) {
            self.words[place / 64] |= 1 << (place % 64);
        }
    }

    /// Removes a day.
    pub(crate) fn take(&mut self, day: i32) {
        if let Some(place) = place(day) {
            self.words[place / 64] &= !(1 << (place % 64));
        }
    }

    /// The days in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = i32> + '_ {
        let mut from = DAY_MIN;
        std::iter::from_fn(move || {
            let day = self.at_or_after(from)?;
            from = day + 1;
            Some(day)
        })
    }

    /// Adds the days of one month, bit n of the mask for its day n.
    pub(crate) fn insert_month(&mut self, first_day: i32, mask: u32) {
        let place = (first_day - DAY_MIN) as usize;
        let days = u64::from(mask >> 1);
        self.words[place / 64] |= days << (place % 64);
        if place % 64 > 33 && place / 64 + 1 < WORDS {
            self.words[place / 64 + 1] |= days >> (64 - place % 64);
        }
    }

    /// The days of one month as a mask, bit n for its day n.
    pub(crate) fn month(&self, first_day: i32, len: u8) -> u32 {
        let place = (first_day - DAY_MIN) as usize;
        let next = self.words.get(place / 64 + 1).copied().unwrap_or(0);
        let window = (u128::from(next) << 64 | u128::from(self.words[place / 64])) >> (place % 64);
        (window as u32 & (u32::MAX >> (32 - len))) << 1
    }

    pub(crate) fn contains(&self, day: i32) -> bool {
        place(day).is_some_and(|place| self.words[place / 64] >> (place % 64) & 1 == 1)
    }

    pub(crate) fn at_or_after(&self, day: i32) -> Option<i32> {
        let start = place(day.max(DAY_MIN))?;
        let mut word = self.words[start / 64] >> (start % 64) << (start % 64);
        let mut index = start / 64;
        while word == 0 {
            index += 1;
            word = *self.words.get(index)?;
        }
        Some(DAY_MIN + (index * 64) as i32 + word.trailing_zeros() as i32)
    }

    pub(crate) fn at_or_before(&self, day: i32) -> Option<i32> {
        let start = place(day.min(DAY_MAX))?;
        let mut word = self.words[start / 64] << (63 - start % 64) >> (63 - start % 64);
        let mut index = start / 64;
        while word == 0 {
            index = index.checked_sub(1)?;
            word = self.words[index];
        }
        Some(DAY_MIN + (index * 64) as i32 + word.ilog2() as i32)
    }

    pub(crate) fn insert_all(&mut self, other: &DayBits) {
        self.each(other, |mine, theirs| mine | theirs);
    }

    pub(crate) fn remove(&mut self, other: &DayBits) {
        self.each(other, |mine, theirs| mine & !theirs);
    }

    pub(crate) fn retain(&mut self, other: &DayBits) {
        self.each(other, |mine, theirs| mine & theirs);
    }

    fn each(&mut self, other: &DayBits, combine: fn(u64, u64) -> u64) {
        for (mine, theirs) in self.words.iter_mut().zip(other.words.iter()) {
            *mine = combine(*mine, *theirs);
        }
    }
}

fn place(day: i32) -> Option<usize> {
    (DAY_MIN..=DAY_MAX).contains(&day).then(|| (day - DAY_MIN) as usize)
}
