//! What must hold in every world. Each check names the promise that it guards.

use std::collections::BTreeMap;
use std::fmt;

use jiff::SignedDuration;
use punctual_core::{Lifecycle, NotStarted, Origin, OverlapPolicy, Phase, StartId, Verdict};

use crate::oracle::Oracle;
use crate::store::Stored;
use crate::workload::Order;
use crate::world::World;

/// A promise that was broken, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The promise, by its name.
    pub promise: &'static str,
    /// What was seen.
    pub seen: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.seen)
    }
}

fn broken(promise: &'static str, seen: impl Into<String>) -> Result<(), Violation> {
    Err(Violation { promise, seen: seen.into() })
}

/// Policies hold under faults: as a run truly begins, no more than allowed are truly in progress beside it.
pub fn check_run_began(world: &World, schedule: usize, start: StartId) -> Result<(), Violation> {
    let description = world.tree(schedule).describe(&world.limits);
    let overlap_of = |id: StartId| {
        description.starts.in_progress.iter().find(|start| start.id == id).map(|start| start.overlap)
    };
    if overlap_of(start) == Some(OverlapPolicy::AllowAll) {
        return Ok(());
    }
    let running = world.dispatcher.runs(schedule).filter(|(_, run)| run.ended.is_none());
    let exclusive =
        running.filter(|(id, _)| overlap_of(*id).is_some_and(|overlap| overlap != OverlapPolicy::AllowAll));
    let (count, most) = (exclusive.count(), world.store.schedules[schedule].concurrency_max as usize);
    if count > most {
        return broken(
            "policies hold under faults",
            format!("{count} runs in progress as {start} begins, at most {most} may be"),
        );
    }
    Ok(())
}

/// Repeating is harmless: a request is obeyed once, however often it arrives.
pub fn check_obeyed_once(stored: &mut Stored, order: &Order) -> Result<(), Violation> {
    if !stored.obeyed.insert(order.request().clone()) {
        return broken("repeating is harmless", format!("{order:?} was obeyed twice"));
    }
    Ok(())
}

/// After the faults, when all is quiet: nothing doubled, nothing silent, nothing stuck, and the oracle agrees.
pub fn check_quiet(world: &World) -> Result<(), Violation> {
    for schedule in 0..world.store.schedules.len() {
        let verdicts = ledger(world, schedule)?;
        check_runs(world, schedule, &verdicts)?;
        check_counters(world, schedule)?;
        check_oracle(world, schedule, &verdicts)?;
        check_alive(world, schedule)?;
    }
    Ok(())
}

/// Nothing silent, nothing twice: the ledger, one occurrence at a time.
fn ledger(world: &World, schedule: usize) -> Result<BTreeMap<StartId, Verdict>, Violation> {
    let mut verdicts = BTreeMap::new();
    for (entry, definition) in &world.store.schedules[schedule].ledger {
        let single = entry.from == entry.through;
        let before = entry.from - SignedDuration::from_nanos(1);
        let range =
            definition.compiled().iterate(before, entry.through).map(|occurrence| occurrence.nominal_time);
        let times: Vec<_> = if single { vec![entry.from] } else { range.collect() };
        if !entry.at_least && times.len() as u64 != entry.count {
            broken(
                "nothing silent",
                format!("an entry counts {}, its range holds {}", entry.count, times.len()),
            )?;
        }
        for time in times {
            let id = StartId::new(time, entry.origin);
            if let Some(before) = verdicts.insert(id, entry.verdict) {
                broken("exactly one verdict", format!("{id} has {before:?} and then {:?}", entry.verdict))?;
            }
        }
    }
    Ok(verdicts)
}

/// Exactly one start: a run for every start that the ledger knows, and no other.
fn check_runs(
    world: &World,
    schedule: usize,
    verdicts: &BTreeMap<StartId, Verdict>,
) -> Result<(), Violation> {
    let started: Vec<StartId> =
        verdicts.iter().filter(|(_, verdict)| **verdict == Verdict::Started).map(|(id, _)| *id).collect();
    let on_its_way: Vec<StartId> = world
        .tree(schedule)
        .describe(&world.limits)
        .starts
        .in_progress
        .iter()
        .map(|start| start.id)
        .collect();
    for (start, _) in world.dispatcher.runs(schedule) {
        if started.binary_search(&start).is_err() && !on_its_way.contains(&start) {
            broken(
                "exactly one start",
                format!("{start} ran, but its verdict is {:?}", verdicts.get(&start)),
            )?;
        }
    }
    for start in started {
        if !world.dispatcher.knows(schedule, start) {
            broken("exactly one start", format!("{start} is said to have started, but never ran"))?;
        }
    }
    Ok(())
}

/// Counters and ledger cannot disagree.
fn check_counters(world: &World, schedule: usize) -> Result<(), Violation> {
    let counters = world.tree(schedule).describe(&world.limits).counters;
    let counted = [
        counters.started,
        counters.skipped,
        counters.missed,
        counters.dropped,
        counters.paused,
        counters.exhausted,
        counters.superseded,
    ];
    let mut written = [0; 7];
    for (entry, _) in &world.store.schedules[schedule].ledger {
        let place = match entry.verdict {
            Verdict::Started => 0,
            Verdict::NotStarted(NotStarted::Skipped(_)) => 1,
            Verdict::NotStarted(NotStarted::Missed(_)) => 2,
            Verdict::NotStarted(NotStarted::Dropped) => 3,
            Verdict::NotStarted(NotStarted::Paused) => 4,
            Verdict::NotStarted(NotStarted::Exhausted) => 5,
            Verdict::NotStarted(NotStarted::Superseded(_)) => 6,
        };
        written[place] += entry.count;
    }
    if counted != written {
        broken("counters agree with the ledger", format!("counted {counted:?}, written {written:?}"))?;
    }
    Ok(())
}

/// The naive scheduler, told the same story, comes to the same end.
fn check_oracle(
    world: &World,
    schedule: usize,
    verdicts: &BTreeMap<StartId, Verdict>,
) -> Result<(), Violation> {
    let stored = &world.store.schedules[schedule];
    let mut oracle = Oracle::new(
        stored.first_definition.clone(),
        stored.created_at,
        stored.remaining_actions,
        world.limits.clone(),
    );
    for (now, event) in &stored.log {
        oracle.apply(*now, event.clone());
    }
    let promise = "the oracle agrees";
    for (id, expected) in oracle.verdicts() {
        if verdicts.get(id) != Some(expected) {
            broken(promise, format!("{id} should be {expected:?}, is {:?}", verdicts.get(id)))?;
        }
    }
    if let Some((id, found)) = verdicts.iter().find(|(id, _)| !oracle.verdicts().contains_key(id)) {
        broken(promise, format!("{id} should be undecided, is {found:?}"))?;
    }
    let description = stored.tree.describe(&world.limits);
    let ids =
        |starts: &[punctual_core::BufferedStart]| starts.iter().map(|start| start.id).collect::<Vec<_>>();
    if ids(&description.starts.buffered) != oracle.waiting() {
        broken(
            promise,
            format!("{:?} should wait, {:?} do", oracle.waiting(), ids(&description.starts.buffered)),
        )?;
    }
    if ids(&description.starts.in_progress) != oracle.in_progress() {
        let found = ids(&description.starts.in_progress);
        broken(promise, format!("{:?} should be in progress, {found:?} are", oracle.in_progress()))?;
    }
    if description.pause.is_some() != oracle.is_paused()
        || description.remaining_actions != oracle.remaining()
    {
        broken(
            promise,
            format!("paused {}, remaining {:?} expected", oracle.is_paused(), oracle.remaining()),
        )?;
    }
    Ok(())
}

/// Alive: nothing is due and undecided, and nothing in progress is a ghost.
fn check_alive(world: &World, schedule: usize) -> Result<(), Violation> {
    let tree = world.tree(schedule);
    let description = tree.describe(&world.limits);
    let patience = SignedDuration::from_mins(2);
    let promise = "nothing is stuck";
    if description.lifecycle == Lifecycle::Open
        && let Some(timer) = description.timer.filter(|timer| *timer + patience < world.now)
    {
        broken(promise, format!("a timer of {timer} was not heeded by {}", world.now))?;
    }
    for start in &description.starts.in_progress {
        let ghost = match (start.phase, world.dispatcher.ended(schedule, start.id)) {
            (_, Some(ended)) => ended.at + world.limits.reconcile_after + patience < world.now,
            (Phase::Ready { sent_at: Some(sent), .. }, None) => {
                sent + world.limits.reconcile_after + patience < world.now
            }
            (Phase::Doubtful { ask_at, .. }, None) => ask_at + patience < world.now,
            _ => false,
        };
        if ghost && description.lifecycle == Lifecycle::Open {
            broken(promise, format!("{} is still {:?}", start.id, start.phase))?;
        }
    }
    let busy = !description.starts.in_progress.is_empty();
    if !busy && description.lifecycle == Lifecycle::Open && !description.starts.buffered.is_empty() {
        broken(promise, format!("{} starts wait for nobody", description.starts.buffered.len()))?;
    }
    Ok(())
}

/// How many occurrences of the spec a world has decided.
pub fn occurrences(world: &World) -> u64 {
    let entries = world.store.schedules.iter().flat_map(|stored| &stored.ledger);
    entries.filter(|(entry, _)| entry.origin == Origin::Spec).map(|(entry, _)| entry.count).sum()
}
