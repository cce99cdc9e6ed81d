//! Worlds with faults keep every promise, and seeds that once failed stay mended.

use punctual_sim::simulate;

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

/// One line a seed: the seed, and what once went wrong.
#[test]
fn seeds_that_once_failed_hold() {
    for line in include_str!("../seeds/once_failed.txt").lines() {
        let seed = line.split_whitespace().next().and_then(|word| word.parse().ok());
        holds(seed.unwrap_or_else(|| panic!("no seed in `{line}`")));
    }
}
