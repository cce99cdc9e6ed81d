//! Who is there: the nodes that share a database.

use jiff::{SignedDuration, Timestamp};

use crate::Bytes;
use crate::key::{Keeper, NodeId};
use crate::lease::Lease;

/// A node tells that it is alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beat {
    /// Who.
    pub node: NodeId,
    /// The number under which it looks after runs.
    pub keeper: Keeper,
    /// When its process began.
    pub started_at: Timestamp,
    /// The release that it runs.
    pub version: String,
    /// How long it counts as alive without another word.
    pub ttl: SignedDuration,
    /// What it has to say about itself; nothing if that is what it said last. The store does not look into it.
    pub report: Option<Bytes>,
}

/// Everybody who is there, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    /// The moment, by the database's clock.
    pub now: Timestamp,
    /// The node that asked did not count as alive just before: others may have taken over what it looked after.
    pub was_over: bool,
    /// The nodes, by keeper; those too that were not heard of in time, until they are struck off.
    pub nodes: Vec<NodeSeen>,
    /// Who holds which shard, by shard; those too whose time is over. A shard that nobody holds is left out.
    pub leases: Vec<Lease>,
}

/// A node, as the roster has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSeen {
    /// Who.
    pub node: NodeId,
    /// The number under which it looks after runs.
    pub keeper: Keeper,
    /// When its process began.
    pub started_at: Timestamp,
    /// The release that it runs.
    pub version: String,
    /// Until when it counts as alive.
    pub expires_at: Timestamp,
    /// It is to give its shards to others, and take none.
    pub draining: bool,
}

/// Which live runs, by who looks after them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Kept {
    /// All.
    #[default]
    ByAnybody,
    /// Those of one node.
    By(Keeper),
    /// Those that none of these looks after.
    ByNoneOf(Vec<Keeper>),
}
