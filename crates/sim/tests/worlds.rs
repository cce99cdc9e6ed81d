//! Worlds with faults keep every promise, and seeds that once failed stay mended.

use punctual_sim::simulate;
use punctual_sim::swarm::Knobs;
use punctual_sim::world::World;

fn holds(seed: u64) {
    if let Err(violation) = simulate(seed) {
        panic!("{violation}\nrepeat with: cargo sim -- {seed}");
    }
}

#[test]
fn the_first_worlds_hold() {
    (1..=300).for_each(holds);
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
