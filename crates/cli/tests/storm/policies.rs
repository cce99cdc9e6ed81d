//! What the overlap policies promise, judged from the runs and the ledger of one schedule that nobody but its spec and triggers
//! started.
//!
//! Times of one schedule never run backwards, whoever drives it: its runs begin and its verdicts fall at the time of a
//! transition, and every transition first takes in all that is due. So at each such moment it is known who was waiting. When a
//! start was taken in is not stored; nobody can tell, for a schedule without transitions meanwhile, how late that was.

mod stops;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use punctual_api::v1;
use punctual_api::v1::overlap::Policy;
use punctual_api::v1::verdict::Word;

use crate::plan::Plan;
pub use stops::Stops;

/// What the world may do to a schedule.
#[derive(Clone, Copy)]
pub struct Bounds {
    /// How long a report may be on its way to the database while others go on.
    pub late_max: Duration,
    /// How long it may take until a run in the way has heard that it should stop.
    pub stop_max: Duration,
}

/// What was seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// The longest time from the end of a run until its schedule has heard of it, as far as that can be seen.
    pub latest_report: Duration,
    pub stops: Stops,
}

/// One run, in nanoseconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    nominal: i128,
    due: i128,
    from: i128,
    until: i128,
    outcome: v1::outcome::Word,
    asked_to_stop: bool,
    by_request: bool,
}

/// An instant in nanoseconds since the epoch.
pub fn instant(time: &Option<prost_types::Timestamp>) -> i128 {
    let time = time.as_ref().expect("a time");
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos)
}

impl Started {
    fn of(run: &v1::Run) -> Started {
        Started {
            nominal: instant(&run.nominal_time),
            due: instant(&run.due_time),
            from: instant(&run.created_at),
            until: instant(&run.closed_at),
            outcome: run.outcome(),
            asked_to_stop: run.cancel_requested,
            by_request: run.origin() == v1::origin::Kind::Request,
        }
    }
}

/// Says what is wrong, if anything is.
pub fn check_overlap(
    plan: &Plan,
    runs: &[v1::Run],
    ledger: &[v1::LedgerEntry],
    bounds: Bounds,
) -> Result<Figures, String> {
    let runs: Vec<Started> = runs.iter().map(Started::of).collect();
    check_places(plan, &runs)?;
    check_order(&runs)?;
    check_verdicts(plan, ledger)?;
    let latest_report = check_skips(&runs, ledger, bounds.late_max)?;
    check_waiting(plan, &runs, ledger)?;
    let stops = stops::check(plan, &runs, ledger, bounds)?;
    Ok(Figures { latest_report, stops })
}

/// At no instant more runs than allowed.
fn check_places(plan: &Plan, runs: &[Started]) -> Result<(), String> {
    if plan.overlap == Policy::AllowAll {
        return Ok(());
    }
    for run in runs {
        let beside: Vec<_> =
            runs.iter().filter(|other| other.from <= run.from && run.from < other.until).collect();
        if beside.len() > plan.concurrency as usize {
            return Err(format!("runs in progress at once, {} allowed: {beside:?}", plan.concurrency));
        }
    }
    Ok(())
}

/// Starts are looked at in the order of their coming, so those of the spec begin in nominal order under every policy.
fn check_order(runs: &[Started]) -> Result<(), String> {
    let mut of_spec: Vec<&Started> = runs.iter().filter(|run| !run.by_request).collect();
    of_spec.sort_by_key(|run| run.nominal);
    match of_spec.windows(2).find(|pair| pair[0].from > pair[1].from) {
        Some(pair) => Err(format!("a later start began before an earlier one: {pair:?}")),
        None => Ok(()),
    }
}

/// Each policy has ways of its own to refuse a start.
fn check_verdicts(plan: &Plan, ledger: &[v1::LedgerEntry]) -> Result<(), String> {
    for entry in ledger {
        let fits = match (entry.verdict(), entry.reason()) {
            (Word::Skipped, _) => matches!(plan.overlap, Policy::Skip | Policy::BufferOne),
            (Word::Superseded, v1::reason::Word::LaterStart) => plan.stops_others(),
            _ => true,
        };
        if !fits {
            return Err(format!("{:?} ends no start this way: {entry:?}", plan.overlap));
        }
    }
    Ok(())
}

/// Nothing was skipped without a run in its way, of whose end the schedule had not heard.
fn check_skips(runs: &[Started], ledger: &[v1::LedgerEntry], late_max: Duration) -> Result<Duration, String> {
    let mut latest = 0;
    for entry in ledger.iter().filter(|entry| entry.verdict() == Word::Skipped) {
        let decided = instant(&entry.decided_at);
        let before = runs.iter().filter(|run| run.from <= decided);
        let late = before.map(|run| decided - run.until).min();
        let late = late.filter(|late| *late <= late_max.as_nanos() as i128);
        let late = late.ok_or_else(|| format!("skipped without a run in progress: {entry:?}, {runs:?}"))?;
        latest = latest.max(late);
    }
    Ok(Duration::from_nanos(latest as u64))
}

/// Under `skip` nobody waits; under `buffer_one` one at most, and nobody is skipped while nobody waits.
fn check_waiting(plan: &Plan, runs: &[Started], ledger: &[v1::LedgerEntry]) -> Result<(), String> {
    let waiting_max = match plan.overlap {
        Policy::Skip => 0,
        Policy::BufferOne => 1,
        _ => return Ok(()),
    };
    let decided = ledger.iter().map(|entry| instant(&entry.decided_at));
    let moments: BTreeSet<i128> = runs.iter().map(|run| run.from).chain(decided).collect();
    for moment in moments {
        let waits: Vec<_> = runs.iter().filter(|run| run.due <= moment && moment < run.from).collect();
        if waits.len() > waiting_max {
            return Err(format!("{} wait at {moment}, {waiting_max} may: {waits:?}", waits.len()));
        }
    }
    let skipped = ledger.iter().filter(|entry| entry.verdict() == Word::Skipped);
    for entry in skipped.filter(|_| plan.overlap == Policy::BufferOne) {
        let decided = instant(&entry.decided_at);
        // Who waited began later, or was refused later for another reason; both may be in the transition that skipped this one.
        let began = runs.iter().any(|run| run.due <= decided && decided <= run.from);
        let refused = ledger.iter().filter(|other| other.verdict() != Word::Skipped);
        let mut refused = refused.map(|other| (instant(&other.from), instant(&other.decided_at)));
        if !began && !refused.any(|(from, refused)| from <= decided && decided <= refused) {
            return Err(format!("skipped although nobody waited: {entry:?}, {runs:?}"));
        }
    }
    Ok(())
}
