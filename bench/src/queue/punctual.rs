//! Our own side: an engine in this process, on a SQLite file or on the PostgreSQL of the peers, every answer durable.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures_util::future::{join_all, try_join_all};
use punctual_core::RunAction;
use punctual_engine::{
    AttemptEnd, Engine, EngineConfig, EngineError, OnDuplicate, Report, RunOrder, SystemClock,
};
use punctual_store::{QueueSettings, Store};
use punctual_store_sqlite::{Options, Sqlite};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::plan::{
    CELL_LENGTH, CELL_RUNS_MIN, Cell, Contender, LOAD_BATCH_MAX, LOAD_LENGTH, LOAD_SENDERS_MAX, Latency,
    Load, OURS, OURS_ON_POSTGRES, Throughput, UNDER_WAY_MAX,
};

/// How long one claim waits.
const WAIT: Duration = Duration::from_millis(200);

/// Workers that serve a load.
const LOAD_WORKERS: u64 = 2;

/// An engine with an empty queue.
pub struct Punctual {
    runtime: Runtime,
    engine: Engine,
    name: &'static str,
    _folder: Option<TempDir>,
}

impl Punctual {
    pub fn start() -> Result<Punctual> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let folder = tempfile::tempdir()?;
        let store = Sqlite::open(folder.path().join("queue.db"), Options::default())?;
        let engine = runtime.block_on(start(Arc::new(store)))?;
        Ok(Punctual { runtime, engine, name: OURS, _folder: Some(folder) })
    }

    /// The same on PostgreSQL.
    pub fn start_on(url: &str) -> Result<Punctual> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let engine = runtime.block_on(async {
            let url = crate::cluster::database::create(url, "bench_queue").await?;
            let options = punctual_store_postgres::Options::new(url);
            start(Arc::new(punctual_store_postgres::Postgres::open(options).await?)).await
        })?;
        Ok(Punctual { runtime, engine, name: OURS_ON_POSTGRES, _folder: None })
    }
}

async fn start(store: Arc<dyn Store>) -> Result<Engine> {
    let engine = Engine::start(store, Arc::new(SystemClock), EngineConfig::default()).await?;
    engine.create_queue("default", "q", QueueSettings::default()).await?;
    Ok(engine)
}

/// What producers and workers of one measurement share.
#[derive(Default)]
struct Counts {
    enqueued: AtomicU64,
    completed: AtomicU64,
    /// Producers that are done.
    ended: AtomicU64,
}

impl Counts {
    fn is_over(&self, producers: u64) -> bool {
        self.ended.load(Ordering::Acquire) == producers
            && self.completed.load(Ordering::Acquire) >= self.enqueued.load(Ordering::Acquire)
    }
}

fn orders(count: u64) -> Vec<RunOrder> {
    let order = RunOrder {
        name: "noop".into(),
        action: RunAction { handler: "noop".into(), input: b"{}".as_slice().into(), ..RunAction::default() },
        dedup: None,
        on_duplicate: OnDuplicate::Reject,
        not_before: None,
    };
    vec![order; count as usize]
}

impl Contender for Punctual {
    fn name(&self) -> &str {
        self.name
    }

    fn throughput(&mut self, cell: Cell) -> Result<Throughput> {
        let (counts, begun) = (Arc::new(Counts::default()), Instant::now());
        let producers = (0..cell.workers).map(|_| {
            let (engine, counts) = (self.engine.clone(), counts.clone());
            tokio::spawn(async move {
                loop {
                    let (enqueued, completed) =
                        (counts.enqueued.load(Ordering::Relaxed), counts.completed.load(Ordering::Relaxed));
                    if begun.elapsed() > CELL_LENGTH && enqueued >= CELL_RUNS_MIN {
                        break;
                    }
                    if enqueued.saturating_sub(completed) > UNDER_WAY_MAX {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                        continue;
                    }
                    engine.enqueue("default", "q", orders(cell.batch), None).await?;
                    counts.enqueued.fetch_add(cell.batch, Ordering::AcqRel);
                }
                counts.ended.fetch_add(1, Ordering::AcqRel);
                anyhow::Ok(())
            })
        });
        let workers = (0..cell.workers).map(|index| {
            let (engine, counts) = (self.engine.clone(), counts.clone());
            tokio::spawn(async move {
                while !counts.is_over(cell.workers) {
                    work(&engine, index, cell.batch, &counts, |_| {}).await?;
                }
                anyhow::Ok(())
            })
        });
        self.runtime.block_on(async {
            let _entered = self.runtime.handle().enter();
            let tasks: Vec<_> = producers.chain(workers).collect();
            // Who fails ends the measurement: the others would wait for its runs.
            try_join_all(tasks.into_iter().map(async |task| task.await?)).await?;
            anyhow::Ok(())
        })?;
        Ok(Throughput {
            runs: counts.completed.load(Ordering::Relaxed),
            seconds: begun.elapsed().as_secs_f64(),
        })
    }

    fn latency(&mut self, load: Load) -> Result<Latency> {
        let counts = Arc::new(Counts::default());
        let waits = Arc::new(std::sync::Mutex::new(Vec::new()));
        let planned = (load.rate * LOAD_LENGTH.as_secs_f64()) as u64;
        self.runtime.block_on(async {
            let begun = Instant::now();
            let due = move |number: u64| begun + Duration::from_secs_f64(number as f64 / load.rate);
            let next = Arc::new(tokio::sync::Mutex::new(0_u64));
            let mut tasks = Vec::new();
            for _ in 0..LOAD_SENDERS_MAX {
                let (engine, counts, next) = (self.engine.clone(), counts.clone(), next.clone());
                tasks.push(tokio::spawn(async move {
                    loop {
                        let mut place = next.lock().await;
                        let first = *place;
                        if first >= planned {
                            break;
                        }
                        tokio::time::sleep_until(due(first).into()).await;
                        let fallen = (begun.elapsed().as_secs_f64() * load.rate) as u64 + 1;
                        let count =
                            fallen.saturating_sub(first).clamp(1, LOAD_BATCH_MAX).min(planned - first);
                        *place += count;
                        drop(place);
                        // Each carries its number, so that its handler knows when it was due.
                        let numbered =
                            (first..first + count).zip(orders(count)).map(|(number, mut order)| {
                                order.name = number.to_string().into();
                                order
                            });
                        engine.enqueue("default", "q", numbered.collect(), None).await?;
                        counts.enqueued.fetch_add(count, Ordering::AcqRel);
                    }
                    counts.ended.fetch_add(1, Ordering::AcqRel);
                    anyhow::Ok(())
                }));
            }
            for index in 0..LOAD_WORKERS {
                let (engine, counts, waits) = (self.engine.clone(), counts.clone(), waits.clone());
                tasks.push(tokio::spawn(async move {
                    while !counts.is_over(LOAD_SENDERS_MAX) {
                        let seen = |name: &str| {
                            let number: u64 = name.parse().unwrap_or(0);
                            let wait = Instant::now().saturating_duration_since(due(number));
                            if let Ok(mut waits) = waits.lock() {
                                waits.push(wait.as_secs_f64() * 1e3);
                            }
                        };
                        work(&engine, index, 500, &counts, seen).await?;
                    }
                    anyhow::Ok(())
                }));
            }
            try_join_all(tasks.into_iter().map(async |task| task.await?)).await?;
            let taken = begun.elapsed();
            ensure!(
                taken < LOAD_LENGTH.mul_f64(1.25),
                "{planned} runs took {taken:?}: the rate was not held"
            );
            Ok(())
        })?;
        let mut waits = waits.lock().map(|waits| waits.clone()).unwrap_or_default();
        waits.sort_by(f64::total_cmp);
        let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize];
        Ok(Latency { p50: at(0.5), p99: at(0.99) })
    }
}

/// Claims, does nothing, and reports, once.
async fn work(engine: &Engine, index: u64, batch: u64, counts: &Counts, seen: impl Fn(&str)) -> Result<()> {
    let name = format!("worker-{index}");
    let claimed = engine.claim("default", "q", &name, batch as usize, WAIT, None).await?;
    claimed.iter().for_each(|claimed| seen(&claimed.body.name));
    let reports = claimed.into_iter().map(|claimed| {
        let report = Report {
            namespace: "default".into(),
            worker: name.as_str().into(),
            run: claimed.live.made.run,
            attempt: claimed.live.attempt,
            end: AttemptEnd::Succeeded(None),
        };
        async move {
            loop {
                match engine.report(report.clone()).await {
                    // So many wait for an answer that nobody else is let in: a client asks again a little later.
                    Err(EngineError::Busy(_)) => tokio::time::sleep(Duration::from_millis(5)).await,
                    recorded => break recorded,
                }
            }
        }
    });
    for recorded in join_all(reports).await {
        recorded?;
        counts.completed.fetch_add(1, Ordering::AcqRel);
    }
    Ok(())
}
