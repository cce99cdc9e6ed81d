//! The only source of chance: a small generator from a seed, so that a world can be made again anywhere.

/// A generator (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The same seed gives the same numbers.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Any number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    /// From `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.draw() % (high - low + 1) as u64) as i64
    }

    /// True in this many of a thousand cases.
    pub fn chance(&mut self, per_mille: u32) -> bool {
        self.draw() % 1_000 < u64::from(per_mille)
    }

    /// One of some items.
    pub fn pick<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[(self.draw() % items.len() as u64) as usize]
    }

    /// A generator of its own, so that one part of the world can draw more without changing the others.
    pub fn fork(&mut self) -> Random {
        Random(self.draw())
    }
}
