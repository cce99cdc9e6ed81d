//! Memory that is about to be read, fetched for many schedules at once.
//!
//! A schedule is some twenty places in memory. Of a million schedules the one whose timer comes is in no cache, and the processor
//! waits for each place for as long as for a thousand instructions, one after another: that was more than half of what a start cost.
//! Places that do not depend on each other it fetches together. So a little of each part of the next schedules is read in
//! rounds before they are worked on: what one round reads says where the next one has to look.

use std::hint::black_box;

use jiff::Timestamp;
use punctual_core::ScheduleTree;
use punctual_store::TreeKey;

use super::Shard;
use super::held::Held;

/// Schedules of a shard that are fetched together: more than a processor can ask for at a time, and less than its caches hold.
pub(super) const TOGETHER: usize = 32;

/// Fetches what has work or is due in these shards.
pub(crate) fn fetch<'a>(shards: impl Iterator<Item = &'a Shard>, now: Timestamp) {
    let mut found = Vec::new();
    for shard in shards.filter(|shard| shard.has_room()) {
        let due = shard.timers.due(now).inspect(|tree| _ = black_box(shard.timers.contains(*tree)));
        shard.find(shard.ready.iter().copied().chain(due).take(TOGETHER), &mut found);
    }
    read(&found);
}

impl Shard {
    /// Fetches the next of those that are ready.
    pub(super) fn fetch_ready(&self) {
        let mut found = Vec::with_capacity(TOGETHER);
        self.find(self.ready.iter().copied().take(TOGETHER), &mut found);
        read(&found);
    }

    /// Fetches what is looked at when units of these trees are confirmed.
    pub(super) fn fetch_confirmed(&self, trees: impl Iterator<Item = TreeKey>) {
        let mut found = Vec::with_capacity(TOGETHER);
        self.find(trees.inspect(|tree| _ = black_box(self.timers.contains(*tree))), &mut found);
        black_box(found.iter().fold(0, |sum, held| sum ^ held.glance(0)));
    }

    fn find<'a>(&'a self, trees: impl Iterator<Item = TreeKey>, found: &mut Vec<&'a Held>) {
        found.extend(trees.filter_map(|tree| self.slots.get(&tree)?.held.as_deref()));
    }
}

fn read(found: &[&Held]) {
    for round in 0..ScheduleTree::GLANCES {
        black_box(found.iter().fold(0, |sum, held| sum ^ held.glance(round)));
    }
}
