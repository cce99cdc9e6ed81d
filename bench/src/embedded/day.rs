//! A day in two minutes: schedules, failures, a queue with limits and retention, and a file that must not grow for ever.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use punctual_core::{Failure, OverlapPolicy, Policies, RetryPolicy, RunAction};
use punctual_engine::{AttemptEnd, Clock, Engine, EngineConfig, OnDuplicate, Report, RunOrder, SystemClock};
use punctual_store::QueueSettings;
use punctual_store_sqlite::{Options, Sqlite};

use super::node::{create, every, schedule};

/// A clock that runs so many times faster than the machine's.
struct FastClock {
    begun: Instant,
    first: Timestamp,
    factor: f64,
}

impl Clock for FastClock {
    fn now(&self) -> Timestamp {
        let passed = SignedDuration::from_secs_f64(self.begun.elapsed().as_secs_f64() * self.factor);
        self.first.checked_add(passed).unwrap_or(Timestamp::MAX)
    }

    fn real(&self, length: SignedDuration) -> Duration {
        length.max(SignedDuration::ZERO).unsigned_abs().div_f64(self.factor)
    }
}

/// How much faster: a day takes two minutes.
const FACTOR: f64 = 720.0;

/// Schedules of each kind, all due every few minutes, which is some 10 starts a second of their time.
const SCHEDULES: usize = 2_000;

pub async fn measure() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("day.db");
    let clock = Arc::new(FastClock { begun: Instant::now(), first: SystemClock.now(), factor: FACTOR });
    let config = EngineConfig {
        run_retention: SignedDuration::from_hours(2),
        ledger_retention: SignedDuration::from_hours(2),
        retention_pause: SignedDuration::from_mins(5),
        // Of its time; the workers below beat no heart.
        worker_lease: SignedDuration::from_hours(2),
        ..EngineConfig::default()
    };
    let store = Sqlite::open(&path, Options::default())?;
    let engine = Engine::start(Arc::new(store), clock.clone(), config).await?;
    engine.create_queue("default", "q", QueueSettings::default()).await?;
    let limited =
        QueueSettings { concurrency_max: Some(50), key_concurrency_max: Some(2), ..QueueSettings::default() };
    engine.create_queue("default", "limited", limited).await?;
    create(&engine, SCHEDULES, |index| {
        let policies = [
            OverlapPolicy::Skip,
            OverlapPolicy::BufferOne,
            OverlapPolicy::BufferAll,
            OverlapPolicy::CancelOther,
            OverlapPolicy::TerminateOther,
            OverlapPolicy::AllowAll,
        ];
        let spec = every(SignedDuration::from_secs(180 + 60 * (index as i64 % 5)), SignedDuration::ZERO)
            .jitter(SignedDuration::from_secs(120));
        schedule(index, spec, Policies { overlap: policies[index % 6], ..Policies::default() })
    })
    .await?;
    let load = Load::start(&engine);
    println!(
        "a day in {:.0} s: {SCHEDULES} schedules of all policies, a queue with limits, retention of two hours",
        86_400.0 / FACTOR
    );
    let mut seen = Vec::new();
    for hour in 1..=24_u32 {
        let end = clock.first + SignedDuration::from_hours(hour.into());
        tokio::time::sleep(clock.real(end.duration_since(clock.now()))).await;
        let (file, memory) = (size(&path), resident());
        if hour % 3 == 0 {
            println!(
                "  hour {hour:>2}: {:>8} started, {:>8} completed, {:>7} rows retired, file and log {file:>6.1} MB, memory {memory:>6.1} MB",
                engine.metrics().started(),
                load.completed.load(Ordering::Relaxed),
                engine.metrics().retired.get(),
            );
        }
        seen.push((file, memory));
    }
    load.stop().await;
    engine.stop(Duration::from_secs(20)).await;
    // The first hours fill what retention keeps; after that nothing may grow.
    let most = |range: std::ops::Range<usize>, of: fn(&(f64, f64)) -> f64| {
        seen[range].iter().map(of).fold(0.0, f64::max)
    };
    let grown = |of: fn(&(f64, f64)) -> f64| most(16..24, of) / most(5..13, of);
    let (file, memory) = (grown(|seen| seen.0), grown(|seen| seen.1));
    println!(
        "  the last eight hours compared with hours 6 to 13: file {file:.2}, memory {memory:.2} (flat is about 1)"
    );
    ensure!(file < 1.2 && memory < 1.2, "it grows: file {file:.2}, memory {memory:.2}");
    Ok(())
}

/// Workers that succeed, fail and are slow, and a client that enqueues.
struct Load {
    completed: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    fn start(engine: &Engine) -> Load {
        let (completed, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let mut tasks = Vec::new();
        for queue in ["q", "limited"] {
            let (engine, completed, stop) = (engine.clone(), completed.clone(), stop.clone());
            tasks.push(tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let wait = Duration::from_millis(100);
                    let Ok(claimed) = engine.claim("default", queue, "w", 200, wait, None).await else {
                        continue;
                    };
                    let reports = claimed.into_iter().map(|claimed| {
                        let (run, attempt) = (claimed.live.made.run, claimed.live.attempt);
                        let end = match run.0 % 10 {
                            0 => AttemptEnd::Failed(Failure::new("sometimes", "one in ten"), None),
                            1 => AttemptEnd::Succeeded(Some(vec![7; 500].into())),
                            _ => AttemptEnd::Succeeded(None),
                        };
                        engine.report(Report {
                            namespace: "default".into(),
                            worker: "w".into(),
                            run,
                            attempt,
                            end,
                        })
                    });
                    let done = join_all(reports).await.into_iter().filter(Result::is_ok).count();
                    completed.fetch_add(done as u64, Ordering::Relaxed);
                }
            }));
        }
        let (engine, stopped) = (engine.clone(), stop.clone());
        tasks.push(tokio::spawn(async move {
            let mut count = 0_u64;
            while !stopped.load(Ordering::Relaxed) {
                let orders = (0..20).map(|place| order(count + place)).collect();
                let _ = engine.enqueue("default", "limited", orders, Some(count.to_string().into())).await;
                count += 20;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }));
        Load { completed, stop, tasks }
    }

    async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            let _ = task.await;
        }
    }
}

fn order(number: u64) -> RunOrder {
    let retry = RetryPolicy { attempts_max: 2, ..RetryPolicy::default() };
    let key = format!("key-{}", number % 97).into();
    RunOrder {
        name: "mixed".into(),
        action: RunAction {
            handler: "mixed".into(),
            retry,
            key,
            priority: (number % 7) as i16 - 3,
            ..RunAction::default()
        },
        dedup: number.is_multiple_of(5).then(|| format!("dedup-{}", number % 1_000).into()),
        on_duplicate: OnDuplicate::ReturnExisting,
        not_before: None,
    }
}

/// Megabytes of the file and its log.
fn size(path: &Path) -> f64 {
    let of = |suffix: &str| {
        let name = format!("{}{suffix}", path.display());
        std::fs::metadata(name).map_or(0, |found| found.len())
    };
    (of("") + of("-wal")) as f64 / 1e6
}

/// Megabytes of memory that this process has.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().split(' ').next()?.parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) / 1e3
}
