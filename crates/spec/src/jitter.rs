//! Jitter: how much later than its nominal time an occurrence is due, drawn from seed and nominal time.
//!
//! Bit for bit what Temporal computes, so that a schedule keeps its due times when it moves here.

use crate::limits::SEED_BYTES_MAX;

/// Seconds from 0001-01-01 to the epoch.
const YEAR_ONE: i64 = 62_135_596_800;
const HEAD_BYTES: usize = 15;

/// Milliseconds to add to a nominal second: below `bound_ms`, and always the same.
pub(crate) fn offset_ms(seed: &str, nominal: i64, bound_ms: u64) -> u64 {
    if bound_ms == 0 {
        return 0;
    }
    let mut buffer = [0; HEAD_BYTES + SEED_BYTES_MAX];
    let input = hash_input(&mut buffer, seed, nominal);
    let hash = u64::from(farmhash::fingerprint32(input));
    (hash * bound_ms.min(u64::from(u32::MAX))) >> 32
}

/// A marker, the nominal time as seconds since year one and nanoseconds, another marker, then the seed.
fn hash_input<'b>(buffer: &'b mut [u8; HEAD_BYTES + SEED_BYTES_MAX], seed: &str, nominal: i64) -> &'b [u8] {
    buffer[0] = 1;
    buffer[1..9].copy_from_slice(&(nominal + YEAR_ONE).to_be_bytes());
    buffer[13..15].copy_from_slice(&[0xff, 0xff]);
    let end = HEAD_BYTES + seed.len();
    buffer[HEAD_BYTES..end].copy_from_slice(seed.as_bytes());
    &buffer[..end]
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn cases(kind: &str) -> Vec<Value> {
        let all: Vec<Value> =
            serde_json::from_str(include_str!("../tests/cases/temporal-spec-cases.json")).unwrap();
        all.into_iter().filter(|case| case["kind"] == kind).collect()
    }

    #[test]
    fn the_hash_gives_the_published_values() {
        let cases = cases("fingerprint32");
        assert_eq!(cases.len(), 4);
        for case in cases {
            let hash = farmhash::fingerprint32(case["input"].as_str().unwrap().as_bytes());
            assert_eq!(format!("{hash:08x}"), case["expectHex"].as_str().unwrap());
        }
    }

    #[test]
    fn the_hashed_bytes_and_the_offset_are_as_published() {
        let cases = cases("jitterHashInput");
        assert_eq!(cases.len(), 1);
        for case in cases {
            let seed = case["seed"].as_str().unwrap();
            let nominal: jiff::Timestamp = case["nominal"].as_str().unwrap().parse().unwrap();
            let mut buffer = [0; HEAD_BYTES + SEED_BYTES_MAX];
            let input = hash_input(&mut buffer, seed, nominal.as_second());
            let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, case["expectHex"].as_str().unwrap());
            let offset = offset_ms(seed, nominal.as_second(), case["maxJitterMillis"].as_u64().unwrap());
            assert_eq!(offset, case["expectJitterMillis"].as_u64().unwrap());
        }
    }
}
