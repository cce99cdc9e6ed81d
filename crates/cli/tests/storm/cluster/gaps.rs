//! How long schedules of a node wait when it is gone: from the fault to the first start by somebody else.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use punctual_testkit::Postgres;

use super::DATABASE;

/// One-second schedules whose starts are looked at have names that begin so.
pub const PROBE: &str = "probe-";

/// A fault of one node: when, and which probes it drove.
pub struct Blow {
    pub kind: &'static str,
    pub at: Timestamp,
    pub trees: Vec<i64>,
}

/// The probes that a node drives now.
pub fn driven_by(postgres: &Postgres, name: &str) -> Vec<i64> {
    let sql = format!(
        "SELECT tree FROM punctual.schedule JOIN punctual.lease USING (shard)
        WHERE lease.node LIKE '{name}#%' AND schedule.id LIKE '{PROBE}%'"
    );
    let answer = postgres.query(DATABASE, &sql).unwrap();
    answer.lines().map(|line| line.parse().unwrap()).collect()
}

/// What is known of the waits after faults of one kind.
pub struct Gaps {
    pub kind: &'static str,
    waits: Vec<Duration>,
}

impl Gaps {
    pub fn share(&self, percent: usize) -> Duration {
        self.waits[(self.waits.len() * percent / 100).min(self.waits.len() - 1)]
    }
}

impl std::fmt::Display for Gaps {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [half, most, all] = [50, 99, 100].map(|percent| self.share(percent).as_secs_f64());
        let (kind, count) = (self.kind, self.waits.len());
        write!(formatter, "{kind}: p50 {half:.2} s, p99 {most:.2} s, max {all:.2} s of {count}")
    }
}

/// The waits after all faults, by kind.
pub fn measure(postgres: &Postgres, blows: &[Blow]) -> Vec<Gaps> {
    let sql = format!(
        "SELECT tree, created_at FROM punctual.run_closed JOIN punctual.schedule USING (tree)
        WHERE schedule.id LIKE '{PROBE}%' ORDER BY created_at"
    );
    let mut starts: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for line in postgres.query(DATABASE, &sql).unwrap().lines() {
        let (tree, created_at) = line.split_once('|').unwrap();
        starts.entry(tree.parse().unwrap()).or_default().push(created_at.parse().unwrap());
    }
    let mut waits: BTreeMap<&'static str, Vec<Duration>> = BTreeMap::new();
    for blow in blows {
        let at = blow.at.as_nanosecond() as i64;
        for tree in &blow.trees {
            let starts = &starts[tree];
            let first = starts[starts.partition_point(|start| *start <= at)..].first();
            let wait = first.expect("it starts again") - at;
            waits.entry(blow.kind).or_default().push(Duration::from_nanos(wait.unsigned_abs()));
        }
    }
    let sorted = |(kind, mut waits): (&'static str, Vec<Duration>)| {
        waits.sort_unstable();
        Gaps { kind, waits }
    };
    waits.into_iter().map(sorted).collect()
}
