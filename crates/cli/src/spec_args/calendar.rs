//! Calendars on the command line: `hour=9 minute=30 day_of_week=mon-fri`.

use anyhow::{Result, ensure};
use punctual_spec::CalendarText;

use crate::fault;

const HELP: &str =
    "the keys are second, minute, hour, day_of_month, month, day_of_week, year and comment, as in `hour=9`";

/// Reads the value of `--calendar`. A comment reaches to the end, so it comes last.
pub fn calendar(text: &str) -> Result<CalendarText> {
    let mut calendar = CalendarText::default();
    let mut seen = Vec::new();
    let mut rest = text.trim();
    ensure!(!rest.is_empty(), fault::new("--calendar is empty", HELP));
    while !rest.is_empty() {
        let word = rest.split_whitespace().next().unwrap_or(rest);
        let Some((key, value)) = word.split_once('=') else {
            return Err(fault::new(format!("--calendar has a word without `=`, found `{word}`"), HELP));
        };
        let Some(field) = field(&mut calendar, key) else {
            return Err(fault::new(format!("--calendar has an unknown key, found `{key}`"), HELP));
        };
        let value = if key == "comment" { &rest[key.len() + 1..] } else { value };
        let length = key.len() + 1 + value.len();
        *field = value.trim().to_owned();
        let name = key.to_ascii_lowercase().replace('_', "");
        ensure!(!seen.contains(&name), fault::new(format!("--calendar has the key `{key}` twice"), HELP));
        seen.push(name);
        rest = rest[length..].trim_start();
    }
    Ok(calendar)
}

fn field<'c>(calendar: &'c mut CalendarText, key: &str) -> Option<&'c mut String> {
    Some(match key {
        "second" => &mut calendar.second,
        "minute" => &mut calendar.minute,
        "hour" => &mut calendar.hour,
        "day_of_month" | "dayOfMonth" => &mut calendar.day_of_month,
        "month" => &mut calendar.month,
        "day_of_week" | "dayOfWeek" => &mut calendar.day_of_week,
        "year" => &mut calendar.year,
        "comment" => &mut calendar.comment,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_and_a_comment_are_read() {
        let read = calendar(" hour=9  minute=*/30 dayOfWeek=mon-fri day_of_month=1 comment=see a=b, please ")
            .unwrap();
        assert_eq!((read.hour.as_str(), read.minute.as_str()), ("9", "*/30"));
        assert_eq!((read.day_of_week.as_str(), read.day_of_month.as_str()), ("mon-fri", "1"));
        assert_eq!(read.comment, "see a=b, please");
    }

    #[test]
    fn faults_name_the_word() {
        for (text, message) in [
            ("", "--calendar is empty"),
            ("hour=9 10", "--calendar has a word without `=`, found `10`"),
            ("hours=9", "--calendar has an unknown key, found `hours`"),
            ("=9", "--calendar has an unknown key, found ``"),
            ("day_of_week=1 dayOfWeek=2", "--calendar has the key `dayOfWeek` twice"),
        ] {
            assert_eq!(calendar(text).unwrap_err().to_string(), message);
        }
    }
}
