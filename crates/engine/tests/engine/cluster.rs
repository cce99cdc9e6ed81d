//! Nodes that share one store: each drives its share, any of them serves anything, and none is missed when it is gone.

mod crossing;
mod handover;
mod lines;
mod looks;
mod relay;
mod runs;
mod shares;
mod verbs;
