//! Lists, ordinals, runs and durations in words.

use crate::field::{MONTH_NAMES, WEEKDAY_NAMES};

/// "a", "a and b", "a, b and c".
pub(crate) fn and(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<String> = items.into_iter().collect();
    match &items[..] {
        [] => String::new(),
        [one] => one.clone(),
        [many @ .., last] => format!("{} and {last}", many.join(", ")),
    }
}

pub(super) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// "1st", "22nd", "13th".
pub(super) fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

pub(super) fn weekday_name(weekday: u32) -> String {
    capitalised(WEEKDAY_NAMES[weekday as usize % 7])
}

pub(super) fn month_name(month: u32) -> String {
    capitalised(MONTH_NAMES[(month as usize + 11) % 12])
}

/// The whole length of time, in as few units as say it exactly.
pub(crate) fn duration(seconds: i64) -> String {
    let count = |number: i64, unit: &str| format!("{number} {unit}{}", if number == 1 { "" } else { "s" });
    for (unit, size) in [("day", 86_400), ("hour", 3_600), ("minute", 60)] {
        if seconds % size == 0 && seconds >= size {
            return count(seconds / size, unit);
        }
    }
    if seconds < 600 {
        return count(seconds, "second");
    }
    let mut parts = Vec::new();
    let mut left = seconds;
    for (unit, size) in [("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)] {
        if left >= size {
            parts.push(count(left / size, unit));
            left %= size;
        }
    }
    and(parts)
}

/// Values in order, as runs of neighbours: 1, 2, 3, 7 gives (1, 3) and (7, 7).
pub(super) fn runs(values: &[u32]) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for value in values {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == *value => *end = *value,
            _ => runs.push((*value, *value)),
        }
    }
    runs
}

/// Runs of three and more as "x through y", the rest one by one.
pub(super) fn spans(values: &[u32], name: impl Fn(u32) -> String) -> String {
    and(runs(values).into_iter().flat_map(|(start, end)| match end - start {
        0 => vec![name(start)],
        1 => vec![name(start), name(end)],
        _ => vec![format!("{} through {}", name(start), name(end))],
    }))
}

/// The same distance between all of them.
pub(super) fn stride(values: &[u32]) -> Option<u32> {
    let [first, second, ..] = values else { return None };
    values.windows(2).all(|pair| pair[1] - pair[0] == second - first).then_some(second - first)
}

/// The step of values that go on as far as the field does, if there is one.
pub(super) fn step(values: &[u32], max: u32) -> Option<u32> {
    stride(values).filter(|step| *step > 1 && values[values.len() - 1] + step > max)
}
