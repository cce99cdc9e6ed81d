//! Who came to stop others has stopped them: nobody stays in the way without being asked, and nobody is asked for nothing.
//!
//! A run that was asked under `cancel_other` may still end as it likes; that it was asked is stored with it. Under
//! `terminate_other` it is ended at once. Whether a run that ended soon after a later start was due should have been asked cannot
//! be told: the schedule may have heard of its end first. So runs of these schedules go on until they are stopped, and one that
//! was left alone shows.

use std::time::Duration;

use punctual_api::v1;
use punctual_api::v1::outcome::Word as Outcome;
use punctual_api::v1::overlap::Policy;
use punctual_api::v1::verdict::Word;

use super::{Bounds, Started, instant};
use crate::plan::Plan;

/// How far the clocks of two nodes may be apart: each is at most half a round trip off the database's.
const CLOCKS_APART: i128 = 250_000_000;

const SECOND: i128 = 1_000_000_000;

/// What was seen of runs that were stopped.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stops {
    /// How many.
    pub count: usize,
    /// The longest that one of them was in progress after a later start was due, where there is one place.
    pub slowest: Duration,
}

impl Stops {
    pub fn and(self, other: Stops) -> Stops {
        Stops { count: self.count + other.count, slowest: self.slowest.max(other.slowest) }
    }
}

/// Says what is wrong, if anything is.
pub(super) fn check(
    plan: &Plan,
    runs: &[Started],
    ledger: &[v1::LedgerEntry],
    bounds: Bounds,
) -> Result<Stops, String> {
    let stopped: Vec<&Started> = runs.iter().filter(|run| is_stopped(run)).collect();
    for run in &stopped {
        let fits = match plan.overlap {
            Policy::CancelOther => run.outcome != Outcome::Terminated,
            Policy::TerminateOther => run.outcome == Outcome::Terminated,
            _ => false,
        };
        if !fits {
            return Err(format!("{:?} stops no run this way: {run:?}", plan.overlap));
        }
    }
    let comings = comings(plan, runs, ledger);
    let mut stops = Stops { count: stopped.len(), slowest: Duration::ZERO };
    for run in stopped {
        let later = comings.iter().filter(|(nominal, _)| *nominal > run.nominal).map(|(_, due)| *due).min();
        // Who ended by itself may have been asked while the report of that was on its way.
        let leeway = match run.outcome {
            Outcome::Cancelled | Outcome::Terminated => CLOCKS_APART,
            _ => CLOCKS_APART + bounds.late_max.as_nanos() as i128,
        };
        let Some(later) = later.filter(|due| *due <= run.until + leeway) else {
            return Err(format!("stopped, and nobody came after it: {run:?}"));
        };
        // With more places the later one may have found a free one.
        if plan.concurrency == 1 {
            stops.slowest = stops.slowest.max(Duration::from_nanos((run.until - later).max(0) as u64));
        }
    }
    if plan.stops_others() {
        check_ways(plan, runs, &comings, bounds.stop_max.as_nanos() as i128)?;
    }
    Ok(stops)
}

fn is_stopped(run: &Started) -> bool {
    run.asked_to_stop || matches!(run.outcome, Outcome::Cancelled | Outcome::Terminated)
}

/// Nominal and due times of all that came to begin, whatever became of it.
fn comings(plan: &Plan, runs: &[Started], ledger: &[v1::LedgerEntry]) -> Vec<(i128, i128)> {
    let mut all: Vec<(i128, i128)> = runs.iter().map(|run| (run.nominal, run.due)).collect();
    let looked_at = |entry: &&v1::LedgerEntry| matches!(entry.verdict(), Word::Superseded | Word::Paused);
    for entry in ledger.iter().filter(looked_at) {
        let (from, through) = (instant(&entry.from), instant(&entry.through));
        let step = i128::from(plan.every_seconds) * SECOND;
        let times = (0..).map(|place| from + place * step).take_while(|time| *time <= through);
        all.extend(times.map(|time| (time, time)));
    }
    all
}

/// Where all places were taken for as long after a start was due, it has found them taken and asked everybody in them.
fn check_ways(plan: &Plan, runs: &[Started], comings: &[(i128, i128)], stop_max: i128) -> Result<(), String> {
    for (nominal, due) in comings {
        let in_the_way =
            |run: &&Started| run.nominal < *nominal && run.from <= *due && run.until > due + stop_max;
        let in_the_way: Vec<&Started> = runs.iter().filter(in_the_way).collect();
        if in_the_way.len() < plan.concurrency as usize {
            continue;
        }
        if let Some(left_alone) = in_the_way.into_iter().find(|run| !is_stopped(run)) {
            return Err(format!("in the way of {nominal}, and nobody stopped it: {left_alone:?}"));
        }
    }
    Ok(())
}
