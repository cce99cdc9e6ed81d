//! How far away an instant is, in words: `in 3 days 4 h`.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Beyond this, hours say nothing.
const DAYS_WITH_HOURS_MAX: i64 = 60;
/// Beyond this, days say nothing.
const DAYS_MAX: i64 = 730;

/// The distance from one instant to another in at most two units, cut and not rounded.
pub fn text(from: Timestamp, to: Timestamp) -> String {
    let seconds = to.duration_since(from).as_secs();
    match seconds {
        0 => "now".to_owned(),
        1.. => format!("in {}", distance(seconds)),
        _ => format!("{} ago", distance(-seconds)),
    }
}

/// A distance in at most two units.
pub fn distance(seconds: i64) -> String {
    let days = seconds / DAY;
    match seconds {
        _ if days > DAYS_MAX => format!("{} years", days * 400 / 146_097),
        _ if days > DAYS_WITH_HOURS_MAX => format!("{days} days"),
        DAY.. => {
            let unit = if days == 1 { "day" } else { "days" };
            two((days, unit), (seconds % DAY / HOUR, "h"))
        }
        HOUR.. => two((seconds / HOUR, "h"), (seconds % HOUR / MINUTE, "min")),
        MINUTE.. => two((seconds / MINUTE, "min"), (seconds % MINUTE, "s")),
        _ => format!("{seconds} s"),
    }
}

fn two((large, large_unit): (i64, &str), (small, small_unit): (i64, &str)) -> String {
    match small {
        0 => format!("{large} {large_unit}"),
        _ => format!("{large} {large_unit} {small} {small_unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_units_are_enough() {
        let from = Timestamp::UNIX_EPOCH;
        for (seconds, expected) in [
            (0, "now"),
            (59, "in 59 s"),
            (60, "in 1 min"),
            (125, "in 2 min 5 s"),
            (HOUR + 5 * MINUTE + 59, "in 1 h 5 min"),
            (DAY, "in 1 day"),
            (3 * DAY + 4 * HOUR + 59 * MINUTE, "in 3 days 4 h"),
            (60 * DAY + HOUR, "in 60 days 1 h"),
            (61 * DAY + HOUR, "in 61 days"),
            (730 * DAY, "in 730 days"),
            (731 * DAY, "in 2 years"),
            (27_394 * DAY, "in 75 years"),
            (-90, "1 min 30 s ago"),
        ] {
            assert_eq!(text(from, Timestamp::from_second(seconds).unwrap()), expected);
        }
    }
}
