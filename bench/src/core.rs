//! One steady-state start in memory: generate, buffer, dispatch, record, complete; and what an idle schedule weighs.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, anyhow};
use jiff::{SignedDuration, Timestamp};
use punctual_core::{
    Action, Completion, Create, Definition, Dispatched, Effects, InitialPatch, Limits, Outcome, Policies,
    RequestId, Schedule, ScheduleKey, ScheduleTree, Target,
};
use punctual_spec::{Environment, Spec};

use crate::allocator::{allocated_bytes, allocations};

const CYCLES: u32 = 200_000;
const ROUNDS: usize = 7;
const CYCLES_GOAL: f64 = 500_000.0;
const IDLE_BYTES_GOAL: usize = 600;

pub fn run() -> Result<()> {
    crate::allocator::start_counting();
    println!(
        "{:<28}{:>14}{:>22}{:>20}{:>14}",
        "steady-state starts", "cycles/s", "min-max", "transitions/s", "allocs/cycle"
    );
    for (name, target, transitions) in [("on a queue", Target::Queue, 2), ("outside", Target::Outside, 3)] {
        let mut rates = Vec::new();
        let mut allocs = 0.0;
        for _ in 0..ROUNDS {
            let (rate, per_cycle) = round(target)?;
            rates.push(rate);
            allocs = per_cycle;
        }
        rates.sort_by(f64::total_cmp);
        let median = rates[ROUNDS / 2];
        let spread = format!("{:.0}k-{:.0}k", rates[0] / 1e3, rates[ROUNDS - 1] / 1e3);
        println!(
            "{name:<28}{:>13.0}k{spread:>22}{:>19.0}k{allocs:>14.1}",
            median / 1e3,
            median * f64::from(transitions) / 1e3
        );
    }
    println!("goal: {:.0}k cycles/s on one core\n", CYCLES_GOAL / 1e3);

    let fresh = idle_bytes(0)?;
    let settled = idle_bytes(20)?;
    println!(
        "bytes per idle tree besides its definition: {fresh} when new, {settled} after 20 runs; goal under {IDLE_BYTES_GOAL}"
    );
    Ok(())
}

fn tree(target: Target) -> Result<(ScheduleTree, Timestamp, Limits)> {
    let limits = Limits::default();
    let now: Timestamp = "2026-01-01T00:00:00Z".parse()?;
    let key = ScheduleKey::new("namespace", "schedule");
    let action = Action { target, run_id_base: "run".into(), payload: Arc::from(&b""[..]) };
    let schedule = Schedule {
        spec: Spec::new().cron("* * * * *"),
        action,
        policies: Policies::default(),
        attachment: Arc::from(&b""[..]),
    };
    let definition =
        Definition::new(schedule, &key, &Environment::default()).map_err(|error| anyhow!("{error}"))?;
    let create = Create {
        key,
        definition,
        remaining_actions: None,
        initial: InitialPatch::default(),
        request: RequestId::new("create"),
    };
    let created = ScheduleTree::create(now, &limits, &mut Effects::default(), create);
    let (tree, _) = created.map_err(|error| anyhow!("{error}"))?;
    Ok((tree, now, limits))
}

/// One start, from its due time to its end.
fn cycle(tree: &mut ScheduleTree, now: Timestamp, limits: &Limits, effects: &mut Effects) -> Result<()> {
    tree.wake(now, limits, effects);
    let dispatch = effects.dispatches.first().copied().ok_or_else(|| anyhow!("nothing was due at {now}"))?;
    if dispatch.target == Target::Outside {
        let started = vec![(dispatch.start, Dispatched::Started { started_at: now })];
        tree.apply(now, limits, effects, ScheduleTree::record_execute, started)
            .map_err(|error| anyhow!("{error}"))?;
    }
    let ended = now + SignedDuration::from_secs(1);
    let completion =
        Completion { start: dispatch.start, outcome: Outcome::Succeeded, payload: None, completed_at: ended };
    tree.apply(ended, limits, effects, ScheduleTree::complete, completion)
        .map_err(|error| anyhow!("{error}"))?;
    Ok(())
}

fn round(target: Target) -> Result<(f64, f64)> {
    let (mut tree, mut now, limits) = tree(target)?;
    let mut effects = Effects::default();
    let before = allocations();
    let start = Instant::now();
    for _ in 0..CYCLES {
        now += SignedDuration::from_secs(60);
        cycle(&mut tree, now, &limits, &mut effects)?;
        black_box(&effects);
    }
    let rate = f64::from(CYCLES) / start.elapsed().as_secs_f64();
    Ok((rate, (allocations() - before) as f64 / f64::from(CYCLES)))
}

/// What a tree holds on the heap and in itself, without the shared definition.
fn idle_bytes(runs: u32) -> Result<usize> {
    let (mut original, mut now, limits) = tree(Target::Queue)?;
    for _ in 0..runs {
        now += SignedDuration::from_secs(60);
        cycle(&mut original, now, &limits, &mut Effects::default())?;
    }
    // A clone shares the definition and has memory of its own for the rest.
    let before = allocated_bytes();
    let copy = original.clone();
    let heap = allocated_bytes() - before;
    black_box(&copy);
    Ok(heap as usize + size_of::<ScheduleTree>())
}
