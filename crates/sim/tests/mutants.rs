//! The checkers bite: every deliberate fault is found within a bounded number of worlds.

use std::panic::{AssertUnwindSafe, catch_unwind};

use punctual_core::{Mutant, activate};
use punctual_sim::simulate;

/// A fault that hides longer than this is not covered.
const WORLDS_MAX: u64 = 200;

/// The first seed whose world breaks a promise, or an assertion of core itself.
fn first_failure(mutant: Option<Mutant>) -> Option<u64> {
    (1..=WORLDS_MAX).find(|seed| {
        activate(mutant);
        let outcome = catch_unwind(AssertUnwindSafe(|| simulate(*seed)));
        activate(None);
        !matches!(outcome, Ok(Ok(_)))
    })
}

#[test]
fn every_fault_is_found() {
    std::panic::set_hook(Box::new(|_| {})); // faults that panic are expected here
    let found: Vec<(Mutant, Option<u64>)> =
        Mutant::ALL.iter().map(|mutant| (*mutant, first_failure(Some(*mutant)))).collect();
    drop(std::panic::take_hook());
    for (mutant, seed) in &found {
        eprintln!("{mutant:?}: {}", seed.map_or("not found".into(), |seed| format!("seed {seed}")));
    }
    let hidden: Vec<Mutant> =
        found.iter().filter(|(_, seed)| seed.is_none()).map(|(mutant, _)| *mutant).collect();
    assert!(hidden.is_empty(), "not found within {WORLDS_MAX} worlds: {hidden:?}");
}
