//! Random specs from a seed, small enough that a failure can be read.
//!
//! `PUNCTUAL_TEST_SEED` picks another seed; every failing assertion prints the spec it failed on.

use punctual_spec::{Calendar, DayOfMonthTerm, DayOfWeekTerm, Fold, Gap, Interval, Range, Spec};

/// A small generator (xorshift), so that a run can be repeated anywhere.
pub struct Random(u64);

impl Random {
    pub fn new(stream: u64) -> Random {
        let seed: u64 = std::env::var("PUNCTUAL_TEST_SEED").map_or(1, |text| text.parse().unwrap());
        let mut random =
            Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ stream.wrapping_mul(0xd134_2543_de82_ef95) | 1);
        (0..8).for_each(|_| _ = random.next());
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() >> 11) as i64 % (high - low + 1)
    }

    pub fn chance(&mut self, percent: i64) -> bool {
        self.between(1, 100) <= percent
    }

    pub fn pick<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.between(0, items.len() as i64 - 1) as usize]
    }
}

/// How fine the times of a random spec are.
#[derive(Clone, Copy, PartialEq)]
pub enum Grain {
    /// Any second.
    Second,
    /// Quarters of an hour.
    Quarter,
}

fn ranges(random: &mut Random, min: i64, max: i64, all: i64) -> Vec<Range> {
    if random.chance(all) {
        return vec![Range::new(min as i32, max as i32, 1)];
    }
    (0..random.between(1, 3))
        .map(|_| {
            let start = random.between(min, max);
            let end = if random.chance(50) { start } else { random.between(start, max) };
            Range::new(start as i32, end as i32, random.between(1, 7) as i32)
        })
        .collect()
}

pub fn calendar(random: &mut Random, grain: Grain, years: (i64, i64)) -> Calendar {
    let mut calendar = Calendar::midnight();
    calendar.hour = ranges(random, 0, 23, 40);
    match grain {
        Grain::Second => {
            calendar.minute = ranges(random, 0, 59, 50);
            calendar.second = ranges(random, 0, 59, 20);
        }
        Grain::Quarter => {
            calendar.minute =
                (0..random.between(1, 2)).map(|_| Range::at(*random.pick(&[0, 15, 30, 45]))).collect();
        }
    }
    calendar.day_of_month = ranges(random, 1, 31, 60);
    calendar.month = ranges(random, 1, 12, 70);
    calendar.day_of_week = ranges(random, 0, 6, 60);
    if random.chance(20) {
        calendar.year = ranges(random, years.0, years.1, 10);
    }
    if random.chance(25) {
        calendar.day_of_month.clear();
        let term = match random.between(0, 4) {
            0 => DayOfMonthTerm::LastDay { before: random.between(0, 30) as u8 },
            1 => DayOfMonthTerm::NearestWeekday { day: random.between(1, 31) as u8 },
            2 => DayOfMonthTerm::LastWeekday,
            3 => DayOfMonthTerm::BusinessDay { nth: *random.pick(&[1, 2, 3, 10, 21, -1, -2, -20]) },
            _ => DayOfMonthTerm::NearestBusinessDay { day: random.between(1, 31) as u8 },
        };
        calendar.day_of_month_terms.push(term);
    } else if random.chance(20) {
        calendar.day_of_week.clear();
        let weekday = random.between(0, 6) as u8;
        let term = match random.chance(50) {
            true => DayOfWeekTerm::Nth { weekday, nth: random.between(1, 5) as u8 },
            false => DayOfWeekTerm::Last { weekday },
        };
        calendar.day_of_week_terms.push(term);
    }
    calendar
}

/// A spec with a little of everything; `around` is where its bounds, times and dates lie.
pub fn spec(random: &mut Random, grain: Grain, around: (i64, i64), years: (i64, i64)) -> Spec {
    let step = if grain == Grain::Second { 1 } else { 900 };
    let instant = |random: &mut Random| {
        let second = random.between(around.0, around.1).div_euclid(step) * step;
        jiff::Timestamp::from_second(second).unwrap()
    };
    let mut spec = Spec::new();
    for _ in 0..random.between(0, 3) {
        spec = spec.calendar(calendar(random, grain, years));
    }
    if random.chance(25) {
        let longest = *random.pick(&[90, 10_000, 400_000]);
        let every = random.between(1, longest) * step;
        let phase = random.between(0, every / step - 1) * step;
        let duration = jiff::SignedDuration::from_secs;
        spec = spec.interval(Interval::every(duration(every)).phase(duration(phase)));
    }
    for _ in 0..random.between(-3, 3) {
        spec = spec.at(instant(random));
    }
    for _ in 0..random.between(-2, 2) {
        let mut exclusion = calendar(random, grain, years);
        if random.chance(50) {
            (exclusion.hour, exclusion.minute) = (vec![Range::new(0, 23, 1)], vec![Range::new(0, 59, 1)]);
            exclusion.second = vec![Range::new(0, 59, 1)];
        }
        spec = spec.exclude(exclusion);
    }
    if random.chance(15) {
        let date = jiff::tz::TimeZone::UTC.to_datetime(instant(random)).date();
        spec = spec.exclude_date(date);
    }
    if random.chance(15) {
        spec = spec.start_time(instant(random));
    }
    if random.chance(15) {
        spec = spec.end_time(instant(random));
    }
    spec.gap(*random.pick(&[Gap::Skip, Gap::After])).fold(*random.pick(&[
        Fold::Both,
        Fold::First,
        Fold::Last,
    ]))
}
