//! A structured spec drawn from the bytes: numbers of all kinds in all places, valid or not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use punctual_fuzz::{Bytes, ask};
use punctual_spec::Environment;

fuzz_target!(|data: &[u8]| {
    let spec = Bytes::new(data).spec();
    ask(&spec, &Environment::default().with_seed("fuzz"));
});
