//! Any text as a cron string, in each dialect: parse, compile, explain, lint, ask. No panic, no hang.
#![no_main]

use libfuzzer_sys::fuzz_target;
use punctual_fuzz::ask;
use punctual_spec::{Dialect, Environment, Spec};

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let dialect = [Dialect::Temporal, Dialect::Unix, Dialect::Quartz][*first as usize % 3];
    let spec = Spec::new().cron_in(dialect, text);
    ask(&spec, &Environment::default().with_seed("fuzz"));
});
