//! Keys inside a database, and the numbers that every write is compared by.

use std::fmt;
use std::sync::Arc;

use punctual_core::ScheduleKey;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $inner:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// One incarnation of a schedule; a schedule that is created again gets another.
    TreeKey,
    i64
);
number!(
    /// One run; later runs have higher keys, roughly.
    RunKey,
    i64
);
number!(
    /// One queue.
    QueueKey,
    i64
);
number!(
    /// A slice of the schedules.
    ShardId,
    u32
);
number!(
    /// Counts transitions of one stored schedule; compared on every commit.
    Sequence,
    u64
);
number!(
    /// Counts changes of a shard's owner; a writer with an old one is refused.
    Epoch,
    u64
);

number!(
    /// The node that looks after a run: its leases, its deadlines. Each process that shares a database draws one, and none is
    /// drawn twice; 0 where nobody shares.
    Keeper,
    i64
);

/// One running server process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub Arc<str>);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The shard that a schedule belongs to, for ever: a hash of its name.
pub fn shard_of(key: &ScheduleKey, shards: u32) -> ShardId {
    // FNV-1a: fixed for all time and all releases, since it decides where stored schedules are looked for.
    let bytes = key.namespace.bytes().chain([0]).chain(key.schedule.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    ShardId((hash % u64::from(shards.max(1))) as u32)
}
