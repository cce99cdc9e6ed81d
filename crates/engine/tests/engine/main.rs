//! The engine, from one shard on a bench with virtual time to a whole node on a real store.

mod bench;
mod cluster;
mod guest;
mod line;
mod node;
mod queue;
mod hands;
mod shard;
mod town;
