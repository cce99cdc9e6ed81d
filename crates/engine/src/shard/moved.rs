//! What others have written: the owner looks at it again, sooner rather than later.
//!
//! News of a guest's write may be late, and may overtake or be overtaken by the owner's own commits. So news never postpones
//! a timer: an early look at a tree is harmless, a late one is not.

use jiff::Timestamp;
use punctual_store::TreeKey;

use super::{Shard, Status};

impl Shard {
    /// A guest has written a tree. What is in memory may be old, and so may be what is on its way.
    pub(super) fn moved(&mut self, tree: TreeKey, due_time: Option<Timestamp>) {
        if self.role.is_guest() || self.quarantined.contains_key(&tree) {
            return;
        }
        if let Some(slot) = self.slots.get_mut(&tree) {
            if slot.status == Status::Idle && slot.pending.is_empty() {
                self.forget(tree);
            } else {
                slot.moved = true;
            }
        }
        if let Some(due_time) = due_time {
            self.timers.bring_forward(tree, due_time);
        }
    }

    /// News may have been missed: nothing in memory is to be trusted. Stored timers are compared afterwards.
    pub(super) fn missed_news(&mut self) {
        let trees: Vec<TreeKey> = self.slots.keys().copied().collect();
        for tree in trees {
            self.moved(tree, None);
        }
    }

    /// A tree has nothing on its way any more: it waits for its timer, or for its next piece of work.
    pub(super) fn rest(&mut self, now: Timestamp, tree: TreeKey, timer: Option<Timestamp>) {
        let Some(slot) = self.slots.get_mut(&tree) else { return };
        slot.status = Status::Idle;
        if slot.moved {
            // The timer may be older than what somebody else wrote: only a look at the stored tree can tell.
            self.forget(tree);
            return self.set_timer(tree, Some(now));
        }
        let closed =
            slot.held.as_ref().filter(|held| !held.tree.is_open()).map(|held| held.tree.key().clone());
        let (waits, guest) = (!slot.pending.is_empty(), self.role.is_guest());
        if let Some(key) = closed {
            // Another node may give the name to a new schedule.
            self.release_name(tree, &key);
        }
        self.set_timer(tree, timer);
        if waits {
            self.ready.push_back(tree);
        } else if guest {
            // Its owner will change it next.
            self.forget(tree);
        }
    }

    /// A guest wakes nobody.
    pub(super) fn set_timer(&mut self, tree: TreeKey, time: Option<Timestamp>) {
        if !self.role.is_guest() {
            self.timers.set(tree, time);
        }
    }

    /// Compares stored timers with those in memory, and sets what is missing: a schedule that nobody would have woken.
    /// Says how many were missing. One that is being worked on has none, and gets it when that is done. One that is stored with
    /// an earlier time than ours was written by somebody else, or by us since it was read: looking at it is harmless.
    pub fn recheck(&mut self, stored: &[(TreeKey, Option<Timestamp>)]) -> u64 {
        let mut missing = 0;
        for (tree, time) in stored {
            let busy = self.slots.get(tree).is_some_and(|slot| {
                !slot.pending.is_empty() || matches!(slot.status, Status::Loading | Status::Committing)
            });
            let Some(time) = time.filter(|_| !busy && !self.quarantined.contains_key(tree)) else { continue };
            if !self.timers.contains(*tree) {
                missing += 1;
            }
            if self.timers.bring_forward(*tree, time) && self.slots.contains_key(tree) {
                self.forget(*tree);
            }
        }
        missing
    }
}
