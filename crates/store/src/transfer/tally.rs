//! Rows counted and summed up, in whatever order they come: two sides with the same tally have the same rows.

use std::fmt;

/// How many rows, and the sum of what each is hashed to. It guards against mistakes, not against an enemy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub rows: u64,
    /// The sum of their hashes.
    pub sum: u128,
}

impl Tally {
    /// Counts a row.
    pub fn add(&mut self, row: &[u8]) {
        self.rows += 1;
        let halves = [
            hash(row, 0xcbf2_9ce4_8422_2325, 0x0000_0100_0000_01b3),
            hash(row, 0x6c62_272e_07bb_0142, 0xd6e8_feb8_6659_fd93),
        ];
        self.sum = self.sum.wrapping_add(u128::from(halves[0]) << 64 | u128::from(halves[1]));
    }
}

/// Eight bytes at a time; the length is part of it, and every bit of the input moves every bit of the answer.
fn hash(row: &[u8], seed: u64, factor: u64) -> u64 {
    let (words, rest) = row.as_chunks();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]).map(|word| u64::from_le_bytes(*word));
    let hash = words.fold(seed ^ row.len() as u64, |hash, word| mixed((hash ^ word).wrapping_mul(factor)));
    mixed(hash)
}

fn mixed(mut number: u64) -> u64 {
    number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows with the sum {:032x}", self.rows, self.sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[&[u8]]) -> Tally {
        let mut tally = Tally::default();
        rows.iter().for_each(|row| tally.add(row));
        tally
    }

    #[test]
    fn the_order_does_not_matter_and_everything_else_does() {
        let first: &[u8] = b"a row of more than eight bytes";
        assert_eq!(of(&[first, b"b"]), of(&[b"b", first]));
        let mut seen = vec![of(&[]), of(&[b""]), of(&[b"\0"]), of(&[b"\0\0"]), of(&[b"", b""])];
        for place in 0..first.len() {
            let mut row = first.to_vec();
            row[place] ^= 1;
            seen.push(of(&[&row]));
        }
        let all = seen.len();
        seen.sort_by_key(|tally| (tally.rows, tally.sum));
        seen.dedup();
        assert_eq!(seen.len(), all);
    }
}
