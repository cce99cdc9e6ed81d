//! A day set answers like the plain list of its days.

use super::*;

/// A pattern from a question asked of each day.
fn pattern(years: u128, months: u16, holds: impl Fn(u8, u8, u8) -> bool) -> Pattern {
    Pattern::new(years, months, |len, first| {
        (1..=len).filter(|day| holds(len, first, *day)).fold(0, |mask, day| mask | 1 << day)
    })
}

fn patterns() -> Vec<Pattern> {
    let odd_years = (0..YEARS).filter(|year| year % 2 == 1).fold(0, |years, year| years | 1 << year);
    vec![
        Pattern::all(),
        pattern(ALL_YEARS, 1 << 1, |_, _, day| day == 29),
        pattern(ALL_YEARS, 1 << 1, |_, first, day| day == 29 && (first + day - 1) % 7 == 1),
        pattern(odd_years, ALL_MONTHS, |len, first, day| len - day < 7 && (first + day - 1) % 7 == 5),
        pattern(ALL_YEARS, 0b1010_1010_1010, |_, _, day| day == 31),
        pattern(1 << 100, 1 << 11, |_, _, day| day == 31),
        pattern(1, 1, |_, _, day| day == 1),
        pattern(ALL_YEARS, 1 << 3, |_, _, day| day == 31),
        pattern(ALL_YEARS, ALL_MONTHS, |_, first, day| (1..6).contains(&((first + day - 1) % 7))),
    ]
}

fn days_of(set: &DaySet) -> Vec<i32> {
    (DAY_MIN..=DAY_MAX).filter(|day| set.contains(*day, CivilDay::of(*day))).collect()
}

#[test]
fn neighbours_agree_with_a_plain_scan() {
    for pattern in patterns() {
        let as_pattern = DaySet::Pattern(pattern);
        let as_list = DaySet::listed(as_pattern.to_bits());
        assert_eq!(days_of(&as_pattern), days_of(&as_list));
        for set in [&as_pattern, &as_list] {
            assert_eq!(set.is_empty(), days_of(set).is_empty());
            let mut before = None;
            for day in DAY_MIN..=DAY_MAX {
                if set.contains(day, CivilDay::of(day)) {
                    before = Some(day);
                }
                assert_eq!(set.at_or_before(day), before);
            }
            let mut after = None;
            for day in (DAY_MIN..=DAY_MAX).rev() {
                if set.contains(day, CivilDay::of(day)) {
                    after = Some(day);
                }
                assert_eq!(set.at_or_after(day), after);
            }
        }
    }
}

#[test]
fn set_arithmetic_agrees_with_lists_of_days() {
    let sets: Vec<DaySet> = patterns()
        .into_iter()
        .map(DaySet::Pattern)
        .chain([DaySet::listed(DaySet::Pattern(patterns().swap_remove(3)).to_bits())])
        .collect();
    for a in &sets {
        for b in &sets {
            let (in_a, in_b) = (days_of(a), days_of(b));
            let both: Vec<i32> = in_a.iter().copied().filter(|day| in_b.binary_search(day).is_ok()).collect();
            let only_a: Vec<i32> =
                in_a.iter().copied().filter(|day| in_b.binary_search(day).is_err()).collect();
            let mut either = [in_a.clone(), in_b].concat();
            either.sort_unstable();
            either.dedup();
            assert_eq!(days_of(&a.intersect(b)), both);
            assert_eq!(days_of(&a.subtract(b)), only_a);
            assert_eq!(days_of(&a.union(b)), either);
        }
    }
}

#[test]
fn a_pattern_knows_weekdays() {
    let fridays = DaySet::Pattern(pattern(ALL_YEARS, ALL_MONTHS, |_, first, day| (first + day - 1) % 7 == 5));
    let friday = |day: &i32| crate::civil::date_of_day(*day).weekday() == jiff::civil::Weekday::Friday;
    assert!(days_of(&fridays).iter().all(friday));
    assert_eq!(days_of(&fridays).len(), 5270);
}
