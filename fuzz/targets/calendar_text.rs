//! Any text in the fields of a calendar text, as a source and as an exclusion.
#![no_main]

use libfuzzer_sys::fuzz_target;
use punctual_fuzz::ask;
use punctual_spec::{CalendarText, Environment, Spec};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut fields = text.split('\n').map(str::to_owned);
    let mut field = || fields.next().unwrap_or_default();
    let mut calendar = CalendarText::default();
    calendar.second = field();
    calendar.minute = field();
    calendar.hour = field();
    calendar.day_of_month = field();
    calendar.month = field();
    calendar.day_of_week = field();
    calendar.year = field();
    calendar.comment = field();
    ask(&Spec::new().calendar_text(calendar.clone()), &Environment::default());
    ask(&Spec::new().cron("* * * * * * *").exclude_text(calendar), &Environment::default());
});
