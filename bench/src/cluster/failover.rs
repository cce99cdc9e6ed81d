//! Nodes leave in order, come, and die without a word: how late starts are that are due meanwhile.
//!
//! Schedules are spread over the second and over all shards, so that some start is due at any moment: a hand-over that begins and
//! ends between two whole seconds is seen like any other. What counts is when a start was durable.

mod starts;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use jiff::{SignedDuration, Timestamp};
use punctual_engine::{Engine, EngineConfig};
use punctual_store::{NodeId, ShardId};
use punctual_store_postgres::Options;

use self::starts::{Listener, Start};
use super::database::{create as create_database, join, nodes};
use super::goals::Figures;
use crate::embedded::node::{allow_all, create, every, schedule};

/// Seconds between two starts of one schedule.
const PERIOD: usize = 2;

/// With 32 shards each has a start every eight milliseconds on average, and what moves at a time one every millisecond.
const SCHEDULES: usize = 8_000;

/// How often everything is tried, each time in a new database.
const ROUNDS: usize = 6;

/// The node that everything happens to.
const NODE: usize = 1;

/// What happens to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Drained,
    TakesPart,
    Leaves,
    Joins,
    Dies,
}

impl Change {
    /// Each one finds three nodes that drive shards, or two of three.
    const ALL: [Change; 5] =
        [Change::Drained, Change::TakesPart, Change::Leaves, Change::Joins, Change::Dies];

    fn label(self) -> &'static str {
        match self {
            Change::Drained => "a node is drained",
            Change::TakesPart => "it takes its share again",
            Change::Leaves => "it leaves in order",
            Change::Joins => "another one joins",
            Change::Dies => "it dies",
        }
    }

    /// How long to watch what comes of it.
    fn length(self) -> Duration {
        match self {
            Change::Dies => lease() + Duration::from_secs(3),
            Change::Drained | Change::TakesPart | Change::Leaves | Change::Joins => Duration::from_secs(2),
        }
    }
}

fn lease() -> Duration {
    EngineConfig::default().shard_lease.unsigned_abs()
}

/// A change that has happened: when it was wished for, and who drives what has moved.
struct Happened {
    change: Change,
    wished_at: Timestamp,
    moved: BTreeMap<ShardId, NodeId>,
}

/// What was seen of one change, in milliseconds.
struct Seen {
    /// From the wish until the last of the shards that moved has started something at its new node.
    took: f64,
    /// How late those starts were that were due in that time, in the shards that moved.
    moved: Vec<f64>,
    /// The same in all other shards.
    stayed: Vec<f64>,
}

/// How late starts are while shards move.
pub async fn measure(url: &str, figures: &mut Figures) -> Result<()> {
    let mut all: BTreeMap<Change, Vec<Seen>> = BTreeMap::new();
    for number in 0..ROUNDS {
        for (change, seen) in round(url, number).await? {
            all.entry(change).or_default().push(seen);
        }
    }
    println!(
        "three nodes, lease {} s, {SCHEDULES} schedules every {PERIOD} s, some start due at any moment; {ROUNDS} rounds:",
        lease().as_secs()
    );
    for (change, rounds) in &all {
        let longest = print(*change, rounds);
        match change {
            Change::Dies => figures.failover.extend(longest),
            Change::Drained | Change::TakesPart | Change::Leaves | Change::Joins => {
                figures.hand_over.extend(longest);
            }
        }
    }
    Ok(())
}

/// Everything that can happen to a node, one after the other.
async fn round(url: &str, number: usize) -> Result<Vec<(Change, Seen)>> {
    let database = create_database(url, "bench_failover").await?;
    let mut engines = nodes(&database, 3).await?;
    let listener = Listener::default();
    engines.iter().for_each(|engine| listener.listen_to(engine));
    create(&engines[0], SCHEDULES, |index| {
        let period = SignedDuration::from_secs(PERIOD as i64);
        let spec = every(period, SignedDuration::ZERO).jitter(period - SignedDuration::from_millis(1));
        schedule(index, spec, allow_all())
    })
    .await?;
    // The first start of each schedule reads it.
    tokio::time::sleep(Duration::from_secs(2 * PERIOD as u64 + 1)).await;
    let mut happened = Vec::new();
    for change in Change::ALL {
        if change == Change::Dies {
            // Nodes are heard of every third of a lease: the last time was at any moment before.
            tokio::time::sleep(lease() / 3 * number as u32 / ROUNDS as u32).await;
        }
        happened.push(happen(change, &mut engines, &database, &listener).await?);
        if change == Change::Dies {
            engines.remove(NODE);
        }
    }
    for engine in engines {
        engine.stop(Duration::from_secs(10)).await;
    }
    let starts = listener.starts(&database, PERIOD).await?;
    happened.iter().map(|happened| Ok((happened.change, happened.seen(&starts)?))).collect()
}

async fn happen(
    change: Change,
    engines: &mut [Engine],
    database: &str,
    listener: &Listener,
) -> Result<Happened> {
    let before = owners(&engines[0]).await?;
    let name = engines[NODE].node_id().0.clone();
    let wished_at = Timestamp::now();
    match change {
        Change::Drained => engines[0].drain_node(&name, true).await?,
        Change::TakesPart => engines[0].drain_node(&name, false).await?,
        Change::Leaves => {
            ensure!(engines[NODE].stop(Duration::from_secs(10)).await, "a node did not stop in time");
        }
        Change::Joins => {
            engines[NODE] = join(Options::new(database), "node-3").await?;
            listener.listen_to(&engines[NODE]);
        }
        Change::Dies => engines[NODE].crash(),
    }
    tokio::time::sleep(change.length()).await;
    let mut moved = owners(&engines[0]).await?;
    moved.retain(|shard, owner| before.get(shard) != Some(owner));
    ensure!(!moved.is_empty(), "nothing has moved: {}", change.label());
    Ok(Happened { change, wished_at, moved })
}

/// Who drives each shard.
async fn owners(engine: &Engine) -> Result<BTreeMap<ShardId, NodeId>> {
    let leases = engine.roster().await?.leases;
    Ok(leases.into_iter().map(|lease| (lease.shard, lease.node)).collect())
}

impl Happened {
    fn seen(&self, starts: &[Start]) -> Result<Seen> {
        let mut over_at = self.wished_at;
        for (shard, owner) in &self.moved {
            let there =
                starts.iter().filter(|start| start.shard == *shard && start.node.as_ref() == Some(owner));
            let first = there.map(|start| start.started_at).filter(|at| *at >= self.wished_at).min();
            ensure!(first.is_some(), "shard {shard} has started nothing at {owner}: {}", self.change.label());
            over_at = over_at.max(first.unwrap_or(over_at));
        }
        let (mut moved, mut stayed) = (Vec::new(), Vec::new());
        for start in starts.iter().filter(|start| (self.wished_at..=over_at).contains(&start.due_time)) {
            let place = if self.moved.contains_key(&start.shard) { &mut moved } else { &mut stayed };
            place.push(milliseconds(start.started_at.duration_since(start.due_time)));
        }
        Ok(Seen { took: milliseconds(over_at.duration_since(self.wished_at)), moved, stayed })
    }
}

fn milliseconds(length: SignedDuration) -> f64 {
    length.as_secs_f64() * 1_000.0
}

/// Tells of all rounds, and gives the longest lateness of each in milliseconds, in order.
fn print(change: Change, rounds: &[Seen]) -> Vec<f64> {
    let longest = sorted(rounds.iter().filter_map(|seen| seen.moved.iter().copied().reduce(f64::max)));
    let took = sorted(rounds.iter().map(|seen| seen.took));
    let moved = sorted(rounds.iter().flat_map(|seen| seen.moved.iter().copied()));
    let stayed = sorted(rounds.iter().flat_map(|seen| seen.stayed.iter().copied()));
    println!(
        "  {}: longest lateness {} ms; of {} starts due meanwhile p99 {:.1} ms, in other shards of {} {:.1} ms; over after {} ms",
        change.label(),
        spread(&longest),
        moved.len(),
        at(&moved, 0.99),
        stayed.len(),
        at(&stayed, 0.99),
        spread(&took)
    );
    longest
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The value that this share of all is not above; 0 of none.
fn at(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len().saturating_sub(1) as f64 * share) as usize;
    sorted.get(place).copied().unwrap_or_default()
}

/// The median of the rounds, and how far they lie apart.
fn spread(sorted: &[f64]) -> String {
    format!("{:.1} ({:.1} to {:.1})", at(sorted, 0.5), at(sorted, 0.0), at(sorted, 1.0))
}
