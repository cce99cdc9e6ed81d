//! How long a server asks us to wait.

use std::time::Duration;

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};
use jiff::Timestamp;
use jiff::fmt::rfc2822;

use crate::limits::RETRY_AFTER_MAX;

/// The wait that `Retry-After` asks for, in seconds or as a date, at most an hour.
pub(crate) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are a long wait too.
        let seconds = text.parse().unwrap_or(u64::MAX);
        return Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX));
    }
    let until = instant(text)?;
    // Measured by the clock that wrote it, if it says what time it has.
    let now = headers.get(DATE).and_then(|date| instant(date.to_str().ok()?)).unwrap_or(now);
    let wait = until.duration_since(now);
    Some(if wait.is_negative() { Duration::ZERO } else { wait.unsigned_abs().min(RETRY_AFTER_MAX) })
}

fn instant(text: &str) -> Option<Timestamp> {
    rfc2822::parse(text).ok().map(|zoned| zoned.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_waits() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let cases = [
            ("7", None, Some(7)),
            ("0", None, Some(0)),
            ("99999999999999999999999", None, Some(3_600)),
            ("7200", None, Some(3_600)),
            ("Sun, 15 Nov 2026 12:00:30 GMT", None, Some(30)),
            ("Sun, 15 Nov 2026 11:00:30 GMT", None, Some(0)),
            ("Sun, 15 Nov 2026 23:00:30 GMT", None, Some(3_600)),
            ("Sun, 15 Nov 2026 11:00:30 GMT", Some("Sun, 15 Nov 2026 11:00:00 GMT"), Some(30)),
            ("-5", None, None),
            ("soon", None, None),
            ("", None, None),
        ];
        for (text, date, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            if let Some(date) = date {
                headers.insert(DATE, date.parse().unwrap());
            }
            assert_eq!(retry_after(&headers, now), expected.map(Duration::from_secs), "{text}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
