//! Half of the load while somebody holds a snapshot open: dead rows cannot be removed, and throughput must not suffer.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use jiff::SignedDuration;
use punctual_store_postgres::Options;

use super::database::{connect, create as create_database, nodes_with};
use super::goals::Figures;
use crate::embedded::node::{Worker, allow_all, create, every, schedule};

/// Starts per second, unless said otherwise: about half of what two cores carry with a worker.
const LOAD: usize = 8_000;

/// Seconds between two starts of a schedule. Each start and each end writes its row anew, and all that it was since the snapshot
/// was taken stays: who has a schedule every second has a slow one after ten minutes.
const PERIOD: usize = 60;

/// How large tables may become where that is bounded.
const BYTES_MAX: u64 = 400_000_000;

/// For so many minutes without a snapshot, with one, and with one while tables are kept small.
const PARTS: [Part; 3] = [
    Part { name: "free", held: false, live_table_bytes_max: None, minutes: 2 },
    Part { name: "held", held: true, live_table_bytes_max: None, minutes: 10 },
    Part { name: "bounded", held: true, live_table_bytes_max: Some(BYTES_MAX), minutes: 10 },
];

#[derive(Clone, Copy)]
struct Part {
    name: &'static str,
    held: bool,
    live_table_bytes_max: Option<u64>,
    minutes: u64,
}

/// What to measure, and how many starts a second are offered.
pub struct Plan {
    load: usize,
    parts: Vec<Part>,
}

impl Plan {
    /// From words like `bounded 4000`: some parts, all if none is named, and a load.
    pub fn read(words: &[&str]) -> Result<Plan> {
        let mut plan = Plan { load: LOAD, parts: Vec::new() };
        for word in words {
            match (word.parse(), PARTS.iter().find(|part| part.name == *word)) {
                (Ok(load), _) if load > 0 => plan.load = load,
                (_, Some(part)) => plan.parts.push(*part),
                (_, None) => bail!("expected free, held, bounded or starts a second, found {word:?}"),
            }
        }
        if plan.parts.is_empty() {
            plan.parts.extend(PARTS);
        }
        Ok(plan)
    }
}

/// Starts and completions by the minute, with and without a snapshot, and how large the tables become.
pub async fn measure(url: &str, plan: &Plan, figures: &mut Figures) -> Result<()> {
    let (mut free, mut held) = (None, None);
    for part in &plan.parts {
        let slowest = measure_part(url, plan.load, *part).await?;
        let place = if part.held { &mut held } else { &mut free };
        *place = Some(place.map_or(slowest, |before: f64| before.min(slowest)));
    }
    figures.snapshot = held.zip(free).map(|(held, free)| held / free);
    Ok(())
}

/// Gives the completions a second of the slowest minute after the first, in which schedules begin.
async fn measure_part(url: &str, load: usize, part: Part) -> Result<f64> {
    let Part { held, live_table_bytes_max, minutes, .. } = part;
    let database = create_database(url, "bench_snapshot").await?;
    let options = Options { live_table_bytes_max, ..Options::new(&database) };
    let engines = nodes_with(options, 1).await?;
    create(&engines[0], load * PERIOD, |index| {
        let spec = every(SignedDuration::from_secs(PERIOD as i64), SignedDuration::ZERO)
            .jitter(SignedDuration::from_millis(PERIOD as i64 * 1_000 - 1));
        schedule(index, spec, allow_all())
    })
    .await?;
    let worker = Worker::start(&engines[0]);
    let holder = connect(&database).await?;
    if held {
        holder.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class").await?;
    }
    let watcher = connect(&database).await?;
    println!(
        "{load} starts a second of schedules every {PERIOD} s, a worker, a snapshot is {}{}:",
        if held { "held open" } else { "not held" },
        live_table_bytes_max
            .map(|most| format!(", tables have {} MB at most", most / 1_000_000))
            .unwrap_or_default()
    );
    let mut slowest = f64::INFINITY;
    for minute in 1..=minutes {
        let (started, completed) = (engines[0].metrics().started(), worker.completed.load(Ordering::Relaxed));
        let (begun, late) = (Instant::now(), engines[0].metrics().lateness.snapshot());
        tokio::time::sleep(Duration::from_secs(60)).await;
        let seconds = begun.elapsed().as_secs_f64();
        let late = engines[0].metrics().lateness.since(&late);
        let late = [0.5, 0.9, 0.99].map(|share| late.quantile(share) * 1_000.0);
        let rate = |before: u64, now: u64| (now - before) as f64 / seconds;
        let sizes = watcher
            .query_one(
                "SELECT pg_total_relation_size('punctual.state'), pg_total_relation_size('punctual.run_live'),
                    (SELECT sum(pg_total_relation_size(inhrelid))::bigint FROM pg_inherits
                     WHERE inhparent = 'punctual.run_closed'::regclass)",
                &[],
            )
            .await?;
        let completed = rate(completed, worker.completed.load(Ordering::Relaxed));
        if minute > 1 {
            slowest = slowest.min(completed);
        }
        let size = |column: usize| sizes.get::<_, i64>(column) as f64 / 1e6;
        println!(
            "  minute {minute:>2}: {:>6.0} started/s, {:>6.0} completed/s, lateness p50, p90, p99 {:.1}, {:.1}, {:.1} ms; state {:.0} MB, live {:.0} MB, closed {:.0} MB",
            rate(started, engines[0].metrics().started()),
            completed,
            late[0],
            late[1],
            late[2],
            size(0),
            size(1),
            size(2)
        );
    }
    worker.stop().await;
    for engine in engines {
        engine.stop(Duration::from_secs(20)).await;
    }
    Ok(slowest)
}
