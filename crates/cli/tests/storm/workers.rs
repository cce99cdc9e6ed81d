//! Workers of all characters: most work, some die, hang, answer twice or answer late.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use punctual_api::{Client, v1};

use crate::random::Random;
use crate::{NAMESPACE, QUEUE};

/// What all workers received, and what they were told.
#[derive(Default)]
pub struct Seen {
    /// Which attempts of which run were received, and of which schedule and nominal time it is.
    pub received: Mutex<BTreeMap<String, Received>>,
    /// Attempts that were acknowledged as recorded.
    pub acknowledged: Mutex<BTreeMap<String, Vec<u32>>>,
    pub stale: AtomicU64,
    pub deaths: AtomicU64,
    pub hangs: AtomicU64,
    pub twice: AtomicU64,
    pub cancels: AtomicU64,
    pub lost_answers: AtomicU64,
}

#[derive(Clone, Default)]
pub struct Received {
    pub schedule: String,
    pub nominal_second: i64,
    pub attempts: Vec<u32>,
}

pub struct Worker {
    name: String,
    random: Random,
    /// One for each node; each call goes to any of them.
    clients: Vec<Client>,
    stop: Arc<AtomicBool>,
    seen: Arc<Seen>,
}

fn millis(millis: u64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration {
        seconds: (millis / 1_000) as i64,
        nanos: (millis % 1_000 * 1_000_000) as i32,
    })
}

impl Worker {
    pub fn new(
        index: u64,
        seed: u64,
        clients: Vec<Client>,
        stop: Arc<AtomicBool>,
        seen: Arc<Seen>,
    ) -> Worker {
        Worker { name: format!("worker-{index}"), random: Random(seed), clients, stop, seen }
    }

    pub async fn run(mut self) {
        while !self.stop.load(Ordering::SeqCst) {
            let claim = v1::ClaimRequest {
                namespace: NAMESPACE.into(),
                queue: QUEUE.into(),
                worker_id: self.name.clone(),
                runs_max: 1 + self.random.below(5) as u32,
                wait: millis(300),
                lease: millis(2_000),
            };
            // The server may be dead; a run that was claimed without an answer is taken over after its lease.
            let Ok(claimed) = self.random.any(&self.clients).workers.claim(claim).await else {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            for run in claimed.into_inner().runs {
                self.receive(&run);
                let character = self.random.below(100);
                let length = Duration::from_millis(self.random.below(1_200));
                let task = Task {
                    name: self.name.clone(),
                    run,
                    length,
                    random: Random(self.random.next()),
                    clients: self.clients.clone(),
                    seen: self.seen.clone(),
                    stop: self.stop.clone(),
                };
                tokio::spawn(task.work(character));
            }
        }
    }

    fn receive(&self, run: &v1::ClaimedRun) {
        let mut received = self.seen.received.lock().unwrap();
        let entry = received.entry(run.run_id.clone()).or_default();
        entry.schedule = run.schedule_id.clone();
        entry.nominal_second = run.nominal_time.as_ref().map_or(0, |time| time.seconds);
        assert!(
            !entry.attempts.contains(&run.attempt),
            "attempt {} of run {} was handed out twice",
            run.attempt,
            run.run_id
        );
        entry.attempts.push(run.attempt);
    }
}

struct Task {
    name: String,
    run: v1::ClaimedRun,
    length: Duration,
    random: Random,
    clients: Vec<Client>,
    seen: Arc<Seen>,
    stop: Arc<AtomicBool>,
}

impl Task {
    async fn work(mut self, character: u64) {
        match character {
            // It dies: nobody hears of it again.
            0..5 => _ = self.seen.deaths.fetch_add(1, Ordering::Relaxed),
            // It hangs: it is alive, but never done.
            5..8 => {
                self.seen.hangs.fetch_add(1, Ordering::Relaxed);
                for _ in 0..12 {
                    self.heartbeat().await;
                    tokio::time::sleep(Duration::from_millis(500)).await;
                }
                self.report(v1::run_completion::End::Result(v1::Payload::default())).await;
            }
            8..18 => {
                tokio::time::sleep(self.length).await;
                let failure =
                    v1::Failure { kind: "Oops".into(), message: "as planned".into(), ..Default::default() };
                self.report(v1::run_completion::End::Failure(failure)).await;
            }
            _ => {
                tokio::time::sleep(self.length).await;
                let cancelled = self.heartbeat().await;
                let end = || match cancelled {
                    true => v1::run_completion::End::Cancelled(()),
                    false => v1::run_completion::End::Result(v1::Payload::default()),
                };
                self.report(end()).await;
                if character > 90 {
                    self.seen.twice.fetch_add(1, Ordering::Relaxed);
                    self.report(end()).await;
                }
            }
        }
    }

    /// Whether it should stop.
    async fn heartbeat(&mut self) -> bool {
        let pulse =
            v1::RunHeartbeat { run_id: self.run.run_id.clone(), token: self.run.token, ..Default::default() };
        let request = v1::HeartbeatRequest {
            namespace: NAMESPACE.into(),
            worker_id: self.name.clone(),
            runs: vec![pulse],
            ..Default::default()
        };
        let Ok(answer) = self.random.any(&self.clients).workers.heartbeat(request).await else {
            return false;
        };
        let cancel =
            answer.into_inner().runs.iter().any(|run| run.directive() == v1::directive::Word::Cancel);
        self.seen.cancels.fetch_add(u64::from(cancel), Ordering::Relaxed);
        cancel
    }

    /// Reports until somebody answers, as a good worker does.
    async fn report(&mut self, end: v1::run_completion::End) {
        let completion = v1::RunCompletion {
            run_id: self.run.run_id.clone(),
            token: self.run.token,
            end: Some(end),
            ..Default::default()
        };
        let request = v1::CompleteRequest {
            namespace: NAMESPACE.into(),
            worker_id: self.name.clone(),
            runs: vec![completion],
        };
        loop {
            match self.random.any(&self.clients).workers.complete(request.clone()).await {
                Ok(answer) => {
                    let state = answer.into_inner().runs.first().map(v1::RunReport::state);
                    match state {
                        Some(v1::report::Word::Recorded) => {
                            let mut acknowledged = self.seen.acknowledged.lock().unwrap();
                            acknowledged.entry(self.run.run_id.clone()).or_default().push(self.run.attempt);
                        }
                        Some(v1::report::Word::Retried) => {}
                        _ => _ = self.seen.stale.fetch_add(1, Ordering::Relaxed),
                    }
                    return;
                }
                Err(_) if self.stop.load(Ordering::SeqCst) => return,
                Err(_) => {
                    self.seen.lost_answers.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
}
