//! Clients that create, pause, resume, trigger and delete, each time at any node, and repeat what was not answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use punctual_api::{Client, v1};
use tonic::Code;

use crate::plan::{NAMESPACE, Plan};
use crate::random::Random;

/// How long a client waits for an answer before it turns to another node.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// How long a verb may remain without an acknowledgement, whatever happens.
const SAID_MAX: Duration = Duration::from_secs(60);

/// A client that does not wait for a node that hangs.
pub fn impatient(address: &str) -> Client {
    let endpoint = tonic::transport::Endpoint::from_shared(address.to_owned()).unwrap();
    Client::over(endpoint.connect_timeout(ANSWER_MAX).timeout(ANSWER_MAX).connect_lazy())
}

/// Verbs that were acknowledged, and how often they had to be said.
#[derive(Default)]
pub struct Said {
    pub verbs: AtomicU64,
    pub tries: AtomicU64,
}

/// Somebody who does things to schedules.
pub struct Caller {
    pub name: String,
    pub random: Random,
    pub clients: Vec<Client>,
    pub stop: Arc<AtomicBool>,
    pub said: Arc<Said>,
}

/// What was done to one schedule, by the clock of whoever did it.
#[derive(Default)]
pub struct Told {
    /// Acknowledged triggers.
    pub triggers: usize,
    /// From the acknowledged pause until somebody begins to resume it.
    pub pauses: Vec<(Timestamp, Timestamp)>,
}

/// Says a verb to any node until one acknowledges it.
macro_rules! say {
    ($self:ident, $verb:ident, $request:expr) => {{
        let (request, begun) = ($request, Instant::now());
        loop {
            $self.said.tries.fetch_add(1, Ordering::Relaxed);
            match $self.random.any(&$self.clients).schedules.$verb(request.clone()).await {
                Ok(_) => break,
                Err(status) => {
                    // Nobody knows whether it was heard; everything else would be wrong.
                    let passing = [Code::Unavailable, Code::DeadlineExceeded, Code::Cancelled, Code::Unknown];
                    // What a server says has no source; a connection that broke has one, whatever the code is.
                    let is_passing =
                        passing.contains(&status.code()) || std::error::Error::source(&status).is_some();
                    assert!(is_passing && begun.elapsed() < SAID_MAX, "{request:?}: {status:?}");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
        $self.said.verbs.fetch_add(1, Ordering::Relaxed);
    }};
}

impl Caller {
    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    async fn rest(&mut self, millis: u64) {
        tokio::time::sleep(Duration::from_millis(self.random.below(millis))).await;
    }

    fn request_id(&mut self) -> String {
        format!("{} {:x}", self.name, self.random.next())
    }

    /// Pauses, resumes and triggers one schedule; it stays resumed.
    pub async fn disturb(mut self, name: String) -> (String, Told) {
        let mut told = Told::default();
        while !self.is_stopping() {
            self.rest(2_500).await;
            if self.random.below(3) > 0 {
                self.trigger(&name).await;
                told.triggers += 1;
                continue;
            }
            self.pause(&name).await;
            let paused_at = Timestamp::now();
            self.rest(2_500).await;
            if self.random.below(2) == 0 {
                self.trigger(&name).await;
                told.triggers += 1;
            }
            told.pauses.push((paused_at, Timestamp::now()));
            self.resume(&name).await;
        }
        (name, told)
    }

    /// Makes schedules that live for a few seconds; gives those that it made.
    pub async fn create_and_delete(mut self) -> Vec<Plan> {
        let mut made = Vec::new();
        while !self.is_stopping() {
            let name = format!("{}-{}", self.name, made.len());
            let plan = Plan::every_second(&name, v1::overlap::Policy::AllowAll);
            say!(self, create, plan.create());
            self.rest(4_000).await;
            let request_id = self.request_id();
            let delete =
                v1::DeleteScheduleRequest { namespace: NAMESPACE.into(), schedule_id: name, request_id };
            say!(self, delete, delete);
            made.push(plan);
        }
        made
    }

    async fn trigger(&mut self, name: &str) {
        let request_id = self.request_id();
        let request = v1::TriggerScheduleRequest {
            namespace: NAMESPACE.into(),
            schedule_id: name.into(),
            request_id,
            ..Default::default()
        };
        say!(self, trigger, request);
    }

    pub async fn pause(&mut self, name: &str) {
        let request_id = self.request_id();
        let request = v1::PauseScheduleRequest {
            namespace: NAMESPACE.into(),
            schedule_id: name.into(),
            request_id,
            ..Default::default()
        };
        say!(self, pause, request);
    }

    async fn resume(&mut self, name: &str) {
        let request_id = self.request_id();
        let request = v1::ResumeScheduleRequest {
            namespace: NAMESPACE.into(),
            schedule_id: name.into(),
            request_id,
            ..Default::default()
        };
        say!(self, resume, request);
    }
}
