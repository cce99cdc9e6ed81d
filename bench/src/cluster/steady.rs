//! Schedules that start every ten seconds, on one node and on three: how many can be kept up with, how late they are below that,
//! and what the database does for each.
//!
//! Without a worker no run ever ends. With schedules that start every second each would have twenty runs on its hands soon, and
//! what was measured would be the size of their states.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use punctual_engine::Engine;
use tokio_postgres::Client;

use super::ceiling::{self, Shape, Windows};
use super::database::{checkpoint, connect, create as create_database, nodes, transactions};
use super::goals::{Figures, Steady};
use super::host::Cores;
use crate::embedded::node::{Worker, allow_all, create, every, schedule};

/// Seconds between two starts of one schedule.
const PERIOD: i64 = 10;

/// How many schedules are created in a second: none starts before all are there. What was seen last, less a fifth.
struct Pace(f64);

impl Pace {
    /// What any machine does.
    const FIRST: Pace = Pace(10_000.0);

    fn time_for(&self, schedules: usize) -> Duration {
        Duration::from_secs_f64(schedules as f64 / self.0)
    }

    fn learn(&mut self, schedules: usize, took: Duration) {
        self.0 = 0.8 * schedules as f64 / took.as_secs_f64();
    }
}

/// How long everything goes on before anything is measured: the first start of each schedule is not counted. Schedules are read
/// before it, up to two periods after the beginning, and PostgreSQL tells what a connection did last only when that has been idle
/// for ten seconds.
const BEFORE: Duration = Duration::from_secs(2 * PERIOD as u64 + 12);

/// How lateness at half of the most is measured. Where no run ends, states grow all the while: these are soon over.
const WINDOWS: Windows = Windows { count: 10, length: Duration::from_secs(2) };

/// Starts a second that are offered, until they are not kept up with: the last must be more than any machine does, or the most
/// that was offered would pass for the most that can be done.
fn loads(with_worker: bool) -> &'static [usize] {
    if with_worker {
        &[5_000, 10_000, 20_000, 30_000, 40_000, 60_000, 80_000]
    } else {
        &[20_000, 40_000, 60_000, 80_000, 100_000, 120_000, 140_000, 160_000, 180_000, 200_000]
    }
}

/// Others take no more of the cores than this in a window that is left alone.
const STOLEN_MAX: f64 = 0.01;

/// What is measured.
#[derive(Clone, Copy)]
struct Plan {
    nodes: usize,
    /// Starts per second.
    load: usize,
    with_worker: bool,
    windows: Windows,
    /// Whether every second is told.
    tells: bool,
}

/// What was seen in one window.
struct Seen {
    starts: f64,
    completions: f64,
    /// In milliseconds, of the node that was latest.
    lateness: [f64; 3],
    /// Transactions for each start.
    transactions: f64,
    /// The share of the cores that the machine's host gave to others.
    stolen: f64,
}

/// One load, second by second, for who profiles; then bare statements at the same load, and the most that they do.
pub async fn probe(url: &str, nodes: usize, load: usize, with_worker: bool) -> Result<()> {
    let windows = once(20);
    let (plan, mut pace) = (Plan { nodes, load, with_worker, windows, tells: true }, Pace::FIRST);
    let (seen, shape) = run(url, plan, &mut pace).await?;
    for seen in seen {
        println!(
            "{nodes} nodes, offered {load}/s: {:.0} started/s, {:.0} completed/s, {:.3} transactions a start, lateness p50 {:.1} ms, p99 {:.1} ms, p99.9 {:.1} ms",
            seen.starts,
            seen.completions,
            seen.transactions,
            seen.lateness[0],
            seen.lateness[1],
            seen.lateness[2]
        );
    }
    print_spread("bare statements", ceiling::lateness(url, shape, load as f64, (BEFORE, windows)).await?);
    ceiling::measure(url, shape).await?;
    Ok(())
}

/// Finds the highest load that is kept up with, then what bare statements do with the same rows, then lateness below it.
pub async fn measure(url: &str, figures: &mut Figures) -> Result<()> {
    let mut pace = Pace::FIRST;
    // Those that write most come last: what the disk still has to do afterwards would be in the way of others.
    for (nodes, with_worker) in [(1, true), (3, true), (1, false), (3, false)] {
        let label = if with_worker { "with a worker on each" } else { "without a worker" };
        println!("durable starts per second, schedules every {PERIOD} seconds, {nodes} nodes, {label}:");
        let (mut best, mut best_shape, mut kept_up, mut transactions) = (0.0f64, Shape::FRESH, 0, None);
        for load in loads(with_worker).iter().copied() {
            let plan = Plan { nodes, load, with_worker, windows: once(8), tells: false };
            let (seen, shape) = run(url, plan, &mut pace).await?;
            let Some(seen) = seen.first() else { break };
            // What was late before and is caught up with now does not count.
            let done = seen.starts.min(load as f64);
            let done = if with_worker { done.min(seen.completions) } else { done };
            println!(
                "  offered {load:>6}/s: {:>7.0} started/s, {:>7.0} completed/s, {:.3} transactions a start, lateness p50 {:.1} ms, p99 {:.1} ms, {:.1} % stolen",
                seen.starts,
                seen.completions,
                seen.transactions,
                seen.lateness[0],
                seen.lateness[1],
                100.0 * seen.stolen
            );
            if done > best {
                (best, best_shape) = (done, shape);
            }
            if done < 0.97 * load as f64 {
                break;
            }
            (kept_up, transactions) = (load, Some(seen.transactions));
        }
        let ceiling = ceiling::measure(url, best_shape).await?;
        println!(
            "  kept up with: {kept_up}/s; most: {best:.0}/s, {:.2} of the raw ceiling ({ceiling:.0}/s)",
            best / ceiling
        );
        figures.steady.push(Steady {
            nodes,
            with_worker,
            best,
            ceiling,
            kept_up,
            transactions,
            lateness: None,
        });
        if kept_up == 0 {
            continue;
        }
        // Of a load that is not kept up with, lateness says only for how long it lasted.
        let load = kept_up / 2;
        let plan = Plan { nodes, load, with_worker, windows: WINDOWS, tells: false };
        let (seen, shape) = run(url, plan, &mut pace).await?;
        println!(
            "  at half of what is kept up with ({load}/s), {} windows of {} s:",
            WINDOWS.count,
            WINDOWS.length.as_secs()
        );
        let [_, p99, _] = print_spread("us", seen.iter().map(|seen| seen.lateness).collect());
        if let Some(figures) = figures.steady.last_mut() {
            figures.lateness = Some(p99);
        }
        let alone = seen.iter().filter(|seen| seen.stolen < STOLEN_MAX);
        let alone: Vec<[f64; 3]> = alone.map(|seen| seen.lateness).collect();
        let stolen = seen.iter().map(|seen| 100.0 * seen.stolen).fold(0.0, f64::max);
        println!(
            "    the host took up to {stolen:.1} % of the cores, in {} windows less than {:.0} %",
            alone.len(),
            100.0 * STOLEN_MAX
        );
        if !alone.is_empty() {
            print_spread("us in these", alone);
        }
        print_spread("bare statements", ceiling::lateness(url, shape, load as f64, (BEFORE, WINDOWS)).await?);
    }
    Ok(())
}

fn once(seconds: u64) -> Windows {
    Windows { count: 1, length: Duration::from_secs(seconds) }
}

/// The median of several measurements, and how far they lie apart; gives the medians.
fn print_spread(who: &str, seen: Vec<[f64; 3]>) -> [f64; 3] {
    let spreads = [0, 1, 2].map(|place| {
        let mut values: Vec<f64> = seen.iter().map(|seen| seen[place]).collect();
        values.sort_by(f64::total_cmp);
        [0, values.len() / 2, values.len() - 1].map(|place| values[place])
    });
    let texts = ["p50", "p99", "p99.9"].iter().zip(spreads);
    let texts =
        texts.map(|(name, [first, middle, last])| format!("{name} {middle:.1} ms ({first:.1} to {last:.1})"));
    println!("    {who}: lateness {}", texts.collect::<Vec<_>>().join(", "));
    spreads.map(|[_, middle, _]| middle)
}

/// What the database does for one start, with ever more nodes at the same load.
pub async fn transactions_by_nodes(url: &str, figures: &mut Figures) -> Result<()> {
    println!("transactions for each start at 10,000 starts/s, by nodes:");
    let mut pace = Pace::FIRST;
    for nodes in [1, 3, 8] {
        let plan = Plan { nodes, load: 10_000, with_worker: false, windows: once(10), tells: false };
        for seen in run(url, plan, &mut pace).await?.0 {
            println!(
                "  {nodes} nodes: {:.4} transactions a start ({:.0} started/s, lateness p99 {:.1} ms)",
                seen.transactions, seen.starts, seen.lateness[1]
            );
            figures.transactions.push((nodes, seen.transactions));
        }
    }
    Ok(())
}

/// What was seen in each window, and how the rows were in the middle of all of them.
async fn run(url: &str, plan: Plan, pace: &mut Pace) -> Result<(Vec<Seen>, Shape)> {
    let Plan { nodes: count, load, with_worker, windows, .. } = plan;
    let database = create_database(url, "bench_steady").await?;
    let client = connect(url).await?;
    let engines = nodes(&database, count).await?;
    let schedules = load * PERIOD as usize;
    let creating = pace.time_for(schedules);
    let (begin, begun) = (Timestamp::now() + creating, Instant::now());
    // Spread over the period, as schedules with jitter are.
    create(&engines[0], schedules, |index| {
        let spec = every(SignedDuration::from_secs(PERIOD), SignedDuration::ZERO)
            .jitter(SignedDuration::from_millis(PERIOD * 1_000 - 1))
            .start_time(begin);
        schedule(index, spec, allow_all())
    })
    .await?;
    pace.learn(schedules, begun.elapsed());
    checkpoint(&client).await?;
    let workers: Vec<Worker> =
        if with_worker { engines.iter().map(Worker::start).collect() } else { Vec::new() };
    tokio::time::sleep(creating.saturating_sub(begun.elapsed()) + BEFORE).await;
    let first = Shape::of(&database).await?;
    // Counting all states keeps the database busy for a moment.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut seen = Vec::new();
    for _ in 0..windows.count {
        seen.push(window(&client, &engines, &workers, plan).await?);
    }
    let last = Shape::of(&database).await?;
    let shape = Shape { state_bytes: first.state_bytes.midpoint(last.state_bytes), ..last };
    for worker in workers {
        worker.stop().await;
    }
    for engine in engines {
        engine.stop(Duration::from_secs(20)).await;
    }
    Ok((seen, shape))
}

async fn window(client: &Client, engines: &[Engine], workers: &[Worker], plan: Plan) -> Result<Seen> {
    let started = || engines.iter().map(|engine| engine.metrics().started()).sum::<u64>();
    let completed = || workers.iter().map(|worker| worker.completed.load(Ordering::Relaxed)).sum::<u64>();
    let before = (started(), completed(), transactions(client, "bench_steady").await?);
    let lateness: Vec<_> = engines.iter().map(|engine| engine.metrics().lateness.snapshot()).collect();
    let (begun, cores) = (Instant::now(), Cores::now());
    while begun.elapsed() < plan.windows.length {
        let (count, late) = (started(), engines[0].metrics().lateness.snapshot());
        tokio::time::sleep(Duration::from_secs(1)).await;
        if plan.tells {
            let late = engines[0].metrics().lateness.since(&late);
            let [p50, p99] = [0.5, 0.99].map(|share| late.quantile(share) * 1_000.0);
            println!("  {} started, on one node p50 {p50:.1} ms, p99 {p99:.1} ms", started() - count);
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let (starts, completions) = (started() - before.0, completed() - before.1);
    let quantiles = engines.iter().zip(&lateness).map(|(engine, before)| {
        let since = engine.metrics().lateness.since(before);
        [0.5, 0.99, 0.999].map(|share| since.quantile(share) * 1_000.0)
    });
    let lateness = quantiles.reduce(|one, other| [0, 1, 2].map(|place| one[place].max(other[place])));
    let worked = transactions(client, "bench_steady").await? - before.2;
    Ok(Seen {
        starts: starts as f64 / seconds,
        completions: completions as f64 / seconds,
        lateness: lateness.unwrap_or_default(),
        transactions: worked as f64 / starts.max(1) as f64,
        stolen: Cores::stolen_since(cores),
    })
}
