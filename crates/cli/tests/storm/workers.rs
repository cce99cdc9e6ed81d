//! Workers of all characters: most work, some die, hang, answer twice or answer late.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use punctual_api::{Client, v1};

use crate::plan::{BRIEF, NAMESPACE, UNTIL_STOPPED, length};
use crate::random::Random;

/// For how long after it was asked for, an attempt is certainly not given up: less than its lease, which begins after that.
const CERTAIN: Duration = Duration::from_millis(1_500);

/// Which attempts of which runs were in progress when, as far as that is certain.
pub type Held = BTreeMap<(String, u32), Attempt>;

#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    pub from: Instant,
    pub until: Instant,
}

/// How long a run goes on that only ends when it is told to: longer than it may take to tell it.
const UNSTOPPED_MAX: Duration = Duration::from_secs(25);

/// What all workers received, and what they were told.
#[derive(Default)]
pub struct Seen {
    /// Which attempts of which run were received, and of which schedule and nominal time it is.
    pub received: Mutex<BTreeMap<String, Received>>,
    /// Attempts that were acknowledged as recorded.
    pub acknowledged: Mutex<BTreeMap<String, Vec<u32>>>,
    pub held: Mutex<Held>,
    pub stale: AtomicU64,
    pub deaths: AtomicU64,
    pub hangs: AtomicU64,
    pub twice: AtomicU64,
    pub cancels: AtomicU64,
    pub lost_answers: AtomicU64,
    /// No later start will come, so nobody waits any more to be stopped.
    pub over: AtomicBool,
}

#[derive(Clone, Default)]
pub struct Received {
    pub schedule: String,
    pub nominal_second: i64,
    pub attempts: Vec<u32>,
}

pub struct Worker {
    name: String,
    queue: &'static str,
    random: Random,
    /// One for each node; each call goes to any of them.
    clients: Vec<Client>,
    stop: Arc<AtomicBool>,
    seen: Arc<Seen>,
}

impl Worker {
    pub fn new(
        index: u64,
        seed: u64,
        queue: &'static str,
        clients: Vec<Client>,
        stop: Arc<AtomicBool>,
        seen: Arc<Seen>,
    ) -> Worker {
        Worker { name: format!("worker-{index}"), queue, random: Random(seed), clients, stop, seen }
    }

    pub async fn run(mut self) {
        while !self.stop.load(Ordering::SeqCst) {
            let claim = v1::ClaimRequest {
                namespace: NAMESPACE.into(),
                queue: self.queue.into(),
                worker_id: self.name.clone(),
                runs_max: 1 + self.random.below(5) as u32,
                wait: length(Duration::from_millis(300)),
                lease: length(Duration::from_secs(2)),
            };
            let asked_at = Instant::now();
            // The server may be dead; a run that was claimed without an answer is taken over after its lease.
            let Ok(claimed) = self.random.any(&self.clients).workers.claim(claim).await else {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            for run in claimed.into_inner().runs {
                self.receive(&run, asked_at);
                let (character, millis) = match &run.handler[..] {
                    BRIEF if self.random.below(100) > 0 => (8 + self.random.below(92), self.random.below(60)),
                    _ => (self.random.below(100), self.random.below(1_200)),
                };
                let length = Duration::from_millis(millis);
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

    fn receive(&self, run: &v1::ClaimedRun, asked_at: Instant) {
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
        let attempt = Attempt { from: Instant::now(), until: asked_at + CERTAIN };
        self.seen.held.lock().unwrap().insert((run.run_id.clone(), run.attempt), attempt);
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
            18..40 if self.run.handler == UNTIL_STOPPED => self.work_until_stopped().await,
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
                let cancelled = self.heartbeat().await == v1::directive::Word::Cancel;
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

    /// Nothing but its schedule ends it.
    async fn work_until_stopped(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < UNSTOPPED_MAX && !self.seen.over.load(Ordering::SeqCst) {
            match self.heartbeat().await {
                v1::directive::Word::Cancel => {
                    return self.report(v1::run_completion::End::Cancelled(())).await;
                }
                v1::directive::Word::Gone => return,
                v1::directive::Word::GoOn | v1::directive::Word::Unspecified => {}
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        self.report(v1::run_completion::End::Result(v1::Payload::default())).await;
    }

    /// What it should do; nothing if nobody answers.
    async fn heartbeat(&mut self) -> v1::directive::Word {
        let pulse =
            v1::RunHeartbeat { run_id: self.run.run_id.clone(), token: self.run.token, ..Default::default() };
        let request = v1::HeartbeatRequest {
            namespace: NAMESPACE.into(),
            worker_id: self.name.clone(),
            runs: vec![pulse],
            ..Default::default()
        };
        let answer = self.random.any(&self.clients).workers.heartbeat(request).await;
        let told = answer.ok().and_then(|answer| answer.into_inner().runs.first().map(|run| run.directive()));
        let told = told.unwrap_or(v1::directive::Word::Unspecified);
        self.seen.cancels.fetch_add(u64::from(told == v1::directive::Word::Cancel), Ordering::Relaxed);
        told
    }

    /// Reports until somebody answers, as a good worker does.
    async fn report(&mut self, end: v1::run_completion::End) {
        if let Some(held) =
            self.seen.held.lock().unwrap().get_mut(&(self.run.run_id.clone(), self.run.attempt))
        {
            held.until = held.until.min(Instant::now());
        }
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
