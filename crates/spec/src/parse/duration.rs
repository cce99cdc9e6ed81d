//! Durations as Go writes them, with days: `1h30m`, `90s`, `1.5d`.

use jiff::SignedDuration;

use crate::error::{Error, quoted};

/// Units and their nanoseconds; the longer spelling of a common start comes first.
const UNITS: [(&str, i128); 9] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

const NANOS_PER_SECOND: i128 = 1_000_000_000;
/// About 30,000 years: longer than anything can be scheduled.
const SECONDS_MAX: i128 = 1_000_000_000_000;

/// Reads a duration such as `90s`, `1h30m`, `2.5d`; a day is always 24 hours.
///
/// ```
/// use punctual_spec::parse_duration;
///
/// assert_eq!(parse_duration("1h30m")?.as_mins(), 90);
/// assert_eq!(parse_duration("1.5d")?.as_hours(), 36);
/// let error = parse_duration("5 minutes").unwrap_err();
/// assert_eq!(error.to_string(), "duration has no unit, found ` minutes`");
/// # Ok::<(), punctual_spec::Error>(())
/// ```
pub fn parse_duration(text: &str) -> Result<SignedDuration, Error> {
    read(text).map_err(|error| error.in_text(text))
}

fn read(text: &str) -> Result<SignedDuration, Error> {
    super::check_length(text)?;
    let (sign, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    };
    if rest == "0" {
        return Ok(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return Err(Error::syntax("duration is empty").at(0..text.len()));
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let at = super::offset_in(text, rest);
        let (number, after) =
            rest.split_at(rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count());
        let Some((unit, nanos)) = unit_of(after) else {
            let found = if after.is_empty() { "nothing".into() } else { quoted(after) };
            return Err(Error::syntax(format!("duration has no unit, found {found}"))
                .at(at + number.len()..text.len())
                .with_help("units are d, h, m, s, ms, us and ns, as in `1h30m`"));
        };
        let value = scaled(number, nanos).ok_or_else(|| {
            Error::syntax(format!("duration has no valid number, found {}", quoted(number)))
                .at(at..at + number.len().max(1))
        })?;
        total += value;
        rest = &after[unit.len()..];
    }
    let nanos = sign * total;
    let seconds = nanos / NANOS_PER_SECOND;
    if seconds.abs() > SECONDS_MAX {
        return Err(Error::value("duration is too long").at(0..text.len()));
    }
    Ok(SignedDuration::new(seconds as i64, (nanos % NANOS_PER_SECOND) as i32))
}

fn unit_of(text: &str) -> Option<(&'static str, i128)> {
    UNITS.into_iter().find(|(unit, _)| text.starts_with(unit) && !(*unit == "m" && text.starts_with("ms")))
}

/// A decimal number times a unit, cut to whole nanoseconds.
fn scaled(number: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') || whole.len() > 15 {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let digits = &fraction[..fraction.len().min(18)];
    let part: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    Some(whole * unit + part * unit / 10i128.pow(digits.len() as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_ones_are_read_to_the_nanosecond() {
        for (text, nanos) in [
            ("0", 0i128),
            ("1ns", 1),
            ("90s", 90_000_000_000),
            ("1m30.9s", 90_900_000_000),
            (".5s", 500_000_000),
            ("5.s", 5_000_000_000),
            ("1.5d", 129_600_000_000_000),
            ("1h2m3s4ms5us6ns", 3_723_004_005_006),
            ("-2h", -7_200_000_000_000),
            ("3µs", 3_000),
        ] {
            assert_eq!(parse_duration(text).unwrap().as_nanos(), nanos, "{text}");
        }
    }

    #[test]
    fn bad_ones_say_where() {
        for (text, span) in
            [("", 0..0), ("5", 1..1), ("h", 0..1), ("1h5", 3..3), ("1.2.3s", 0..5), ("1x", 1..2), ("-", 0..1)]
        {
            assert_eq!(parse_duration(text).unwrap_err().span(), Some(span), "{text}");
        }
        assert!(parse_duration("999999999999999d").unwrap_err().is_value());
        // Found in review: the absolute value of the least number of seconds does not exist.
        assert!(parse_duration("-106751991167300d55808s").unwrap_err().is_value());
        assert!(parse_duration("99999999999999999d").unwrap_err().is_syntax());
    }
}
