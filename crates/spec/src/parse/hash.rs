//! `H`: a value drawn from the seed, so that a thousand schedules do not all start at the same minute.

use crate::field::FieldKind;

/// Draws values that depend on the seed and the field alone, on every machine and in every release.
#[derive(Clone, Copy)]
pub(crate) struct Hasher<'a> {
    seed: &'a str,
}

impl<'a> Hasher<'a> {
    pub(crate) fn new(seed: &'a str) -> Hasher<'a> {
        Hasher { seed }
    }

    /// A number from 0 up to, not including, `bound`.
    pub(crate) fn below(self, field: &FieldKind, bound: i32) -> i32 {
        let input = [b"H\0", field.key.as_bytes(), b"\0", self.seed.as_bytes()].concat();
        let hash = u64::from(farmhash::fingerprint32(&input));
        ((hash * bound as u64) >> 32) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::MINUTE;

    #[test]
    fn draws_stay_below_the_bound_and_spread_out() {
        let mut seen = [false; 60];
        for seed in 0..1000 {
            let seed = seed.to_string();
            let drawn = Hasher::new(&seed).below(&MINUTE, 60);
            assert_eq!(drawn, Hasher::new(&seed).below(&MINUTE, 60));
            seen[drawn as usize] = true;
        }
        assert!(seen.iter().all(|hit| *hit));
    }
}
