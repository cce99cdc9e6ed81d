//! The world around a schedule, without a real clock, network or database.
//!
//! [`bed`] is the world by hand, for scenarios that read as stories. [`world`] is the world from a seed: nodes that run the
//! engine's own shard, clocks, a store, a dispatcher and workers with faults, run by [`swarm`]'s knobs. The [`chronicle`]
//! keeps what was committed; [`checker`] and the naive [`oracle`] judge it.

pub mod bed;

pub mod swarm;
pub mod world;
pub mod workload;
pub mod store;
pub mod dispatcher;

pub mod chronicle;
pub mod story;
pub mod oracle;
pub mod checker;

pub mod random;

use checker::Violation;
use swarm::Knobs;
use world::{Met, World};

/// What one world was like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Worlds.
    pub worlds: u64,
    /// Transitions committed.
    pub commits: u64,
    /// Occurrences decided.
    pub occurrences: u64,
    /// Runs.
    pub runs: u64,
    /// Seconds that passed for all schedules together.
    pub schedule_seconds: u64,
    /// What is rare.
    pub met: Met,
}

impl Summary {
    /// Adds another world.
    pub fn add(&mut self, other: Summary) {
        self.worlds += other.worlds;
        self.commits += other.commits;
        self.occurrences += other.occurrences;
        self.runs += other.runs;
        self.schedule_seconds += other.schedule_seconds;
        self.met.add(other.met);
    }
}

/// Makes the world of a seed and lets it run.
pub fn simulate(seed: u64) -> Result<Summary, Violation> {
    let mut world = World::new(Knobs::draw(seed));
    let began = world.now;
    world.run()?;
    let schedules = world.schedules() as u64;
    Ok(Summary {
        worlds: 1,
        commits: world.commits,
        occurrences: checker::occurrences(&world),
        runs: world.dispatcher.begun,
        schedule_seconds: schedules * world.now.duration_since(began).as_secs() as u64,
        met: world.met,
    })
}
