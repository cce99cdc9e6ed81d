//! The times of one day that a rule names: a set of hours, of minutes and of seconds.

/// Hours, minutes and seconds as bit sets; the times are all their combinations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimeOfDay {
    pub(crate) hours: u32,
    pub(crate) minutes: u64,
    pub(crate) seconds: u64,
}

const ALL_HOURS: u32 = (1 << 24) - 1;
const ALL_SIXTY: u64 = (1 << 60) - 1;

impl TimeOfDay {
    /// Every second of the day.
    pub(crate) const ALL: TimeOfDay = TimeOfDay { hours: ALL_HOURS, minutes: ALL_SIXTY, seconds: ALL_SIXTY };

    pub(crate) fn is_empty(self) -> bool {
        self.hours == 0 || self.minutes == 0 || self.seconds == 0
    }

    pub(crate) fn intersect(self, other: TimeOfDay) -> TimeOfDay {
        TimeOfDay {
            hours: self.hours & other.hours,
            minutes: self.minutes & other.minutes,
            seconds: self.seconds & other.seconds,
        }
    }

    #[inline]
    pub(crate) fn contains(self, second_of_day: u32) -> bool {
        let (hour, minute, second) = split(second_of_day);
        self.hours >> hour & 1 == 1 && self.minutes >> minute & 1 == 1 && self.seconds >> second & 1 == 1
    }

    /// The earliest time of the set.
    #[inline]
    pub(crate) fn first(self) -> u32 {
        self.hours.trailing_zeros() * 3600
            + self.minutes.trailing_zeros() * 60
            + self.seconds.trailing_zeros()
    }

    /// The latest time of the set.
    #[inline]
    pub(crate) fn last(self) -> u32 {
        self.hours.ilog2() * 3600 + self.minutes.ilog2() * 60 + self.seconds.ilog2()
    }

    /// The earliest time of the set at or after this second of the day.
    #[inline]
    pub(crate) fn at_or_after(self, second_of_day: u32) -> Option<u32> {
        let (hour, minute, second) = split(second_of_day);
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1 {
                let seconds = self.seconds >> second;
                if seconds != 0 {
                    return Some(second_of_day + seconds.trailing_zeros());
                }
            }
            let minutes = self.minutes & (u64::MAX << (minute + 1));
            if minutes != 0 {
                return Some(hour * 3600 + minutes.trailing_zeros() * 60 + self.seconds.trailing_zeros());
            }
        }
        let hours = self.hours & (u32::MAX << (hour + 1));
        if hours == 0 {
            return None;
        }
        Some(TimeOfDay { hours, ..self }.first())
    }

    /// The latest time of the set at or before this second of the day.
    #[inline]
    pub(crate) fn at_or_before(self, second_of_day: u32) -> Option<u32> {
        let (hour, minute, second) = split(second_of_day);
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1 {
                let seconds = self.seconds & low_bits(second + 1);
                if seconds != 0 {
                    return Some(hour * 3600 + minute * 60 + seconds.ilog2());
                }
            }
            let minutes = self.minutes & low_bits(minute);
            if minutes != 0 {
                return Some(hour * 3600 + minutes.ilog2() * 60 + self.seconds.ilog2());
            }
        }
        let hours = self.hours & (low_bits(hour) as u32);
        if hours == 0 {
            return None;
        }
        Some(TimeOfDay { hours, ..self }.last())
    }
}

#[inline]
fn split(second_of_day: u32) -> (u32, u32, u32) {
    debug_assert!(second_of_day < 86_400);
    (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60)
}

#[inline]
fn low_bits(count: u32) -> u64 {
    (1 << count) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_agree_with_a_plain_scan() {
        let sets = [
            TimeOfDay::ALL,
            TimeOfDay { hours: 1 << 9 | 1 << 23, minutes: 1 << 30, seconds: 1 },
            TimeOfDay { hours: 1, minutes: 1 << 59 | 1, seconds: 1 << 59 | 1 << 7 },
            TimeOfDay { hours: ALL_HOURS, minutes: 0x111_1111_1111_1111 & ALL_SIXTY, seconds: 1 << 5 },
        ];
        for set in sets {
            let mut before = None;
            let mut expected_before = Vec::new();
            for second in 0..86_400 {
                if set.contains(second) {
                    before = Some(second);
                }
                expected_before.push(before);
            }
            let mut after = None;
            for second in (0..86_400).rev() {
                if set.contains(second) {
                    after = Some(second);
                }
                assert_eq!(set.at_or_after(second), after);
                assert_eq!(set.at_or_before(second), expected_before[second as usize]);
            }
            assert_eq!(Some(set.first()), set.at_or_after(0));
            assert_eq!(Some(set.last()), set.at_or_before(86_399));
        }
    }
}
