//! Keys that this process drew and has not used: a run with such a key is new, without asking.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Blocks that are remembered, some seconds' worth under load; runs with keys of older ones are looked for before they are written.
const BLOCKS_MAX: usize = 256;

/// Keys of this process.
#[derive(Default)]
pub(crate) struct Fresh(Mutex<BTreeMap<i64, Block>>);

struct Block {
    /// One bit for each key that was used.
    used: Vec<u64>,
    count: i64,
    left: i64,
}

impl Fresh {
    /// A block was drawn.
    pub(crate) fn add(&self, first: i64, count: i64) {
        let mut blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let words = vec![0; usize::try_from(count / 64 + 1).unwrap_or(0)];
        blocks.insert(first, Block { used: words, count, left: count });
        if blocks.len() > BLOCKS_MAX {
            blocks.pop_first();
        }
    }

    /// Whether a key was never used; from now on it was.
    pub(crate) fn take(&self, key: i64) -> bool {
        let mut blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((first, block)) = blocks.range_mut(..=key).next_back() else { return false };
        let (first, offset) = (*first, key - *first);
        if offset >= block.count {
            return false;
        }
        let (word, bit) = (usize::try_from(offset / 64).unwrap_or(0), 1 << (offset % 64));
        let is_fresh = block.used[word] & bit == 0;
        block.used[word] |= bit;
        block.left -= i64::from(is_fresh);
        if block.left == 0 {
            blocks.remove(&first);
        }
        is_fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_fresh_once() {
        let fresh = Fresh::default();
        fresh.add(100, 70);
        assert!(!fresh.take(99) && !fresh.take(170), "not drawn here");
        assert!(fresh.take(169) && fresh.take(100) && fresh.take(164));
        assert!(!fresh.take(169) && !fresh.take(100));
        for key in 101..170 {
            fresh.take(key);
        }
        assert!(!fresh.take(130), "the block is used up");
    }
}
