//! How late schedules are when their node is gone, or has given them away in order.
//!
//! Occurrences of the probes are spread over their seconds, so that some is due at almost any moment. Two things are measured for
//! each probe of a node from what befell it until something else happens: how long it took until a start was made again, and how
//! late the latest start of that time was. The first alone would miss a start that was made by a write still on its way when the
//! node was cut off; the second alone would call a probe punctual that had nothing to do.
//!
//! A start has the time at which it was decided, not the one at which the database had it. Between the two is one write; one that
//! takes longer than a lease is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use punctual_testkit::Postgres;

use super::DATABASE;

/// One-second schedules whose starts are looked at have names that begin so.
pub const PROBE: &str = "probe-";

pub const PROBES: usize = 24;

/// Something that befell a node: when, until when nothing else did, and which probes it drove.
pub struct Blow {
    pub kind: &'static str,
    pub at: Timestamp,
    pub until: Timestamp,
    pub trees: BTreeSet<i64>,
}

/// Who drives a probe. The epoch counts the owners of its shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    node: String,
    epoch: i64,
}

/// Who drives each probe now.
pub fn drivers(postgres: &Postgres) -> BTreeMap<i64, Driver> {
    let sql = format!(
        "SELECT tree, epoch, node FROM punctual.schedule JOIN punctual.lease USING (shard)
        WHERE schedule.id LIKE '{PROBE}%'"
    );
    let answer = postgres.query(DATABASE, &sql).unwrap();
    let driver = |line: &str| {
        let mut columns = line.split('|');
        let mut next = || columns.next().unwrap();
        let (tree, epoch, node) = (next(), next(), next());
        (tree.parse().unwrap(), Driver { node: node.into(), epoch: epoch.parse().unwrap() })
    };
    answer.lines().map(driver).collect()
}

/// The probes that a node drives now.
pub fn driven_by(postgres: &Postgres, name: &str) -> BTreeSet<i64> {
    let process = format!("{name}#");
    let drivers = drivers(postgres).into_iter();
    drivers.filter(|(_, driver)| driver.node.starts_with(&process)).map(|(tree, _)| tree).collect()
}

/// The probes that have had another driver since, even if it is the same one again.
pub fn handed_over(postgres: &Postgres, before: &BTreeMap<i64, Driver>) -> BTreeSet<i64> {
    let drivers = drivers(postgres).into_iter();
    drivers.filter(|(tree, driver)| before.get(tree) != Some(driver)).map(|(tree, _)| tree).collect()
}

/// When a start was due and when it was made.
type Start = (i64, i64);

/// All starts of the probes, by their due times.
pub struct Starts(BTreeMap<i64, Vec<Start>>);

/// What is known of the waits after blows of one kind, the shortest first.
#[derive(Default)]
pub struct Gaps {
    /// From the blow to the next start.
    pub silences: Vec<Duration>,
    /// The lateness of the latest start.
    pub lateness: Vec<Duration>,
    /// The same of the probes of other nodes at that time: what the machine does to everybody.
    pub others: Vec<Duration>,
}

/// What so many of a hundred do not exceed.
pub fn share(sorted: &[Duration], percent: usize) -> Duration {
    let last = sorted.len().saturating_sub(1);
    sorted.get((sorted.len() * percent / 100).min(last)).copied().unwrap_or_default()
}

impl std::fmt::Display for Gaps {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shares = |sorted: &[Duration]| {
            let [half, most, all] = [50, 99, 100].map(|percent| share(sorted, percent).as_secs_f64());
            format!("p50 {half:.3} s, p99 {most:.3} s, max {all:.3} s of {}", sorted.len())
        };
        let (silences, lateness) = (shares(&self.silences), shares(&self.lateness));
        let others = shares(&self.others);
        write!(formatter, "next start {silences}; latest {lateness}; elsewhere {others}")
    }
}

impl Starts {
    pub fn read(postgres: &Postgres) -> Starts {
        let sql = format!(
            "SELECT tree, due_time, created_at FROM punctual.run_closed JOIN punctual.schedule USING (tree)
            WHERE schedule.id LIKE '{PROBE}%' ORDER BY due_time"
        );
        let mut starts: BTreeMap<i64, Vec<Start>> = BTreeMap::new();
        for line in postgres.query(DATABASE, &sql).unwrap().lines() {
            let columns: Vec<i64> = line.split('|').map(|column| column.parse().unwrap()).collect();
            starts.entry(columns[0]).or_default().push((columns[1], columns[2]));
        }
        Starts(starts)
    }

    /// The waits after all blows, by kind.
    pub fn gaps(&self, blows: &[Blow]) -> BTreeMap<&'static str, Gaps> {
        let mut all: BTreeMap<&'static str, Gaps> = BTreeMap::new();
        for blow in blows {
            let (at, until) = (nanos(blow.at), nanos(blow.until));
            let gaps = all.entry(blow.kind).or_default();
            for (tree, starts) in &self.0 {
                if blow.trees.contains(tree) {
                    gaps.silences.push(silence(starts, at).expect("it starts again"));
                    gaps.lateness.extend(lateness(starts, at, until));
                } else {
                    gaps.others.extend(lateness(starts, at, until));
                }
            }
        }
        for gaps in all.values_mut() {
            for waits in [&mut gaps.silences, &mut gaps.lateness, &mut gaps.others] {
                waits.sort_unstable();
            }
        }
        all
    }
}

fn nanos(time: Timestamp) -> i64 {
    time.as_nanosecond() as i64
}

/// How long after a moment the next start was made.
fn silence(starts: &[Start], at: i64) -> Option<Duration> {
    let next = starts.iter().map(|(_, made)| *made).filter(|made| *made > at).min()?;
    Some(Duration::from_nanos((next - at) as u64))
}

/// How late the latest start was of those that were due in a time, or due before and not made when it began. What came before and
/// what comes after is not counted: that is for something else to answer for.
fn lateness(starts: &[Start], at: i64, until: i64) -> Option<Duration> {
    let concerned = starts.iter().filter(|(due, made)| *due < until && (*due >= at || *made > at));
    let late = concerned.map(|(due, made)| *made.min(&until) - *due.max(&at));
    late.max().map(|late| Duration::from_nanos(late.max(0) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: i64 = 1_000_000;

    #[test]
    fn a_gap_is_found_wherever_it_lies_between_starts() {
        let millis = |starts: &[(i64, i64)]| -> Vec<Start> {
            starts.iter().map(|(due, made)| (due * MILLI, made * MILLI)).collect()
        };
        let of = |starts: &[(i64, i64)]| {
            let starts = millis(starts);
            let lateness = lateness(&starts, 5_000 * MILLI, 9_000 * MILLI);
            [silence(&starts, 5_000 * MILLI), lateness].map(|wait| wait.unwrap().as_millis())
        };
        // On its way at the moment of the blow; the gap comes after it.
        assert_eq!(of(&[(4_300, 4_300), (4_999, 5_001), (6_200, 8_100), (7_500, 8_100)]), [1, 1_900]);
        // Due before the blow, and made long after it.
        assert_eq!(of(&[(4_999, 7_100), (6_200, 7_100)]), [2_100, 2_100]);
        // What befalls it later is another story.
        assert_eq!(of(&[(5_400, 5_400), (8_900, 12_000), (9_100, 12_000)]), [400, 100]);
    }
}
