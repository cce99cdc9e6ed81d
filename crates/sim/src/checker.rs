//! What must hold in every world. Each check names the promise that it guards.

mod owners;

use std::collections::BTreeMap;
use std::fmt;

use jiff::SignedDuration;
use punctual_core::{
    BufferedStart, Lifecycle, NotStarted, Origin, OverlapPolicy, Phase, StartId, Supersede, Verdict,
};
use punctual_engine::{Verb, Work};
use punctual_store::record::{decode_schedule, encode_schedule};
use punctual_store::{RunWrite, Store, TreeKey, TreeRef, Unit};

use crate::chronicle::{Sent, Tale, snapshot};
use crate::oracle::Oracle;
use crate::store::at_once;
use crate::world::World;
pub use owners::{Ownership, check_owners};

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

/// A broken promise.
pub(crate) fn broken(promise: &'static str, seen: impl Into<String>) -> Result<(), Violation> {
    Err(Violation { promise, seen: seen.into() })
}

/// Policies hold under faults: as a run truly begins, no more than allowed are truly in progress beside it.
pub fn check_run_began(world: &World, tree: TreeKey, start: StartId) -> Result<(), Violation> {
    let Some(tale) = world.chronicle.tales.get(&tree) else {
        return broken("exactly one start", format!("{start} began without a schedule"));
    };
    let starts = tale.snapshot().starts;
    let overlaps =
        |id: StartId| starts.iter().any(|start| start.id == id && start.overlap == OverlapPolicy::AllowAll);
    if overlaps(start) {
        return Ok(());
    }
    let running = starts.iter().filter(|start| world.dispatcher.is_running(tree, start.id));
    let exclusive = running.filter(|start| start.overlap != OverlapPolicy::AllowAll);
    let (count, most) = (exclusive.count(), tale.concurrency_max as usize);
    if count > most {
        return broken(
            "policies hold under faults",
            format!("{count} runs in progress as {start} begins, at most {most} may be"),
        );
    }
    Ok(())
}

/// Policies hold under faults: while a schedule is paused, nothing of its spec is called for the first time.
pub fn check_paused(tale: &Tale, sent: &Sent, unit: &Unit) -> Result<(), Violation> {
    let moves_pause = |(work, _): &(Work, _)| matches!(work, Work::Change(Verb::Pause(_) | Verb::Resume(_)));
    let Some(write) = unit.tree.as_ref().filter(|_| tale.view.paused) else { return Ok(()) };
    let before = tale.snapshot();
    let over = |pause: &punctual_core::PauseState| pause.until.is_some_and(|until| until <= sent.at);
    if before.pause.as_ref().is_none_or(over) || sent.done.iter().any(moves_pause) {
        return Ok(());
    }
    let called = |start: &BufferedStart| matches!(start.phase, Phase::Ready { sent_at: Some(_), .. });
    let called_before = |id: StartId| before.starts.iter().any(|start| start.id == id && called(start));
    let after = snapshot(&write.state).starts;
    let outside = after.iter().filter(|start| called(start) && !called_before(start.id));
    let queued = unit.runs.iter().filter_map(|write| match write {
        RunWrite::Insert(made) => made.origin.map(|(_, start)| start),
        _ => None,
    });
    let mut ids = outside.map(|start| start.id).chain(queued);
    match ids.find(|id| !id.is_manual()) {
        Some(id) => {
            broken("policies hold under faults", format!("{id} is started though the schedule is paused"))
        }
        None => Ok(()),
    }
}

/// After the faults, when all is quiet: nothing doubled, nothing silent, nothing stuck, and the oracle agrees.
pub fn check_quiet(world: &World) -> Result<(), Violation> {
    if !check_owners(world)? {
        broken("nothing is stuck", "nodes do not come to rest")?;
    }
    for (tree, tale) in &world.chronicle.tales {
        check_stored(world, *tree, tale)?;
        let verdicts = ledger(tale)?;
        check_runs(world, *tree, tale, &verdicts)?;
        check_counters(tale)?;
        check_oracle(world, tale, &verdicts)?;
        check_alive(world, *tree, tale)?;
    }
    let began = world.healed_at.unwrap_or(world.now);
    let mut left = at_once(world.store.live_runs(Default::default(), None, usize::MAX)).into_iter();
    match left.find(|run| run.made.created_at < began) {
        Some(run) => broken("nothing is stuck", format!("a run is left behind: {run:?}")),
        None => Ok(()),
    }
}

/// What was written is what is there.
fn check_stored(world: &World, tree: TreeKey, tale: &Tale) -> Result<(), Violation> {
    let found = world.store.load_now(&[TreeRef::Key(tree)]).pop().flatten();
    let same = match (&found, tale.retired) {
        (None, retired) => retired,
        (Some(_), true) => false,
        (Some(found), false) => {
            let definition = decode_schedule(&found.definition).ok();
            found.sequence.0 == tale.sequence
                && found.state == tale.state
                && definition.map(|schedule| encode_schedule(&schedule))
                    == Some(encode_schedule(tale.definition.schedule()))
                && tale.view.paused == tale.snapshot().pause.is_some()
        }
    };
    if same { Ok(()) } else { broken("what is written is kept", format!("{tree}: {found:?}")) }
}

/// Nothing silent, nothing twice: the ledger, one occurrence at a time.
fn ledger(tale: &Tale) -> Result<BTreeMap<StartId, Verdict>, Violation> {
    let mut verdicts = BTreeMap::new();
    for (entry, definition) in &tale.ledger {
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
    tree: TreeKey,
    tale: &Tale,
    verdicts: &BTreeMap<StartId, Verdict>,
) -> Result<(), Violation> {
    let on_its_way = tale.snapshot().starts;
    // A deleted schedule does not ask after its calls any more: what nobody answered for counts as not started.
    let unheard = Verdict::NotStarted(NotStarted::Superseded(Supersede::Delete));
    for (start, _) in world.dispatcher.runs(tree) {
        let verdict = verdicts.get(&start);
        let explained = verdict == Some(&Verdict::Started)
            || on_its_way.iter().any(|found| found.id == start)
            || (tale.retired && verdict == Some(&unheard));
        if !explained {
            broken("exactly one start", format!("{start} ran, but its verdict is {verdict:?}"))?;
        }
    }
    for (start, _) in verdicts.iter().filter(|(_, verdict)| **verdict == Verdict::Started) {
        if !world.dispatcher.knows(tree, *start) {
            broken("exactly one start", format!("{start} is said to have started, but never ran"))?;
        }
    }
    Ok(())
}

/// Counters and ledger cannot disagree.
fn check_counters(tale: &Tale) -> Result<(), Violation> {
    let counted = tale.snapshot().counters;
    let mut written = [0; 7];
    for (entry, _) in &tale.ledger {
        let place = match entry.verdict {
            Verdict::Started => 0,
            Verdict::NotStarted(NotStarted::Skipped(_)) => 1,
            Verdict::NotStarted(NotStarted::Missed(_)) => 2,
            Verdict::NotStarted(NotStarted::Dropped) => 3,
            Verdict::NotStarted(NotStarted::Paused) => 4,
            Verdict::NotStarted(NotStarted::Exhausted) => 5,
            Verdict::NotStarted(NotStarted::Superseded(_)) => 6,
        };
        written[place] += entry.count as u32;
    }
    if counted != written {
        broken("counters agree with the ledger", format!("counted {counted:?}, written {written:?}"))?;
    }
    Ok(())
}

/// The naive scheduler, told the same story, comes to the same end.
fn check_oracle(world: &World, tale: &Tale, verdicts: &BTreeMap<StartId, Verdict>) -> Result<(), Violation> {
    let mut oracle = Oracle::default();
    oracle.limits.clone_from(&world.limits);
    for (now, event) in &tale.log {
        oracle.apply(*now, event.clone());
    }
    let promise = "the oracle agrees";
    for (id, expected) in &oracle.verdicts {
        if verdicts.get(id) != Some(expected) {
            broken(promise, format!("{id} should be {expected:?}, is {:?}", verdicts.get(id)))?;
        }
    }
    if let Some((id, found)) = verdicts.iter().find(|(id, _)| !oracle.verdicts.contains_key(id)) {
        broken(promise, format!("{id} should be undecided, is {found:?}"))?;
    }
    let description = tale.tree().describe(&world.limits);
    let starts = [(false, &description.starts.buffered), (true, &description.starts.in_progress)];
    for (in_progress, found) in starts {
        let (expected, found) = (oracle.ids(in_progress), ids(found));
        if expected != found {
            let where_to = if in_progress { "in progress" } else { "waiting" };
            broken(promise, format!("{expected:?} should be {where_to}, {found:?} are"))?;
        }
    }
    let instant = SignedDuration::from_nanos(1);
    let left = oracle.backfills.iter().map(|(key, (backfill, ..))| (*key, backfill.from - instant));
    let found = description.backfills.iter().map(|backfill| (backfill.key, backfill.watermark));
    if !left.clone().eq(found.clone()) {
        let (left, found) = (left.collect::<Vec<_>>(), found.collect::<Vec<_>>());
        broken(promise, format!("backfills should be at {left:?}, are at {found:?}"))?;
    }
    let expected = (oracle.pause.is_some(), oracle.remaining);
    if (description.pause.is_some(), description.remaining_actions) != expected {
        broken(promise, format!("paused and remaining should be {expected:?}"))?;
    }
    Ok(())
}

fn ids(starts: &[BufferedStart]) -> Vec<StartId> {
    starts.iter().map(|start| start.id).collect()
}

/// Alive: nothing is due and undecided, and nothing in progress is a ghost.
fn check_alive(world: &World, tree: TreeKey, tale: &Tale) -> Result<(), Violation> {
    let description = tale.tree().describe(&world.limits);
    let patience = SignedDuration::from_mins(2);
    let promise = "nothing is stuck";
    if let Some(timer) = description.timer.filter(|timer| !tale.retired && *timer + patience < world.now) {
        broken(promise, format!("a timer of {timer} was not heeded by {}", world.now))?;
    }
    for start in &description.starts.in_progress {
        let ghost = match (start.phase, world.dispatcher.ended(tree, start.id)) {
            (_, Some(ended)) => ended.at + world.limits.reconcile_after + patience < world.now,
            (Phase::Ready { sent_at: Some(sent), .. }, None) => {
                sent + world.limits.reconcile_after + patience < world.now
            }
            (Phase::Doubtful { ask_at, .. }, None) => {
                world.doubtful.contains(&(tree, start.id)) || ask_at + patience < world.now
            }
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
    let entries = world.chronicle.tales.values().flat_map(|tale| &tale.ledger);
    entries.filter(|(entry, _)| entry.origin == Origin::Spec).map(|(entry, _)| entry.count).sum()
}
