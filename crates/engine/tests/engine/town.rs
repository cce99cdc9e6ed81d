//! Several nodes on one reference store, whose clock the test moves; the nodes themselves live in real time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use punctual_core::{
    Command, InitialPatch, OverlapPolicy, Policies, RequestId, RetryPolicy, RunAction, ScheduleKey, Timeouts,
    Trigger,
};
use punctual_engine::{
    AttemptEnd, Claimed, Clock, Directive, Engine, EngineConfig, NewSchedule, Pulse, Recorded, Report,
    SystemClock, Verb,
};
use punctual_spec::{Interval, Spec};
use punctual_store::memory::Memory;
use punctual_store::{News, QueueSettings, Store, shard_of};

pub const WAIT: Duration = Duration::from_secs(20);

pub struct Town {
    pub store: Arc<Memory>,
    shards: u32,
    now: Mutex<Timestamp>,
}

impl Town {
    pub fn new(shards: u32) -> Town {
        let now = Timestamp::now();
        Town { store: Arc::new(Memory::new(shards, now)), shards, now: Mutex::new(now) }
    }

    pub async fn join(&self, name: &str) -> Engine {
        self.join_with(Arc::new(SystemClock), EngineConfig { node: name.into(), ..EngineConfig::default() })
            .await
    }

    pub async fn join_with(&self, clock: Arc<dyn Clock>, config: EngineConfig) -> Engine {
        let engine = Engine::start(self.store.clone(), clock, config).await.unwrap();
        engine.create_queue("default", "q", QueueSettings::default()).await.unwrap();
        engine
    }

    /// How many shards each node holds, by name.
    pub async fn shares(&self) -> BTreeMap<String, usize> {
        let roster = self.store.roster().await.unwrap();
        let mut shares: BTreeMap<String, usize> = BTreeMap::new();
        for lease in roster.leases {
            let name = lease.node.0.split('#').next().unwrap_or_default().to_owned();
            *shares.entry(name).or_default() += 1;
        }
        shares
    }

    /// Waits until nodes hold this many, and drive them.
    pub async fn settles(&self, wanted: &[(&Engine, usize)]) {
        let text = format!("{:?}", wanted.iter().map(|(_, share)| *share).collect::<Vec<_>>());
        until(&text, async || {
            let shares = self.shares().await;
            shares.values().sum::<usize>() == self.shards as usize
                && wanted.iter().all(|(engine, share)| {
                    let held = shares.get(&engine.config().node).copied().unwrap_or(0);
                    held == *share && engine.metrics().shards.get() == *share as u64
                })
        })
        .await;
    }

    /// Lets the database's clock run, slowly enough for those that are alive to be heard of.
    pub async fn pass(&self, seconds: i64, alive: &[&Engine]) {
        for _ in 0..seconds {
            let now = *self.now.lock().unwrap() + SignedDuration::from_secs(1);
            self.jump(now);
            until("everybody is heard of", async || {
                let roster = self.store.roster().await.unwrap();
                let expires_at = now + EngineConfig::default().shard_lease;
                alive.iter().all(|engine| {
                    roster
                        .nodes
                        .iter()
                        .any(|seen| seen.node == *engine.node_id() && seen.expires_at == expires_at)
                })
            })
            .await;
        }
    }

    /// Sets the database's clock, and wakes everybody.
    pub fn jump(&self, now: Timestamp) {
        *self.now.lock().unwrap() = now;
        self.store.set_now(now);
        self.store.tell(News::Roster);
    }

    pub fn now(&self) -> Timestamp {
        *self.now.lock().unwrap()
    }

    /// A name whose schedule this node drives.
    pub async fn name_at(&self, owner: &Engine) -> String {
        let roster = self.store.roster().await.unwrap();
        let mine = |name: &String| {
            let shard = shard_of(&key(name), self.shards);
            roster.leases.iter().any(|lease| lease.shard == shard && lease.node == *owner.node_id())
        };
        (0..).map(|number| format!("s{number}")).find(mine).unwrap()
    }
}

/// Waits for something that has no signal of its own.
pub async fn until(what: &str, mut check: impl AsyncFnMut() -> bool) {
    let patience = tokio::time::Instant::now() + WAIT;
    while !check().await {
        assert!(tokio::time::Instant::now() < patience, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub fn key(name: &str) -> ScheduleKey {
    ScheduleKey::new("default", name)
}

/// A schedule that starts every so many seconds, or only by hand.
pub fn schedule(name: &str, request: &str, every: Option<i64>, heartbeat: Option<i64>) -> NewSchedule {
    let retry = RetryPolicy { backoff_first: SignedDuration::from_millis(5), ..RetryPolicy::default() };
    let timeouts = Timeouts { heartbeat: heartbeat.map(SignedDuration::from_secs), ..Timeouts::default() };
    let action =
        RunAction { queue: "q".into(), handler: "h".into(), retry, timeouts, ..RunAction::default() };
    let spec = match every {
        Some(seconds) => Spec::new().interval(Interval::every(SignedDuration::from_secs(seconds))),
        None => Spec::new(),
    };
    NewSchedule {
        key: key(name),
        spec,
        action,
        run_id_base: "".into(),
        policies: Policies { overlap: OverlapPolicy::AllowAll, ..Policies::default() },
        attachment: [].into(),
        remaining_actions: None,
        initial: InitialPatch::default(),
        request: RequestId::new(request),
    }
}

pub async fn trigger(engine: &Engine, name: &str, request: &str) {
    let command = Command { request: RequestId::new(request), body: Trigger::default() };
    engine.change(&key(name), Verb::Trigger(command)).await.unwrap();
}

pub async fn claim(engine: &Engine) -> Claimed {
    claim_for(engine, WAIT).await.expect("a run is claimed in time")
}

pub async fn claim_for(engine: &Engine, wait: Duration) -> Option<Claimed> {
    engine.claim("default", "q", "w", 1, wait, None).await.unwrap().pop()
}

pub async fn report(engine: &Engine, claimed: &Claimed, end: AttemptEnd) -> Recorded {
    let (namespace, worker) = ("default".into(), "w".into());
    let report = Report { namespace, worker, run: claimed.live.made.run, attempt: claimed.live.attempt, end };
    engine.report(report).await.unwrap()
}

pub async fn heartbeat(engine: &Engine, claimed: &Claimed, wait: Duration) -> Directive {
    let (run, attempt) = (claimed.live.made.run, claimed.live.attempt);
    let pulse = Pulse { run, attempt, progress: None, log: String::new() };
    engine.heartbeat("default", "w", vec![pulse], wait).await.unwrap()[0].directive
}
