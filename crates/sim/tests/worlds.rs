//! Worlds with faults keep every promise, and seeds that once failed stay mended.

use punctual_sim::swarm::Knobs;
use punctual_sim::world::{Careless, Met, World};
use punctual_sim::{Summary, simulate};

fn holds(seed: u64) -> Summary {
    simulate(seed).unwrap_or_else(|violation| panic!("{violation}\nrepeat with: cargo sim -- {seed}"))
}

#[test]
fn the_first_worlds_hold_and_meet_what_is_rare() {
    let mut total = Summary::default();
    (1..=300).for_each(|seed| total.add(holds(seed)));
    let Met { taken, fenced, told, answered, refused, judged } = total.met;
    let met = [taken, fenced, answered, refused, told - answered - refused, judged];
    assert!(met.iter().all(|count| *count > 10), "worlds are too kind: {:?}", total.met);
}

#[test]
fn the_same_seed_makes_the_same_world() {
    for seed in 1..=20 {
        assert_eq!(simulate(seed), simulate(seed));
    }
}

/// No promise rests on a lease: a store that lets every node believe to be the owner keeps them all the same.
#[test]
fn worlds_hold_without_fencing() {
    for seed in 1..=200 {
        let mut world = World::new(Knobs::draw(seed));
        world.store.trusts_owners = true;
        world.run().unwrap_or_else(|violation| panic!("{violation} (seed {seed}, without fencing)"));
    }
}

/// Nor does a lease keep anybody out: a store that gives a shard to whoever asks for it keeps every promise.
#[test]
fn worlds_hold_though_shards_are_seized() {
    for seed in 1..=100 {
        let mut world = World::new(Knobs::draw(seed));
        world.store.trusts_takers = true;
        world.run().unwrap_or_else(|violation| panic!("{violation} (seed {seed}, shards are seized)"));
    }
}

/// Who drives what is looked at: nodes that do not do their part are found, each by the promise that they break.
#[test]
fn careless_nodes_are_found() {
    let found = |careless: Careless, promise: &str| {
        let breaks = |seed: u64| {
            let mut world = World::new(Knobs::draw(seed));
            world.careless = careless;
            world.run().is_err_and(|violation| violation.promise == promise)
        };
        assert!((1..=20).any(breaks), "{careless:?} was not found");
    };
    found(Careless { clings: true, ..Careless::default() }, "shares are fair");
    found(Careless { sits_still: true, ..Careless::default() }, "nothing stays without an owner");
    found(Careless { outlives_leases: true, ..Careless::default() }, "nothing has two owners for long");
}

/// What keeps them is the comparison on commit: without it worlds break soon, even though owners are fenced, since a write
/// that its owner gave up on may still arrive.
#[test]
fn worlds_break_without_comparison() {
    let breaks = |seed: &u64| {
        let mut world = World::new(Knobs::draw(*seed));
        world.store.trusts_readers = true;
        world.run().is_err()
    };
    assert!((1..=20).any(|seed| breaks(&seed)));
}

/// One line a seed: the seed, and what once went wrong.
#[test]
fn seeds_that_once_failed_hold() {
    for line in include_str!("../seeds/once_failed.txt").lines() {
        let seed = line.split_whitespace().next().and_then(|word| word.parse().ok());
        holds(seed.unwrap_or_else(|| panic!("no seed in `{line}`")));
    }
}
