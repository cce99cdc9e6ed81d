//! Any text as a duration, alone and behind `@every`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use punctual_fuzz::ask;
use punctual_spec::{Environment, Spec, parse_duration};

fuzz_target!(|text: &str| {
    if let Err(error) = parse_duration(text) {
        assert!(!error.report().is_empty());
    }
    ask(&Spec::new().cron(format!("@every {text}")), &Environment::default());
});
