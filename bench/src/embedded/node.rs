//! A node on a SQLite file, with schedules and a worker that does nothing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use futures_util::future::join_all;
use jiff::SignedDuration;
use punctual_core::{
    InitialPatch, OverlapPolicy, Policies, RequestId, RetryPolicy, RunAction, ScheduleKey, Timeouts,
};
use punctual_engine::{AttemptEnd, Engine, EngineConfig, NewSchedule, Report, SystemClock};
use punctual_spec::{Interval, Spec};
use punctual_store::QueueSettings;
use punctual_store_sqlite::{Options, Sqlite};

/// Starts an engine on a file and declares the queue "q".
pub async fn start(path: &Path) -> Result<Engine> {
    let store = Sqlite::open(path, Options::default())?;
    let engine = Engine::start(Arc::new(store), Arc::new(SystemClock), EngineConfig::default()).await?;
    engine.create_queue("default", "q", QueueSettings::default()).await?;
    Ok(engine)
}

pub fn key(index: usize) -> ScheduleKey {
    ScheduleKey::new("default", &format!("s{index}"))
}

/// A schedule that starts a run on "q".
pub fn schedule(index: usize, spec: Spec, policies: Policies) -> NewSchedule {
    let action = RunAction {
        queue: "q".into(),
        handler: "noop".into(),
        input: b"{}".as_slice().into(),
        retry: RetryPolicy::default(),
        timeouts: Timeouts::default(),
        ..RunAction::default()
    };
    NewSchedule {
        key: key(index),
        spec,
        action,
        run_id_base: "".into(),
        policies,
        attachment: [].into(),
        remaining_actions: None,
        initial: InitialPatch::default(),
        request: RequestId::new(&index.to_string()),
    }
}

pub fn every(length: SignedDuration, phase: SignedDuration) -> Spec {
    Spec::new().interval(Interval::every(length).phase(phase))
}

pub fn allow_all() -> Policies {
    Policies { overlap: OverlapPolicy::AllowAll, ..Policies::default() }
}

/// Creates many schedules, some hundred at a time.
pub async fn create(engine: &Engine, count: usize, make: impl Fn(usize) -> NewSchedule) -> Result<()> {
    let indices: Vec<usize> = (0..count).collect();
    for chunk in indices.chunks(2_000) {
        for made in join_all(chunk.iter().map(|index| engine.create(make(*index)))).await {
            made?;
        }
    }
    Ok(())
}

/// A worker that completes everything it gets, until it is told to stop.
pub struct Worker {
    pub completed: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Worker {
    pub fn start(engine: &Engine) -> Worker {
        let (completed, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let tasks: Vec<_> = (0..2)
            .map(|index| {
                let (engine, completed, stop) = (engine.clone(), completed.clone(), stop.clone());
                tokio::spawn(async move {
                    let name = format!("worker-{index}");
                    while !stop.load(Ordering::Relaxed) {
                        let wait = Duration::from_millis(500);
                        let Ok(claimed) = engine.claim("default", "q", &name, 1_000, wait, None).await else {
                            continue;
                        };
                        let reports = claimed.into_iter().map(|claimed| {
                            let (run, attempt) = (claimed.live.made.run, claimed.live.attempt);
                            engine.report(Report {
                                namespace: "default".into(),
                                worker: name.as_str().into(),
                                run,
                                attempt,
                                end: AttemptEnd::Succeeded(None),
                            })
                        });
                        let done = join_all(reports).await.into_iter().filter(Result::is_ok).count();
                        completed.fetch_add(done as u64, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        Worker { completed, stop, tasks }
    }

    pub async fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            let _ = task.await;
        }
        self.completed.load(Ordering::Relaxed)
    }
}
